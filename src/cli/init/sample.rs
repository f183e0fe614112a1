//! Generates an object that is valid for the schema of its CRD, as far as a schema alone allows.

use serde_json::{Map, Value, json};

/// Deeper structures are left out.
const DEPTH_MAX: usize = 16;

/// Returns a valid value with the required fields only; empty if none is required.
pub(super) fn of(schema: Option<&Value>) -> Value {
    schema.map_or_else(|| json!({}), |it| value("example", it, 0))
}

fn value(name: &str, schema: &Value, depth: usize) -> Value {
    let known = ["default", "example"].into_iter().find_map(|it| schema.get(it));
    let first = schema.get("enum").and_then(Value::as_array).and_then(|it| it.first());
    if let Some(known) = known.or(first) {
        return known.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => number(schema, "minimum").map_or(json!(1), Value::from),
        Some("number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => list(name, schema, depth),
        Some("object") => object(schema, depth),
        Some("string") => text(name, schema),
        // Also for an integer or a string.
        Some(_) | None => json!(1),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let mut fields = Map::new();
    for name in required.take_while(|_| depth < DEPTH_MAX) {
        let inner = schema.pointer("/properties").and_then(|it| it.get(name));
        fields.insert(name.to_owned(), inner.map_or(Value::Null, |it| value(name, it, depth + 1)));
    }
    Value::Object(fields)
}

fn list(name: &str, schema: &Value, depth: usize) -> Value {
    let least = number(schema, "minItems").unwrap_or(0);
    let item = schema.get("items").map_or_else(|| json!({}), |it| value(name, it, depth + 1));
    (0..least).map(|_| item.clone()).collect()
}

/// Formats that servers validate have a fixed sample; other strings repeat the name of their field.
fn text(name: &str, schema: &Value) -> Value {
    let formatted = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => Some("2030-01-01T00:00:00Z"),
        Some("date") => Some("2030-01-01"),
        Some("duration") => Some("1h"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("cidr") => Some("192.0.2.0/24"),
        Some("uri") => Some("https://example.com/"),
        Some("email") => Some("somebody@example.com"),
        Some("hostname") => Some("example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("byte") => Some("ZXhhbXBsZQ=="),
        Some(_) | None => None,
    };
    if let Some(formatted) = formatted {
        return formatted.into();
    }
    let least = number(schema, "minLength").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let most = number(schema, "maxLength").and_then(|it| usize::try_from(it).ok());
    let own: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let long = own.chars().chain(std::iter::repeat('x'));
    let count = own.chars().count().max(least).min(most.unwrap_or(usize::MAX));
    long.take(count).collect::<String>().into()
}

fn number(schema: &Value, name: &str) -> Option<i64> {
    schema.get(name).and_then(Value::as_i64)
}
