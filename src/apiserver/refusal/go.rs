//! Values as Go formats them: messages of the real server contain them.

use std::{fmt::Write as _, ops::Range};

use crate::sorted::CollectSorted as _;
use serde_json::{Map, Number, Value};

/// Formats a value for a message: strings quoted, everything else as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(it) => number(it),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            escaped(value.to_string())
        }
    }
}

/// Formats a value like `%v`: maps sorted by key, no quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => number(it),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields = sorted(fields).map(|(key, it)| format!("{key}:{}", plain(it)));
            format!("map[{}]", fields.collect::<Vec<String>>().join(" "))
        }
    }
}

/// Returns the type of a value like `%T`.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a list of strings like `%#v`.
pub(crate) fn list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|it| quote(it)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

/// Quotes a string like `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out.push('"');
    out
}

/// Formats a number like `%v`: large floats with an exponent, integers without a point.
pub(crate) fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(it)) => float(it),
        (None, None) => number.to_string(),
    }
}

/// Formats a float like `%v`.
pub(crate) fn float(it: f64) -> String {
    float_within(it, &(1e-4..1e21), 2)
}

/// Formats a float with the shortest digits. Sizes outside of `plain` have an exponent with at least this number of digits.
pub(crate) fn float_within(it: f64, plain: &Range<f64>, digits: usize) -> String {
    let size = it.abs();
    if size == 0.0 || plain.contains(&size) {
        return it.to_string();
    }
    let text = format!("{it:e}");
    // Go always writes the sign of the exponent.
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
    format!("{mantissa}e{sign}{exponent:0>digits$}")
}

fn push_escaped(out: &mut String, c: char) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => "",
    };
    if !short.is_empty() {
        out.push_str(short);
        return;
    }
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let written = match code {
        0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
        _ if c.escape_debug().len() == 1 => {
            out.push(c);
            Ok(())
        }
        0..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok());
}

/// Formats JSON as Go does: the keys of maps are sorted, numbers plain, and `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    match value {
        Value::Number(it) => match (it.as_i64(), it.as_f64()) {
            (None, Some(it)) => float_within(it, &(1e-6..1e21), 1),
            _ => it.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields = sorted(fields).map(|(key, it)| format!("{}:{}", json_text(key), json(it)));
            format!("{{{}}}", fields.collect::<Vec<String>>().join(","))
        }
        Value::String(text) => json_text(text),
        Value::Null | Value::Bool(_) => value.to_string(),
    }
}

fn json_text(text: &str) -> String {
    escaped(Value::String(text.to_owned()).to_string())
}

/// Escapes the characters of JSON that have a meaning in HTML.
fn escaped(mut out: String) -> String {
    for (c, escaped) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        out = out.replace(c, escaped);
    }
    out
}

fn sorted(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    fields.iter().collect_map().into_iter()
}
