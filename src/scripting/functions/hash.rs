//! `hash`: digests and message authentication codes.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use super::{Call, passwords};
use crate::scripting::functions::{
    outcome::{Datum, Failure, Outcome},
    types::{Library, Parameter, Type, immediate, optional, required},
};

const DATA: &[Parameter] = &[required("data", Type::Bytes, "A string or bytes.")];
const FORM: Parameter =
    optional("encoding", Type::Name, "\"hex\", \"base64\" or \"bytes\"; default: \"hex\".");

pub(super) const LIBRARY: Library = Library {
    name: "hash",
    doc: "Hashes of strings and bytes, and of passwords.",
    functions: &[
        immediate("sha256", "Returns the SHA-256 of data, as 64 hexadecimal digits.", DATA, Type::Text, |call| {
            encoded(call, &Sha256::digest(call.bytes("data")))
        })
        .with(&[FORM]),
        immediate("sha512", "Returns the SHA-512 of data, as 128 hexadecimal digits.", DATA, Type::Text, |call| {
            encoded(call, &Sha512::digest(call.bytes("data")))
        })
        .with(&[FORM]),
        immediate(
            "sha1",
            "Returns the SHA-1 of data, as 40 hexadecimal digits. Not for security.",
            DATA,
            Type::Text,
            |call| encoded(call, &Sha1::digest(call.bytes("data"))),
        )
        .with(&[FORM]),
        immediate(
            "md5",
            "Returns the MD5 of data, as 32 hexadecimal digits. Not for security.",
            DATA,
            Type::Text,
            |call| encoded(call, &Md5::digest(call.bytes("data"))),
        )
        .with(&[FORM]),
        immediate(
            "hmac",
            "Returns the HMAC of data, such as the signature of a webhook: `hash.hmac(secret, body)`.",
            &[
                required("key", Type::Bytes, "The shared secret.").secret(),
                required("data", Type::Bytes, "The data to sign."),
            ],
            Type::Text,
            hmac,
        )
        .with(&[
            optional(
                "algorithm",
                Type::Name,
                "\"sha256\", \"sha512\" or \"sha1\"; default: \"sha256\".",
            ),
            FORM,
        ]),
        immediate(
            "equal",
            "Compares two strings in constant time: for signatures.",
            &[
                required("a", Type::Bytes, "A string."),
                required("b", Type::Bytes, "Another string."),
            ],
            Type::Boolean,
            |call| Ok(equal(call).into()),
        ),
        passwords::BCRYPT,
        passwords::ARGON2,
        passwords::CHECK,
    ],
};

fn encoded(call: &Call, hash: &[u8]) -> Outcome {
    match call.some_text("encoding").unwrap_or("hex") {
        "hex" => Ok(Value::from(hex(hash)).into()),
        "base64" => Ok(Value::from(STANDARD.encode(hash)).into()),
        "bytes" => Ok(Datum::Bytes(hash.to_vec())),
        other => Err(Failure::Plain(format!(
            "`encoding`: expected \"hex\", \"base64\" or \"bytes\", got \"{other}\""
        ))),
    }
}

/// Returns the bytes as hexadecimal digits.
pub(in crate::scripting) fn hex(bytes: &[u8]) -> String {
    let digit = |it: u8| char::from_digit(it.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

fn hmac(call: &Call) -> Outcome {
    macro_rules! signed {
        ($hash:ty) => {{
            // A key may have any length.
            let mac = Hmac::<$hash>::new_from_slice(call.bytes("key"));
            let mac = mac.map_err(|problem| Failure::Plain(problem.to_string()))?;
            encoded(call, &mac.chain_update(call.bytes("data")).finalize().into_bytes())
        }};
    }
    match call.some_text("algorithm").unwrap_or("sha256") {
        "sha256" => signed!(Sha256),
        "sha512" => signed!(Sha512),
        "sha1" => signed!(Sha1),
        other => Err(Failure::Plain(format!(
            "`algorithm`: expected \"sha256\", \"sha512\" or \"sha1\", got \"{other}\""
        ))),
    }
}

/// Compares the hashes: how much of them differs reveals nothing about the strings.
fn equal(call: &Call) -> Value {
    let (a, b) = (Sha256::digest(call.bytes("a")), Sha256::digest(call.bytes("b")));
    let differing = a.iter().zip(&b).fold(0, |differing, (a, b)| differing | (a ^ b));
    Value::from(differing == 0)
}
