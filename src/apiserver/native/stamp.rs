//! Values without parts: their types, and the form in which the real server writes them.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{facts::Form, quantity::Quantity};
use crate::request::json::type_name;

/// Checks a value and brings it into its canonical form. The error is worded as the real server words it, without the place.
pub(super) fn scalar(form: &Form, value: &mut Value) -> Result<(), String> {
    let fits = match form {
        Form::Text => value.is_string(),
        Form::Bool => value.is_boolean(),
        Form::Int32 => value.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        Form::Int64 => value.is_i64(),
        Form::Float => value.is_number(),
        Form::IntOrText => int_or_text(value)?,
        Form::Bytes => {
            *value = json!(bytes(value)?);
            true
        }
        Form::Quantity => {
            *value = json!(quantity(value)?.canonical());
            true
        }
        Form::Time => {
            *value = json!(time(value)?);
            true
        }
        Form::MicroTime => {
            *value = json!(micro_time(value)?);
            true
        }
        Form::Any | Form::List(..) | Form::Map(_) | Form::Struct(_) => true,
    };
    if fits { Ok(()) } else { Err(format!("unexpected value {value}")) }
}

fn int_or_text(value: &Value) -> Result<bool, String> {
    let is_32 = |it: &Value| it.as_i64().is_some_and(|it| i32::try_from(it).is_ok());
    if value.is_string() || is_32(value) {
        return Ok(true);
    }
    let found = match value {
        Value::Bool(_) => "bool".into(),
        Value::Array(_) => "array".into(),
        Value::Object(_) => "object".into(),
        Value::Null | Value::Number(_) | Value::String(_) => format!("number {value}"),
    };
    Err(format!("unmarshalerDecoder: json: cannot unmarshal {found} into Go value of type int32"))
}

/// Base64, or the bytes as numbers.
fn bytes(value: &Value) -> Result<String, String> {
    let number = |it: &Value| u8::try_from(it.as_u64()?).ok();
    match value {
        Value::String(text) => base64(text),
        Value::Array(items) => {
            let bytes: Option<Vec<u8>> = items.iter().map(number).collect();
            bytes
                .map(|it| STANDARD.encode(it))
                .ok_or_else(|| "[]uint8: readUint32: unexpected value".into())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("base64Codec: invalid input".into())
        }
    }
}

/// Go skips line breaks inside of base64.
fn base64(text: &str) -> Result<String, String> {
    let bare: String = text.chars().filter(|it| !matches!(it, '\r' | '\n')).collect();
    match STANDARD.decode(&bare) {
        Ok(bytes) => Ok(STANDARD.encode(bytes)),
        Err(error) => {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _)
                | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                    bare.len() / 4 * 4
                }
            };
            Err(format!("decode base64: illegal base64 data at input byte {at}"))
        }
    }
}

fn quantity(value: &Value) -> Result<Quantity, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    Quantity::parse(&text).map_err(|it| format!("unmarshalerDecoder: {it}"))
}

fn instant(value: &Value, layout: &str) -> Result<Timestamp, String> {
    let Some(text) = value.as_str() else {
        return Err(format!(
            "unmarshalerDecoder: json: cannot unmarshal {} into Go value of type string",
            type_name(value)
        ));
    };
    // jiff takes more than RFC 3339, such as other separators; Go does not.
    let strict = text.as_bytes().get(10) == Some(&b'T') && text.len() >= 20;
    let parsed = text.parse::<Timestamp>().ok().filter(|_| strict);
    parsed.ok_or_else(|| format!("unmarshalerDecoder: parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}

fn time(value: &Value) -> Result<String, String> {
    let instant = instant(value, "2006-01-02T15:04:05Z07:00")?;
    Ok(instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn micro_time(value: &Value) -> Result<String, String> {
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    // Exactly six digits, nothing shorter.
    let seconds =
        |it: &str| it.get(..19).is_some_and(|it| it.parse::<jiff::civil::DateTime>().is_ok());
    if let Some(rest) = value.as_str().filter(|it| seconds(it)).and_then(|it| it.get(19..)) {
        let digits =
            rest.strip_prefix('.').map(|it| it.bytes().take_while(u8::is_ascii_digit).count());
        if digits != Some(6) {
            let text = value.as_str().unwrap_or_default();
            return Err(format!(
                "unmarshalerDecoder: parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \".000000\""
            ));
        }
    }
    let instant = instant(value, layout)?;
    Ok(instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// A text as base64, as secrets keep it.
pub(super) fn encode(text: &str) -> String {
    STANDARD.encode(text)
}
