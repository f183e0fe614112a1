//! Reads and writes JSON by path, for memos and patches. Only Lua has paths into lists: their indexes count from 1.

use serde_json::{Map, Value};

/// Why a value cannot be written at a path.
pub(super) enum Misplaced {
    /// After this many steps there is a value that is neither a map nor a list.
    NoLevel(usize),
    /// A list cannot accept it.
    InList(&'static str),
}

impl Misplaced {
    /// Returns the message for a path.
    pub(super) fn at(&self, root: &str, path: &[String]) -> String {
        match self {
            Misplaced::NoLevel(steps) => {
                let level = path.get(..*steps).unwrap_or_default().join(".");
                format!("{root}.{level} is not a map")
            }
            Misplaced::InList(problem) => format!("{root}.{}: {problem}", path.join(".")),
        }
    }
}

/// Returns the value at this path.
pub(super) fn lookup<'a>(root: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(first)?, |value, key| step(value, key))
}

/// Returns the value at a key of the level at this path.
pub(super) fn below<'a>(
    root: &'a Map<String, Value>,
    path: &[String],
    key: &str,
) -> Option<&'a Value> {
    if path.is_empty() { root.get(key) } else { step(lookup(root, path)?, key) }
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key),
        Value::Array(items) => items.get(place(key)?.checked_sub(1)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Writes a value at this path, and creates missing levels.
pub(super) fn assign(
    root: &mut Map<String, Value>,
    path: &[String],
    value: Value,
    has_lists: bool,
) -> Result<(), Misplaced> {
    let Some((first, rest)) = path.split_first() else { return Err(Misplaced::NoLevel(0)) };
    if rest.is_empty() {
        root.insert(first.clone(), value);
        return Ok(());
    }
    let mut level = root.entry(first.as_str()).or_insert(Value::Null);
    for (steps, key) in (1..).zip(rest) {
        if level.is_null() {
            *level = Value::Object(Map::new());
        }
        level = match level {
            Value::Object(map) => map.entry(key.as_str()).or_insert(Value::Null),
            Value::Array(items) if has_lists => item(items, key).map_err(Misplaced::InList)?,
            Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => return Err(Misplaced::NoLevel(steps)),
        };
    }
    *level = value;
    Ok(())
}

fn item<'a>(items: &'a mut Vec<Value>, key: &str) -> Result<&'a mut Value, &'static str> {
    let index = place(key).and_then(|it| it.checked_sub(1));
    let index = index.ok_or("the keys of a list are 1, 2, 3, …")?;
    if index == items.len() {
        items.push(Value::Null);
    }
    items.get_mut(index).ok_or("a list with holes")
}

/// Turns an empty map at this path into an empty list: its first item is about to be assigned.
pub(super) fn make_list(root: &mut Map<String, Value>, path: &[String]) {
    if let Some(level) = lookup_mut(root, path)
        && level.as_object().is_some_and(Map::is_empty)
    {
        *level = Value::Array(Vec::new());
    }
}

/// Removes the value at this path, if there is one; the levels above stay.
pub(super) fn remove(root: &mut Map<String, Value>, path: &[String]) -> Result<(), &'static str> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    if parents.is_empty() {
        root.shift_remove(last);
        return Ok(());
    }
    match lookup_mut(root, parents) {
        Some(Value::Object(map)) => {
            map.shift_remove(last);
            Ok(())
        }
        Some(Value::Array(items)) => match place(last) {
            Some(last) if last == items.len() => {
                items.pop();
                Ok(())
            }
            Some(last) if last < items.len() => {
                Err("this would leave a hole in the list; use table.remove")
            }
            Some(_) | None => Ok(()),
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => Ok(()),
    }
}

fn lookup_mut<'a>(root: &'a mut Map<String, Value>, path: &[String]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get_mut(first)?, |value, key| match value {
        Value::Object(map) => map.get_mut(key),
        Value::Array(items) => items.get_mut(place(key)?.checked_sub(1)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

fn place(key: &str) -> Option<usize> {
    key.parse().ok()
}
