//! Values as Go prints them: in cells of text columns.

use serde_json::Value;

/// Texts as they are, parts of objects as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(number)) => float(number, (-4, 6), 2),
            (None, None) => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            let mut out = String::new();
            write_json(value, &mut out);
            out
        }
    }
}

/// Sorted by name, and safe to stand in HTML. The depth is bounded by the parser that has read the value.
fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(number)) => out.push_str(&float(number, (-6, 21), 1)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    for letter in Value::from(text).to_string().chars() {
        match letter {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            letter => out.push(letter),
        }
    }
}

/// The shortest digits. An exponent is shown if it is below the first border, or not below the second one, with that many
/// digits.
fn float(number: f64, (low, high): (i32, i32), digits: usize) -> String {
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent < low || exponent >= high => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:0digits$}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}
