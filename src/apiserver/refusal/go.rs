//! Values as Go prints them: the real server does so in its messages.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use serde_json::{Map, Number, Value};

/// A value inside a message: strings quoted, the rest as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(it) => number(it),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            escaped(value.to_string())
        }
    }
}

/// A value as `%v` gives it: maps in the order of their keys, no quotes.
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

/// The type of a value as `%T` gives it.
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

/// A list of strings, as `%#v` gives it.
pub(crate) fn list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|it| quote(it)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

/// A text in double quotes, as `%q` gives it.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out.push('"');
    out
}

/// A number as `%v` gives it: large floats with an exponent, whole ones without a point.
pub(crate) fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(it)) => float(it),
        (None, None) => number.to_string(),
    }
}

/// A float as `%v` gives it.
pub(crate) fn float(it: f64) -> String {
    float_within(it, &(1e-4..1e21), 2)
}

/// The shortest digits. Sizes outside of the range have an exponent, of that many digits at least.
pub(crate) fn float_within(it: f64, plain: &Range<f64>, digits: usize) -> String {
    let size = it.abs();
    if size == 0.0 || plain.contains(&size) {
        return it.to_string();
    }
    let text = format!("{it:e}");
    // Go writes the sign of the exponent always.
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
    // Writing to a text cannot fail.
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

/// JSON as Go writes it: the keys of maps are sorted, numbers plain, and `<`, `>` and `&` escaped.
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

/// JSON with the signs escaped that mean something in HTML.
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
    fields.iter().collect::<BTreeMap<_, _>>().into_iter()
}
