//! Values between a script, a template and its output, and the check of everything that a template computes.

use minijinja::{
    Error, ErrorKind,
    value::{Value, ValueKind},
};
use serde_json::{Map, Value as Json};

use crate::scripting::functions::{bounds::ITEMS_MAX, outcome::Failure, pace};
use crate::scripting::values::{limits, text};
use crate::sorted::CollectSorted as _;

/// Maximum nesting of lists and maps of a template.
const DEPTH_MAX: usize = 64;

/// Returns a problem of a template with this message only.
pub(super) fn problem(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Counts one step of a template: ends it if the call has used up its time or its memory.
pub(super) fn step() -> Result<(), Error> {
    pace::step().map_err(|it| problem(it.into_message()))
}

/// Converts a value of a script. A null field is absent.
pub(super) fn of_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::UNDEFINED,
        Json::Bool(it) => Value::from(*it),
        Json::Number(it) => match (it.as_i64(), it.as_u64(), it.as_f64()) {
            (Some(it), _, _) => Value::from(it),
            (None, Some(it), _) => Value::from(it),
            (None, None, it) => Value::from(it.unwrap_or_default()),
        },
        Json::String(it) => Value::from(it.as_str()),
        Json::Array(items) => items.iter().map(of_json).collect(),
        Json::Object(fields) => {
            let fields = fields.iter().filter(|(_, it)| !it.is_null());
            let fields = fields.map(|(key, it)| (Value::from(key.as_str()), of_json(it)));
            Value::from(fields.collect_map())
        }
    }
}

/// Counts the size of a value as output.
struct Weight {
    items: usize,
    bytes: usize,
    size_max: usize,
}

/// Rejects a value that is too large or too deep, however much its parts share.
pub(super) fn check(value: &Value, size_max: usize) -> Result<(), Error> {
    step()?;
    Weight { items: 0, bytes: 0, size_max }.add(value, 0)
}

impl Weight {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let items = |of: &Value| of.try_iter();
        match value.kind() {
            ValueKind::String | ValueKind::Bytes => {
                self.bytes += value.as_bytes().map_or(0, <[u8]>::len);
                if self.bytes > self.size_max {
                    return Err(problem(limits::too_long_text(self.size_max)));
                }
                Ok(())
            }
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
                if depth >= DEPTH_MAX {
                    return Err(problem(format!(
                        "a value is nested deeper than {DEPTH_MAX} levels"
                    )));
                }
                let is_map = value.kind() == ValueKind::Map;
                for item in items(value)? {
                    self.items += 1;
                    pace::short_step(self.items).map_err(|it| problem(it.into_message()))?;
                    if self.items > ITEMS_MAX {
                        return Err(problem(limits::too_many_items("a value", ITEMS_MAX)));
                    }
                    self.add(&item, depth + 1)?;
                    if is_map {
                        self.add(&value.get_item(&item)?, depth + 1)?;
                    }
                }
                Ok(())
            }
            _scalar => Ok(()),
        }
    }
}

/// Converts a value to data. A value that is not data, such as a macro, becomes a string.
pub(super) fn to_json(value: &Value) -> Result<Json, Error> {
    json_at(value, 0)
}

fn json_at(value: &Value, depth: usize) -> Result<Json, Error> {
    if depth > DEPTH_MAX {
        return Err(problem(format!("a value is nested deeper than {DEPTH_MAX} levels")));
    }
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => number(value),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.enumerate();
            let items = items.map(|(place, item)| {
                pace::short_step(place).map_err(|it| problem(it.into_message()))?;
                json_at(&item, depth + 1)
            });
            Json::Array(items.collect::<Result<_, Error>>()?)
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for (place, key) in value.try_iter()?.enumerate() {
                pace::short_step(place).map_err(|it| problem(it.into_message()))?;
                let field = json_at(&value.get_item(&key)?, depth + 1)?;
                fields.insert(written(&key)?, field);
            }
            Json::Object(fields)
        }
        _text => Json::String(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    })
}

fn number(value: &Value) -> Json {
    if value.is_integer() {
        if let Ok(it) = i64::try_from(value.clone()) {
            return it.into();
        }
        if let Ok(it) = u64::try_from(value.clone()) {
            return it.into();
        }
    }
    f64::try_from(value.clone()).map_or(Json::Null, Json::from)
}

/// Formats a value for the output: strings as they are, data as JSON.
pub(super) fn written(value: &Value) -> Result<String, Error> {
    if let Some(it) = value.as_str() {
        return Ok(it.to_owned());
    }
    Ok(match to_json(value)? {
        Json::Null => String::new(),
        Json::String(it) => it,
        it @ (Json::Bool(_) | Json::Number(_)) => it.to_string(),
        it @ (Json::Array(_) | Json::Object(_)) => text::shown(&it),
    })
}

/// Returns a value as messages show it.
pub(super) fn shown(value: &Value) -> String {
    /// Enough to recognize it.
    const CHARACTERS: usize = 60;
    let written = to_json(value).map_or_else(|it| it.to_string(), |it| text::shown(&it));
    match written.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", written.get(..end).unwrap_or_default()),
        None => written,
    }
}

/// Joins all parts into a string, unless it is too long.
pub(super) fn joined(
    parts: impl Iterator<Item = Result<String, Error>>,
    separator: &str,
    size_max: usize,
) -> Result<String, Error> {
    let mut joined = String::new();
    for (place, part) in parts.enumerate() {
        pace::short_step(place).map_err(Failure::into_message).map_err(problem)?;
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&part?);
        if joined.len() > size_max {
            return Err(problem(limits::too_long_text(size_max)));
        }
    }
    Ok(joined)
}
