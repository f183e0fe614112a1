//! The suites about the state that is stored on objects and compared with it.

mod changes;
pub(crate) mod patches;
mod progress;
mod storages;

use kopf::{
    logic::object::{diff::Diff, fields},
    settings::{
        AnnotationsDiffBase, AnnotationsProgress, DiffBaseStorage, FieldPath, ProgressStorage,
        StatusDiffBase, StatusProgress,
    },
};
use serde_json::{Map, Value, json};

/// Returns the diff as the vectors have it: sorted by path, then by operation.
fn sorted(diff: &Diff) -> Value {
    let mut items: Vec<Value> =
        diff.iter().map(|it| json!([it.operation.as_str(), it.field, it.old, it.new])).collect();
    items.sort_by_key(sorting_key);
    items.into()
}

/// Returns the sorting key of an item. Python compares the strings of paths, which have a space after each comma.
fn sorting_key(item: &Value) -> (String, String) {
    let keys = item[1].as_array().into_iter().flatten();
    let path = keys.map(kopf_json::values::encode).collect::<Vec<_>>().join(", ");
    (format!("[{path}]"), item[0].to_string())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn field(value: &Value) -> FieldPath {
    fields::parse(value).expect("a field in a vector")
}

fn extra_fields(value: &Value) -> std::collections::BTreeSet<FieldPath> {
    value.as_array().into_iter().flatten().map(field).collect()
}

fn set<T>(target: &mut T, value: &Value, read: impl FnOnce(&Value) -> T) {
    if !value.is_null() {
        *target = read(value);
    }
}

fn owned_text(value: &Value) -> String {
    text(value).to_owned()
}

fn flag(value: &Value) -> bool {
    value == true
}

/// Returns a progress storage by the class and options of the reference.
pub(crate) fn progress_storage(input: &Value) -> ProgressStorage {
    let mut annotations = AnnotationsProgress::default();
    set(&mut annotations.prefix, &input["prefix"], owned_text);
    set(&mut annotations.touch_key, &input["touch_key"], owned_text);
    set(&mut annotations.verbose, &input["verbose"], flag);
    set(&mut annotations.v1, &input["v1"], flag);
    let mut status = StatusProgress::default();
    set(&mut status.field, &input["field"], field);
    set(&mut status.touch_field, &input["touch_field"], field);
    match text(&input["class"]) {
        "" | "SmartProgressStorage" => ProgressStorage::Smart(annotations, status),
        "AnnotationsProgressStorage" => ProgressStorage::Annotations(annotations),
        "StatusProgressStorage" => ProgressStorage::Status(status),
        "MultiProgressStorage" => {
            let storages = input["storages"].as_array().into_iter().flatten();
            ProgressStorage::Multi(storages.map(progress_storage).collect())
        }
        class => panic!("unknown storage {class}"),
    }
}

/// Returns a diff-base storage by the class and options of the reference.
pub(crate) fn diffbase_storage(input: &Value) -> DiffBaseStorage {
    let ignored = |it: &Value| it.as_array().into_iter().flatten().map(field).collect();
    let mut annotations = AnnotationsDiffBase::default();
    set(&mut annotations.prefix, &input["prefix"], owned_text);
    set(&mut annotations.key, &input["key"], owned_text);
    set(&mut annotations.v1, &input["v1"], flag);
    set(&mut annotations.ignored_fields, &input["ignored_fields"], ignored);
    let mut status = StatusDiffBase::default();
    set(&mut status.field, &input["field"], field);
    set(&mut status.ignored_fields, &input["ignored_fields"], ignored);
    match text(&input["class"]) {
        "" | "AnnotationsDiffBaseStorage" => DiffBaseStorage::Annotations(annotations),
        "StatusDiffBaseStorage" => DiffBaseStorage::Status(status),
        "MultiDiffBaseStorage" => {
            let storages = input["storages"].as_array().into_iter().flatten();
            DiffBaseStorage::Multi(storages.map(diffbase_storage).collect())
        }
        class => panic!("unknown storage {class}"),
    }
}

/// Returns an unexpected success as a failure of the vector, where the reference fails.
fn expect_error<T: std::fmt::Debug, E>(result: Result<T, E>) -> Result<(), String> {
    result.map_or(Ok(()), |it| Err(format!("an error is expected, got {it:?}")))
}
