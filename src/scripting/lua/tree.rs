//! Reading and writing JSON by path, for the live views.

use serde_json::{Map, Value};

/// The value at this path; list items count from 1, as in Lua.
pub(super) fn lookup<'a>(root: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(first)?, |value, key| match value {
        Value::Object(map) => map.get(key),
        Value::Array(items) => items.get(place(key)?.checked_sub(1)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Puts a value at this path, creating the levels on the way; what is no map or list on the way is replaced.
///
/// The error says why a list cannot take the value.
pub(super) fn assign(
    root: &mut Map<String, Value>,
    path: &[String],
    value: Value,
) -> Result<(), &'static str> {
    let Some((last, parents)) = path.split_last() else {
        return Err("the whole cannot be replaced");
    };
    let Some((first, rest)) = parents.split_first() else {
        root.insert(last.clone(), value);
        return Ok(());
    };
    let mut level = root.entry(first.clone()).or_insert(Value::Null);
    for key in rest {
        level = child(level, key)?;
    }
    *child(level, last)? = value;
    Ok(())
}

fn child<'a>(level: &'a mut Value, key: &str) -> Result<&'a mut Value, &'static str> {
    if !level.is_array() && !level.is_object() {
        *level = Value::Object(Map::new());
    }
    match level {
        Value::Array(items) => {
            let index = place(key).and_then(|it| it.checked_sub(1));
            let index = index.ok_or("a list has no keys besides 1, 2, 3, …")?;
            if index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(index).ok_or("a list with holes")
        }
        Value::Object(map) => Ok(map.entry(key).or_insert(Value::Null)),
        // Replaced above.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err("not a map or a list")
        }
    }
}

/// Turns an empty map at this path into an empty list: its first item is about to be assigned.
pub(super) fn make_list(root: &mut Map<String, Value>, path: &[String]) {
    if let Some(level) = lookup_mut(root, path)
        && level.as_object().is_some_and(Map::is_empty)
    {
        *level = Value::Array(Vec::new());
    }
}

/// Removes what is at this path, if anything; the levels above stay.
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
            Some(last) if last < items.len() => Err("a list with holes; use table.remove"),
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
