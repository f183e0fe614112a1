//! Values as Go prints them: the real server does so in its messages.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Number, Value};

/// Longer values would make messages nobody reads; deeper ones do not come out of the parser anyway.
const DEPTH_MAX: usize = 128;

/// A value inside a message: texts quoted, numbers and booleans plain, the rest as Go source.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => "\"null\"".into(),
        Value::String(text) => quote(text),
        Value::Number(it) => number(it),
        Value::Bool(it) => it.to_string(),
        Value::Array(_) | Value::Object(_) => source(value, DEPTH_MAX),
    }
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
    let size = it.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{it:e}");
        // Go writes the sign of the exponent always, and two digits at least.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{it}")
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

/// As `%#v` gives it. The keys of maps are sorted.
fn source(value: &Value, depth: usize) -> String {
    if depth == 0 {
        return "...".into();
    }
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => number(it),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|it| source(it, depth - 1)).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields =
                sorted.iter().map(|(key, it)| format!("{}:{}", quote(key), source(it, depth - 1)));
            let fields: Vec<String> = fields.collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// JSON as Go writes it: the keys of maps are sorted, numbers plain, and `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    match value {
        Value::Number(it) => number(it),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields = sorted.iter().map(|(key, it)| format!("{}:{}", json_text(key), json(it)));
            format!("{{{}}}", fields.collect::<Vec<String>>().join(","))
        }
        Value::String(text) => json_text(text),
        Value::Null | Value::Bool(_) => value.to_string(),
    }
}

fn json_text(text: &str) -> String {
    let mut out = Value::String(text.to_owned()).to_string();
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
