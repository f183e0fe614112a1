//! Messages for the authors of scripts, the same in both languages: printed data, and errors of invalid operations.
//!
//! Data print as compact JSON. Keys are sorted, because maps of the languages have no order.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::logic::text::nearest::nearest;
use crate::sorted::CollectSorted as _;

/// The error of assigning to a part of the object.
pub(crate) const READ_ONLY: &str =
    "this value is read-only: change the object through ctx.patch, or change a kopf.copy of it";

/// The error of assigning to an index.
pub(crate) const INDEX_READ_ONLY: &str =
    "indexes are read-only: they are filled with what the functions of kopf.index return";

/// The error of `kopf.values` for a value that is not an index.
pub(crate) const NO_INDEX: &str = "kopf.values: expected an index, such as ctx.<id of the index>";

/// Returns a step of a path as a number, if it is one.
pub(crate) fn number(step: &str) -> Option<i64> {
    step.parse().ok()
}

/// Returns the error of assigning to a field of `ctx`.
pub(crate) fn not_assignable(name: &str) -> String {
    format!(
        "ctx.{name} cannot be assigned: change the object through ctx.patch, store data in ctx.memo"
    )
}

/// Returns data as scripts read them: a null field is absent.
pub(crate) fn shown(value: &Value) -> String {
    arranged(value, |it| !it.is_null()).to_string()
}

/// Returns a patch as scripts write it: a null field deletes.
pub(crate) fn of_patch(patch: &Value) -> String {
    arranged(patch, |_| true).to_string()
}

fn arranged(value: &Value, is_field: fn(&Value) -> bool) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, it)| is_field(it));
            let sorted: BTreeMap<_, _> = fields.collect_map();
            let arranged = |(key, it): (&String, &Value)| (key.clone(), arranged(it, is_field));
            Value::Object(sorted.into_iter().map(arranged).collect())
        }
        Value::Array(items) => items.iter().map(|it| arranged(it, is_field)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the end of a message about an unknown name: the nearest known one, if it is similar.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    prefix: &str,
) -> String {
    nearest(name, known).map_or_else(String::new, |it| format!("; did you mean `{prefix}{it}`?"))
}
