//! `jwt`: signed tokens (RFC 7519, RFC 7515).
//!
//! Not `jsonwebtoken`: it compares times with the system's clock instead of the operator's, and would add a second implementation
//! of what ring has. The use of a key follows from the key alone, never from the token: a public key cannot become a shared secret,
//! and `none` is not an algorithm.

mod algorithm;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Map, Value, json};

use self::algorithm::{Algorithm, Signer, Verifier};
use super::{Call, tree};
use crate::scripting::functions::{
    outcome::{Failure, Outcome},
    types::{Library, Parameter, Type, immediate, optional, required},
};

const ALG: Parameter = optional(
    "alg",
    Type::Name,
    "\"HS256\", \"HS384\", \"HS512\", \"RS256\", \"RS384\", \"RS512\", \"PS256\", \"PS384\", \"PS512\", \"ES256\", \"ES384\" or \"EdDSA\"; default: derived from the key, with SHA-256 if several are possible.",
);

pub(super) const LIBRARY: Library = Library {
    name: "jwt",
    doc: "Signs and verifies JSON Web Tokens.",
    functions: &[
        immediate(
            "sign",
            "Returns a token with these claims. Times (`exp`, `nbf`, `iat`) are seconds since 1970: `exp = time.now() + 3600`.",
            &[
                required("claims", Type::Map, "The claims.").secret(),
                required("key", Type::Bytes, "A private key in PEM, or a shared secret for HS256, HS384 and HS512.").secret(),
            ],
            Type::Text,
            sign,
        )
        .with(&[
            ALG,
            optional("kid", Type::Name, "The id of the key, in the header."),
            optional("headers", Type::Map, "More fields of the header."),
        ]),
        immediate(
            "verify",
            "Returns the claims of a token, if its signature is valid, it has not expired (`exp`) and it is valid already (`nbf`); otherwise raises an error. The kind of the key determines which algorithms are accepted.",
            &[
                required("token", Type::Text, "The token.").secret(),
                required("key", Type::Bytes, "A public key, a certificate or a private key in PEM; or a shared secret.").secret(),
            ],
            Type::Map,
            verify,
        )
        .with(&[
            optional("alg", Type::Name, "Accept only this algorithm; default: all that match the key."),
            optional("aud", Type::Name, "The audience, which must be among those of the token. Required if the token has one."),
            optional("iss", Type::Name, "The issuer, which must be that of the token."),
            optional("leeway", Type::Duration, "Tolerance for clock differences, for `exp` and `nbf`; default: 0."),
        ]),
    ],
};

/// Maximum size of a token, which is sent in a header.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// Implements `jwt.sign`: returns a token with these claims.
fn sign(call: &Call) -> Outcome {
    let wanted = call.some_text("alg").map(Algorithm::named).transpose()?;
    let signer = Signer::read(call.bytes("key"), wanted)?;
    let claims = call.map("claims").cloned().unwrap_or_default();
    for time in ["exp", "nbf", "iat"] {
        if claims.get(time).is_some_and(|it| !it.is_number()) {
            return Err(format!(
                "`claims`: `{time}`: expected seconds since 1970, as time.now() returns them"
            )
            .into());
        }
    }
    let mut header = Map::from_iter([
        ("alg".to_owned(), Value::from(signer.algorithm().name())),
        ("typ".to_owned(), Value::from("JWT")),
    ]);
    for (name, value) in call.map("headers").into_iter().flatten() {
        if ["alg", "crit", "b64"].contains(&name.as_str()) {
            return Err(format!("`headers`: `{name}` cannot be set").into());
        }
        header.insert(name.clone(), value.clone());
    }
    header.extend(call.some_text("kid").map(|it| ("kid".to_owned(), Value::from(it))));
    let encoded = |it: Map<String, Value>| BASE64.encode(Value::Object(it).to_string());
    let mut token = format!("{}.{}", encoded(header), encoded(whole_times(claims)));
    let signature = signer.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&BASE64.encode(signature));
    if token.len() > TOKEN_BYTES_MAX {
        return Err(
            format!("`claims`: the token would be longer than {TOKEN_BYTES_MAX} bytes").into()
        );
    }
    Ok(Value::from(token).into())
}

/// Truncates times to seconds: `time.now()` has fractions, which some readers reject.
fn whole_times(mut claims: Map<String, Value>) -> Map<String, Value> {
    for time in ["exp", "nbf", "iat"] {
        if let Some(value) = claims.get_mut(time)
            && let Some(seconds) = value.as_f64().filter(|_| !value.is_i64() && !value.is_u64())
            && let Ok(whole) = format!("{:.0}", seconds.floor()).parse::<i64>()
        {
            *value = json!(whole);
        }
    }
    claims
}

/// Implements `jwt.verify`: returns the claims of a valid token.
fn verify(call: &Call) -> Outcome {
    let wanted = call.some_text("alg").map(Algorithm::named).transpose()?;
    let token = call.text("token").trim();
    if token.len() > TOKEN_BYTES_MAX {
        return Err(format!(
            "`token`: expected at most {TOKEN_BYTES_MAX} bytes, got {}",
            token.len()
        )
        .into());
    }
    let malformed = || {
        Failure::from(
            "`token`: expected a JSON Web Token: three parts in Base64, with dots between them",
        )
    };
    let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
    let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
    let part = |text: &str| {
        let bytes = BASE64.decode(text).ok()?;
        match tree::json(std::str::from_utf8(&bytes).ok()?) {
            Ok(Value::Object(fields)) => Some(fields),
            Ok(_) | Err(_) => None,
        }
    };
    let header = part(header).ok_or_else(malformed)?;
    let signature = BASE64.decode(signature).map_err(|_problem| malformed())?;
    let named = header.get("alg").and_then(Value::as_str).unwrap_or_default();
    let algorithm =
        Algorithm::find(named).ok_or("`token`: its algorithm is not supported, or it has none")?;
    if header.contains_key("crit") {
        return Err("`token`: has critical extensions (`crit`), which are not supported".into());
    }
    if wanted.is_some_and(|it| it != algorithm) {
        return Err(format!("`token`: was signed with {}, not with `alg`", algorithm.name()).into());
    }
    let verifier = Verifier::read(call.bytes("key"), algorithm)?;
    if !verifier.verify(signed.as_bytes(), &signature) {
        return Err(
            "`token`: the signature is invalid: it was signed with another key, or changed".into(),
        );
    }
    // Only now: a token that was not signed with the key must reveal nothing.
    let claims = part(claims).ok_or_else(malformed)?;
    check_times(call, &claims)?;
    check_names(call, &claims)?;
    Ok(Value::Object(claims).into())
}

fn check_times(call: &Call, claims: &Map<String, Value>) -> Result<(), Failure> {
    let now = call.surroundings.clock.now().as_duration().as_secs_f64();
    let leeway = call.duration("leeway").unwrap_or_default().as_secs_f64();
    let moment = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(it) => {
            let seconds =
                it.as_f64().ok_or_else(|| format!("`token`: `{name}` is not a number"))?;
            Ok::<_, Failure>(Some(seconds))
        }
    };
    if let Some(exp) = moment("exp")?
        && now >= exp + leeway
    {
        return Err(format!("`token`: has expired {:.0} s ago (`exp`)", now - exp).into());
    }
    if let Some(nbf) = moment("nbf")?
        && now + leeway < nbf
    {
        return Err(format!("`token`: becomes valid in {:.0} s (`nbf`)", nbf - now).into());
    }
    Ok(())
}

fn check_names(call: &Call, claims: &Map<String, Value>) -> Result<(), Failure> {
    if let Some(issuer) = call.some_text("iss")
        && claims.get("iss").and_then(Value::as_str) != Some(issuer)
    {
        return Err(format!("`token`: has another issuer (`iss`) than {issuer:?}, or none").into());
    }
    let audience = call.some_text("aud");
    let among = |wanted: &str| match claims.get("aud") {
        Some(Value::String(it)) => it == wanted,
        Some(Value::Array(all)) => all.iter().any(|it| it.as_str() == Some(wanted)),
        Some(_) | None => false,
    };
    match audience {
        Some(wanted) if !among(wanted) => {
            Err(format!("`token`: is not for the audience {wanted:?} (`aud`)").into())
        }
        None if claims.contains_key("aud") => {
            Err("`token`: has an audience: the option `aud` must name it".into())
        }
        Some(_) | None => Ok(()),
    }
}
