//! The cluster as scripts use it: resolves resources and namespaces, explains rejections, decides when a wait is over.
//!
//! The requests are sent by `ports/kube.rs` and `cluster/`; the functions of scripts are in `scripting/functions/kube`.

mod advice;
mod known;
mod place;
mod predicate;
mod reference;
#[cfg(test)]
mod tests;
mod watch_cache;

pub use kopf_json::responses::{ListPart, read_list, read_object, read_raw_list};

pub use advice::{KubeVerb, StatusDetails, advice};
pub use known::{KnownResources, ResourceRef, Unresolved};
pub use place::{ALL_NAMESPACES, DefaultNamespaces, ListNamespace, one, several};
pub use predicate::{Predicate, Subject};
pub use reference::Reference;
pub use watch_cache::{Delta, WatchCache};

use serde_json::Value;

/// Removes fields that are null. A null reads as an absent field.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, it| !it.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads a selector of labels or fields for a query: from a string, or from a map of values that must be equal.
///
/// # Errors
/// Fails if a value of the map is not a string, number or boolean.
pub fn selector(value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| match value {
                Value::String(it) => Ok(format!("{key}={it}")),
                Value::Bool(_) | Value::Number(_) => Ok(format!("{key}={value}")),
                Value::Null | Value::Array(_) | Value::Object(_) => Err(format!(
                    "the value of {key:?} must be a string; write other conditions as a text, such as \"{key} in (a,b)\""
                )),
            };
            let pairs: Vec<String> = fields.iter().map(pair).collect::<Result<_, _>>()?;
            Ok((!pairs.is_empty()).then(|| pairs.join(",")))
        }
        Value::String(text) => Ok(Some(text.clone()).filter(|it| !it.trim().is_empty())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(format!("expected a string or a map, got {value}"))
        }
    }
}
