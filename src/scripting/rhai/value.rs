//! Values across the border: JSON to Rhai and back, without a loss.
//!
//! What JSON cannot hold is refused with its path. Integers stay `i64`, floats stay floats, `()` is null.

use std::fmt::Write as _;

use rhai::{Array, Dynamic, Engine, Map};
use serde_json::Value;

use super::{live::Live, view::View};
use crate::scripting::text::shown;

/// The deepest nesting of a value that leaves a script; a value that contains itself ends here.
const DEPTH_MAX: usize = 128;

/// A plain value of the language, all levels copied: for `kopf.copy` and for lists that a script may change.
pub(super) fn plain(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(it) => (*it).into(),
        Value::Number(it) => number(it),
        Value::String(it) => it.into(),
        Value::Array(items) => Dynamic::from_array(items.iter().map(plain).collect()),
        Value::Object(fields) => Dynamic::from_map(
            fields.iter().map(|(key, value)| (key.as_str().into(), plain(value))).collect(),
        ),
    }
}

/// A read-only value: maps are views, which copy nothing; lists are lists of such values.
pub(super) fn frozen(view: &View, value: &Value) -> Dynamic {
    match value {
        Value::Object(_) => Dynamic::from(view.clone()),
        Value::Array(items) => Dynamic::from_array(
            items.iter().enumerate().map(|(index, item)| frozen(&view.item(index), item)).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => plain(value),
    }
}

fn number(number: &serde_json::Number) -> Dynamic {
    // Above the range of `i64` a float is the nearest there is.
    number
        .as_i64()
        .map_or_else(|| Dynamic::from_float(number.as_f64().unwrap_or(f64::NAN)), Dynamic::from_int)
}

/// The JSON of a value; the error names the path of what JSON cannot hold, starting with `name`.
pub(super) fn to_json(name: &str, value: &Dynamic) -> Result<Value, String> {
    convert(&mut vec![name.to_owned()], value)
}

/// The JSON of a value, if there is one.
pub(super) fn json_of(value: &Dynamic) -> Option<Value> {
    to_json("", value).ok()
}

fn convert(path: &mut Vec<String>, value: &Dynamic) -> Result<Value, String> {
    if path.len() > DEPTH_MAX {
        return Err(refused(path, "a value nested deeper than 128 levels, or inside itself"));
    }
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(it) = value.as_bool() {
        return Ok(it.into());
    }
    if let Ok(it) = value.as_int() {
        return Ok(it.into());
    }
    if let Ok(it) = value.as_float() {
        let number = serde_json::Number::from_f64(it);
        return number.map(Value::Number).ok_or_else(|| refused(path, &format!("the number {it}")));
    }
    if let Ok(it) = value.as_immutable_string_ref() {
        return Ok(it.as_str().into());
    }
    if let Ok(it) = value.as_char() {
        return Ok(it.to_string().into());
    }
    if let Ok(items) = value.as_array_ref() {
        return list(path, &items);
    }
    if let Ok(fields) = value.as_map_ref() {
        return map(path, &fields);
    }
    if let Some(view) = value.read_lock::<View>() {
        return Ok(view.json());
    }
    if let Some(live) = value.read_lock::<Live>() {
        return Ok(live.json());
    }
    let what = if value.is_fnptr() { "a function" } else { "a value that is no data" };
    Err(refused(path, what))
}

fn list(path: &mut Vec<String>, items: &Array) -> Result<Value, String> {
    let mut list = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        path.push(format!("[{index}]"));
        list.push(convert(path, item)?);
        path.pop();
    }
    Ok(Value::Array(list))
}

fn map(path: &mut Vec<String>, fields: &Map) -> Result<Value, String> {
    let mut map = serde_json::Map::with_capacity(fields.len());
    for (key, value) in fields {
        path.push(key.to_string());
        map.insert(key.to_string(), convert(path, value)?);
        path.pop();
    }
    Ok(Value::Object(map))
}

fn refused(path: &[String], what: &str) -> String {
    /// Enough to find the place; the path of an endless value is long.
    const SHOWN: usize = 8;
    let mut place = String::new();
    for step in path.iter().take(SHOWN) {
        if !place.is_empty() && !step.starts_with('[') {
            place.push('.');
        }
        place.push_str(step);
    }
    if path.len() > SHOWN {
        // Writing to a string cannot fail.
        write!(place, "…").ok();
    }
    format!("{place}: {what} cannot be kept as JSON")
}

/// The text of a value as `print` shows it: strings as they are, data as compact JSON.
pub(super) fn text(value: &Dynamic) -> String {
    if value.is_unit() {
        return String::new();
    }
    if let Ok(it) = value.as_immutable_string_ref() {
        return it.to_string();
    }
    match json_of(value) {
        Some(json @ (Value::Array(_) | Value::Object(_))) => shown(&json),
        Some(_) | None => value.to_string(),
    }
}

/// Whether two values are the same data; for assignments that Rhai makes by itself.
pub(super) fn same(a: &Dynamic, b: &Dynamic) -> bool {
    match (json_of(a), json_of(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.type_id() == b.type_id(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Makes lists and maps print as compact JSON, as views do.
pub(super) fn register(engine: &mut Engine) {
    let of_array = |it: Array| text(&Dynamic::from_array(it));
    let of_map = |it: Map| text(&Dynamic::from_map(it));
    engine
        .register_fn("to_string", of_array)
        .register_fn("print", of_array)
        .register_fn("to_string", of_map)
        .register_fn("print", of_map);
}
