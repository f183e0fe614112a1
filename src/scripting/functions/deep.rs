//! `deep`: maps in maps.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    Call,
    bounds::{equal, room_for},
};
use crate::logic::object::diff;
use crate::scripting::{
    functions::{
        outcome::Failure,
        types::{Library, Parameter, Type, immediate, optional, required},
    },
    values::{refused::DEPTH_MAX, text::shown},
};

const VALUE: Parameter = required("value", Type::Any, "A map or a list; it is not changed.");
const PATH: Parameter = required(
    "path",
    Type::Any,
    "A string such as `a.b[0].c`, where list indexes count from 0, or a list of keys and indexes: at most 128 steps; more are an error.",
);
const KEYS: Parameter = required("keys", Type::List, "Names of top-level fields.");
const MAP: Parameter = required("map", Type::Map, "A map; it is not changed.");

pub(super) const LIBRARY: Library = Library {
    name: "deep",
    doc: "Functions for nested maps and lists. They do not change their arguments, but return new values.",
    functions: &[
        immediate(
            "get",
            "Returns the value at a path, or the default if there is none: `deep.get(pod, \"spec.containers[0].image\")`.",
            &[
                VALUE,
                PATH,
                optional("default", Type::Any, "The result if there is no value; default: nil."),
            ],
            Type::Any,
            |call| {
                let found = get(call.value("value"), &path(call)?);
                Ok(found.unwrap_or_else(|| call.value("default")).clone().into())
            },
        ),
        immediate(
            "has",
            "Returns whether there is a value at a path.",
            &[VALUE, PATH],
            Type::Boolean,
            |call| Ok(Value::from(get(call.value("value"), &path(call)?).is_some()).into()),
        ),
        immediate(
            "set",
            "Returns a copy with a value set at a path; creates missing maps. The index after the last item of a list appends an item.",
            &[VALUE, PATH, required("new", Type::Any, "The value to set.")],
            Type::Any,
            |call| {
                let mut copy = call.value("value").clone();
                set(&mut copy, &path(call)?, call.value("new"))?;
                Ok(copy.into())
            },
        ),
        immediate(
            "remove",
            "Returns a copy without the value at a path.",
            &[VALUE, PATH],
            Type::Any,
            |call| {
                let mut copy = call.value("value").clone();
                remove(&mut copy, &path(call)?);
                Ok(copy.into())
            },
        ),
        immediate(
            "merge",
            "Merges two maps; nested maps are merged too, all other values are taken from the second one. Null in the second one removes a field, as in a merge patch.",
            &[MAP, required("over", Type::Map, "The first map.")],
            Type::Map,
            |call| {
                let mut merged = call.value("map").clone();
                merge(&mut merged, call.value("over"));
                Ok(merged.into())
            },
        ),
        immediate(
            "equal",
            "Returns whether two values are the same data: the order of fields does not matter, `1` and `1.0` are equal.",
            &[required("a", Type::Any, "A value."), required("b", Type::Any, "Another value.")],
            Type::Boolean,
            |call| Ok(Value::from(equal(call.value("a"), call.value("b"))).into()),
        ),
        immediate(
            "copy",
            "Returns a copy that shares nothing with the original; also of read-only parts of an object.",
            &[VALUE],
            Type::Any,
            |call| Ok(call.value("value").clone().into()),
        ),
        immediate(
            "diff",
            "Returns the differences between two values: a list of `{op, field, old, new}` as in `ctx.diff`. Null is treated like a missing field.",
            &[
                required("old", Type::Any, "The old value."),
                required("new", Type::Any, "The new value."),
            ],
            Type::List,
            |call| Ok(differences(call)?.into()),
        ),
        immediate("keys", "Returns the sorted names of the fields.", &[MAP], Type::List, |call| {
            let mut keys: Vec<_> = call.map("map").into_iter().flat_map(Map::keys).collect();
            keys.sort();
            Ok(keys.into_iter().map(String::as_str).collect::<Value>().into())
        }),
        immediate(
            "pick",
            "Returns a copy with these fields only.",
            &[MAP, KEYS],
            Type::Map,
            |call| Ok(only(call, |is_named| is_named)),
        ),
        immediate(
            "omit",
            "Returns a copy without these fields.",
            &[MAP, KEYS],
            Type::Map,
            |call| Ok(only(call, |is_named| !is_named)),
        ),
    ],
};

/// Returns the steps of a path.
fn path(call: &Call) -> Result<Vec<String>, Failure> {
    let wrong = || {
        let got = shown(call.value("path"));
        format!("`path`: expected a string such as \"a.b[0].c\" or a list of keys, got {got}")
    };
    let too_long = || format!("`path`: more than {DEPTH_MAX} steps, deeper than values are nested");
    match call.value("path") {
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) if text.matches(['.', '[']).nth(DEPTH_MAX).is_some() => {
            Err(too_long().into())
        }
        Value::Array(steps) if steps.len() > DEPTH_MAX => Err(too_long().into()),
        Value::String(text) => {
            let text = text.replace('[', ".").replace(']', "");
            Ok(text.trim_start_matches('.').split('.').map(str::to_owned).collect())
        }
        Value::Array(steps) => {
            let step = |it: &Value| match it {
                Value::String(key) => Some(key.clone()),
                Value::Number(place) => Some(place.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            let steps: Option<Vec<_>> = steps.iter().map(step).collect();
            steps.ok_or_else(|| wrong().into())
        }
        // An empty table of Lua.
        Value::Object(fields) if fields.is_empty() => Ok(Vec::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(wrong().into()),
    }
}

/// Returns the value at a path; null counts as missing.
fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    let found = path.iter().try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    });
    found.filter(|it| !it.is_null())
}

fn set(value: &mut Value, path: &[String], new: &Value) -> Result<(), Failure> {
    let Some((step, rest)) = path.split_first() else {
        *value = new.clone();
        return Ok(());
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => set(fields.entry(step).or_insert(Value::Null), rest, new),
        Value::Array(items) => {
            let (count, place) = (items.len(), step.parse::<usize>().ok());
            if place == Some(count) {
                items.push(Value::Null);
            }
            match place.and_then(|it| items.get_mut(it)) {
                Some(item) => set(item, rest, new),
                None => {
                    Err(format!("`path`: index `{step}` is out of range for a list of {count}")
                        .into())
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(format!("`path`: cannot set the field `{step}` of {}", shown(value)).into())
        }
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let Some((last, above)) = path.split_last() else {
        *value = Value::Null;
        return;
    };
    let level = above.iter().try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    });
    match level {
        Some(Value::Object(fields)) => drop(fields.shift_remove(last)),
        Some(Value::Array(items)) => {
            let place = last.parse().ok().filter(|it| *it < items.len());
            drop(place.map(|it: usize| items.remove(it)));
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

fn merge(base: &mut Value, over: &Value) {
    let Value::Object(over) = over else {
        *base = over.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    let Some(fields) = base.as_object_mut() else { return };
    // All at once: each single removal would move the fields behind it.
    fields.retain(|key, _| !over.get(key).is_some_and(Value::is_null));
    for (key, value) in over.iter().filter(|(_, it)| !it.is_null()) {
        merge(fields.entry(key).or_insert(Value::Null), value);
    }
}

fn differences(call: &Call) -> Result<Value, Failure> {
    /// Minimum number of items and fields of one difference.
    const FIELDS: usize = 4;
    let found = diff::diff(call.value("old"), call.value("new"));
    room_for(found.len().saturating_mul(FIELDS))?;
    let item = |it: diff::DiffItem| {
        serde_json::json!({
            "op": it.operation.as_str(), "field": it.field, "old": it.old, "new": it.new,
        })
    };
    Ok(found.into_iter().map(item).collect())
}

fn only(call: &Call, keeps: fn(bool) -> bool) -> crate::scripting::functions::outcome::Datum {
    let keys: BTreeSet<_> = call.list("keys").iter().filter_map(Value::as_str).collect();
    let is_named = |key: &str| keys.contains(key);
    let fields = call.map("map").into_iter().flatten();
    let kept = fields.filter(|(key, _)| keeps(is_named(key)));
    Value::Object(kept.map(|(key, it)| (key.clone(), it.clone())).collect()).into()
}
