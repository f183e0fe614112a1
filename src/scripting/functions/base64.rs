//! `base64`: strings and bytes to base64 and back.

use ::base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

use super::Call;
use crate::scripting::functions::{
    outcome::{Datum, Failure},
    types::{Library, Type, immediate, optional, required},
};

/// Padding is optional: tokens come without it.
const READING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

pub(super) const LIBRARY: Library = Library {
    name: "base64",
    doc: "Base64, as in the data of Secrets.",
    functions: &[
        immediate(
            "encode",
            "Encodes a string or bytes as Base64: `base64.encode(\"hello\")` is `aGVsbG8=`.",
            &[required("data", Type::Bytes, "The string or bytes to encode.")],
            Type::Text,
            |call| Ok(encode(call).into()),
        )
        .with(&[
            optional(
                "url",
                Type::Boolean,
                "Use `-` and `_` instead of `+` and `/`; default: false.",
            ),
            optional("padding", Type::Boolean, "End with `=` as padding; default: true."),
        ]),
        immediate(
            "decode",
            "Decodes Base64 to a string, which must be UTF-8. Accepts both alphabets, with or without padding; ignores line breaks.",
            &[required("text", Type::Text, "Base64.")],
            Type::Text,
            |call| {
                let text = String::from_utf8(decode(call)?);
                let text = text.map_err(|_problem| {
                    Failure::from("the content is not UTF-8; use base64.decode_bytes")
                })?;
                Ok(Value::from(text).into())
            },
        ),
        immediate(
            "decode_bytes",
            "Decodes Base64 to bytes: a string in Lua, a blob in Rhai.",
            &[required("text", Type::Text, "Base64, as for `base64.decode`.")],
            Type::Bytes,
            |call| Ok(Datum::Bytes(decode(call)?)),
        ),
    ],
};

fn encode(call: &Call) -> Value {
    let alphabet = if call.flag("url") { URL_SAFE } else { STANDARD };
    let is_padded = !call.has("padding") || call.flag("padding");
    let engine = GeneralPurpose::new(&alphabet, READING.with_encode_padding(is_padded));
    engine.encode(call.bytes("data")).into()
}

fn decode(call: &Call) -> Result<Vec<u8>, Failure> {
    let text: String = call.text("text").split_ascii_whitespace().collect();
    let alphabet = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let decoded = GeneralPurpose::new(&alphabet, READING).decode(text);
    decoded.map_err(|problem| format!("invalid Base64: {problem}").into())
}
