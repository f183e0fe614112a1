//! Paths into structures: reads, sets and removes the value at `spec.field`.
//!
//! The contract is `tests/vectors/dicts-utils.json`. Only maps are traversed: lists and scalars have no fields.

use serde_json::{Map, Value};

use crate::settings::FieldPath;

/// The reason why a field cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Neither a string nor a list of strings.
    #[error("a field must be a string such as `spec.field` or a list of keys, not {0}")]
    Malformed(Value),
    /// The key is absent.
    #[error("there is no field {0:?}")]
    Absent(String),
    /// A value on the path is not a map.
    #[error("there is no map to look for the field {0:?} in")]
    NotMap(String),
    /// The whole structure cannot be set or removed.
    #[error("expected a field, not the whole structure")]
    Root,
}

/// Reads a field as users write it: null is the root, a string is split at its dots, a list is taken unchanged.
pub fn parse(field: &Value) -> Result<FieldPath, FieldError> {
    let malformed = || FieldError::Malformed(field.clone());
    match field {
        Value::Null => Ok(FieldPath::new()),
        Value::String(text) => Ok(split(text)),
        Value::Array(keys) => {
            keys.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(malformed)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(malformed()),
    }
}

/// Splits a dotted path. Dots cannot be escaped: keys with dots need a list.
pub fn split(text: &str) -> FieldPath {
    text.split('.').map(str::to_owned).collect()
}

/// Returns the value at the path, if the whole path exists. A null at the end exists.
pub fn get<'a, K: AsRef<str>>(root: &'a Value, path: &[K]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, key| value.as_object()?.get(key.as_ref()))
}

/// Returns the value at the path in a map.
pub fn get_in<'a, K: AsRef<str>>(root: &'a Map<String, Value>, path: &[K]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    get(root.get(first.as_ref())?, rest)
}

/// Returns the value at the path, or an error that names the missing key.
pub fn resolve<'a>(root: &'a Value, path: &[String]) -> Result<&'a Value, FieldError> {
    path.iter().try_fold(root, |value, key| {
        let map = value.as_object().ok_or_else(|| FieldError::NotMap(key.clone()))?;
        map.get(key).ok_or_else(|| FieldError::Absent(key.clone()))
    })
}

/// Sets a field and creates the missing maps above it.
pub fn ensure(
    root: &mut Map<String, Value>,
    path: &[String],
    value: Value,
) -> Result<(), FieldError> {
    let (last, parents) = path.split_last().ok_or(FieldError::Root)?;
    let mut map = root;
    for key in parents {
        let below = map.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()));
        map = below.as_object_mut().ok_or_else(|| FieldError::NotMap(key.clone()))?;
    }
    map.insert(last.clone(), value);
    Ok(())
}

/// Sets a field unconditionally: anything on the path that is not a map is replaced by one. The root itself cannot be set.
pub fn put<K: AsRef<str>>(root: &mut Map<String, Value>, path: &[K], value: Value) {
    match path {
        [] => {}
        [last] => {
            root.insert(last.as_ref().to_owned(), value);
        }
        [first, rest @ ..] => {
            let below = root.entry(first.as_ref()).or_insert(Value::Null);
            if let Value::Object(map) = below {
                put(map, rest, value);
            } else {
                let mut map = Map::new();
                put(&mut map, rest, value);
                *below = Value::Object(map);
            }
        }
    }
}

/// Removes a field, then the maps above it that are empty now, or were before. An absent field is not an error.
pub fn remove<K: AsRef<str>>(root: &mut Map<String, Value>, path: &[K]) -> Result<(), FieldError> {
    let (first, rest) = path.split_first().ok_or(FieldError::Root)?;
    let key = first.as_ref();
    if rest.is_empty() {
        root.shift_remove(key);
        return Ok(());
    }
    let Some(below) = root.get_mut(key) else { return Ok(()) };
    let below = below.as_object_mut().ok_or_else(|| FieldError::NotMap(key.to_owned()))?;
    remove(below, rest)?;
    if below.is_empty() {
        root.shift_remove(key);
    }
    Ok(())
}

/// Copies the fields that exist from one structure to the other.
pub fn cherrypick(
    source: &Value,
    target: &mut Map<String, Value>,
    fields: &[FieldPath],
) -> Result<(), FieldError> {
    for path in fields {
        match resolve(source, path) {
            Ok(value) => ensure(target, path, value.clone())?,
            Err(FieldError::Absent(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns all maps of nested lists, each followed by the maps in its `nested` fields.
pub fn walk<'a>(objects: &'a Value, nested: &[FieldPath]) -> Result<Vec<&'a Value>, FieldError> {
    let mut found = Vec::new();
    walk_into(&mut found, objects, nested)?;
    Ok(found)
}

fn walk_into<'a>(
    found: &mut Vec<&'a Value>,
    objects: &'a Value,
    nested: &[FieldPath],
) -> Result<(), FieldError> {
    match objects {
        Value::Null => {}
        Value::Array(items) => {
            for item in items {
                walk_into(found, item, nested)?;
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            found.push(objects);
            for path in nested {
                match resolve(objects, path) {
                    Ok(value) => found.push(value),
                    Err(FieldError::Absent(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}
