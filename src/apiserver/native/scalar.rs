//! Scalar values: their types and their canonical form.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{facts::GoValueType, quantity::Quantity};

/// Limit of the length of values in messages, in characters.
const SHOWN_MAX: usize = 60;

/// Checks the value at `path` and converts it to its canonical form.
///
/// # Errors
/// Returns the message with the expected type.
pub(super) fn settle(form: &GoValueType, value: &mut Value, path: &str) -> Result<(), String> {
    let is_32 = |it: &Value| it.as_i64().is_some_and(|it| i32::try_from(it).is_ok());
    let canonical = match form {
        GoValueType::Text => value.is_string().then_some(None),
        GoValueType::Bool => value.is_boolean().then_some(None),
        GoValueType::Int32 => is_32(value).then_some(None),
        GoValueType::Int64 => value.is_i64().then_some(None),
        GoValueType::Float => value.is_number().then_some(None),
        GoValueType::IntOrText => (value.is_string() || is_32(value)).then_some(None),
        GoValueType::Bytes => bytes(value).map(Some),
        GoValueType::Quantity => quantity(value).map(|it| Some(it.canonical())),
        GoValueType::Time => time(value).map(Some),
        GoValueType::MicroTime => micro_time(value).map(Some),
        GoValueType::Any | GoValueType::List(_) | GoValueType::Map(_) | GoValueType::Struct(_) => {
            Some(None)
        }
    };
    match canonical {
        Some(None) => Ok(()),
        Some(Some(text)) => {
            *value = json!(text);
            Ok(())
        }
        None => Err(unexpected(name(form), value, path)),
    }
}

fn name(form: &GoValueType) -> &'static str {
    match form {
        GoValueType::Text => "a string",
        GoValueType::Bool => "a boolean",
        GoValueType::Int32 => "a 32-bit integer",
        GoValueType::Int64 => "an integer",
        GoValueType::Float => "a number",
        GoValueType::IntOrText => "an integer or a string",
        GoValueType::Bytes => "base64",
        GoValueType::Quantity => "a quantity, such as 500m or 1Gi",
        GoValueType::Time => "a time, such as 2006-01-02T15:04:05Z",
        GoValueType::MicroTime => "a time with microseconds, such as 2006-01-02T15:04:05.000000Z",
        GoValueType::Any | GoValueType::List(_) | GoValueType::Map(_) | GoValueType::Struct(_) => {
            "another value"
        }
    }
}

/// Returns the message about a value with a wrong type: `spec.replicas: expected an integer, got "2"`.
pub(super) fn unexpected(expected: &str, value: &Value, path: &str) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{place}expected {expected}, got {shown}")
}

/// Converts bytes, given in base64 or as a list of numbers, to base64.
fn bytes(value: &Value) -> Option<String> {
    let number = |it: &Value| u8::try_from(it.as_u64()?).ok();
    match value {
        Value::String(text) => base64(text),
        Value::Array(items) => {
            let bytes: Option<Vec<u8>> = items.iter().map(number).collect();
            bytes.map(|it| STANDARD.encode(it))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Converts base64 to its canonical form. Line breaks are skipped.
fn base64(text: &str) -> Option<String> {
    let bare: String = text.chars().filter(|it| !matches!(it, '\r' | '\n')).collect();
    STANDARD.decode(&bare).ok().map(|it| STANDARD.encode(it))
}

fn quantity(value: &Value) -> Option<Quantity> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    Quantity::parse(&text).ok()
}

fn instant(value: &Value) -> Option<Timestamp> {
    let text = value.as_str()?;
    // jiff accepts more than RFC 3339, such as other separators.
    let strict = text.as_bytes().get(10) == Some(&b'T') && text.len() >= 20;
    text.parse::<Timestamp>().ok().filter(|_| strict)
}

fn time(value: &Value) -> Option<String> {
    Some(instant(value)?.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Converts a time with exactly six digits after the second.
fn micro_time(value: &Value) -> Option<String> {
    let rest = value.as_str()?.get(19..)?.strip_prefix('.')?;
    if rest.bytes().take_while(u8::is_ascii_digit).count() != 6 {
        return None;
    }
    Some(instant(value)?.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// Encodes a string in base64, as Secrets store it.
pub(super) fn encode(text: &str) -> String {
    STANDARD.encode(text)
}
