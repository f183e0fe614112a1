//! The part of an object whose changes are relevant.
//!
//! The contract is `tests/vectors/essence.json`. Two essences are compared to detect a change, and the last handled one is stored
//! on the object, so all versions and all operators must agree on what counts as content.
//!
//! An extra field below something that is not a map counts as absent; Kopf fails on such objects permanently.

use std::collections::BTreeSet;

use kopf_json::values;
use serde_json::{Map, Value};

use super::{annotations, fields};
use crate::settings::{
    AnnotationsDiffBase, AnnotationsProgress, DiffBaseStorage, FieldPath, PersistenceSettings,
    ProgressStorage,
};

/// Top-level keys that are not content; labels and annotations are taken from the metadata.
pub const SYSTEM: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Returns the essence of an object as it is compared and stored: built, then cleared.
///
/// `extra` are the fields that handlers of the resource watch, wherever they are.
pub fn of(persistence: &PersistenceSettings, body: &Value, extra: &BTreeSet<FieldPath>) -> Value {
    let built = build(&persistence.diffbase_storage, body, extra);
    clear(&persistence.progress_storage, built)
}

/// Returns whether a field is part of the essence even if no handler watches it, unless its changes are ignored.
pub fn is_content(field: &[String]) -> bool {
    field.first().is_some_and(|it| !SYSTEM.contains(&it.as_str()))
}

/// Returns the essence without the fields that the storage of essences itself adds to the object.
pub fn build(storage: &DiffBaseStorage, body: &Value, extra: &BTreeSet<FieldPath>) -> Value {
    match storage {
        DiffBaseStorage::Annotations(own) => {
            let mut essence = content(body, extra, &own.ignored_fields);
            remove_annotations(&mut essence, own, body);
            remove_empty(&mut essence);
            Value::Object(essence)
        }
        DiffBaseStorage::Status(own) => {
            let mut essence = content(body, extra, &own.ignored_fields);
            remove_field(&mut essence, &own.field);
            Value::Object(essence)
        }
        // Each storage takes the essence of the previous one as its body.
        DiffBaseStorage::Multi(storages) => {
            let whole = Value::Object(content(body, extra, &[]));
            storages.iter().fold(whole, |essence, it| build(it, &essence, extra))
        }
    }
}

/// Removes the fields that the storage of progress adds to objects. Also for essences that older versions stored.
pub fn clear(storage: &ProgressStorage, essence: Value) -> Value {
    let Value::Object(mut essence) = essence else { return essence };
    clear_map(storage, &mut essence);
    Value::Object(essence)
}

fn clear_map(storage: &ProgressStorage, essence: &mut Map<String, Value>) {
    match storage {
        ProgressStorage::Annotations(own) => clear_annotations(own, essence),
        ProgressStorage::Status(own) => {
            remove_field(essence, &own.field);
            remove_empty(essence);
        }
        ProgressStorage::Multi(storages) => {
            for it in storages {
                clear_map(it, essence);
            }
        }
        ProgressStorage::Smart(annotations, status) => {
            remove_field(essence, &status.field);
            clear_annotations(annotations, essence);
        }
    }
}

fn clear_annotations(own: &AnnotationsProgress, essence: &mut Map<String, Value>) {
    if let Some(annotations) = annotations_mut(essence) {
        let is_own =
            |name: &str| name.strip_prefix(&own.prefix).is_some_and(|it| it.starts_with('/'));
        annotations.retain(|name, _| !is_own(name));
    }
    remove_empty(essence);
}

/// Returns the content that all storages agree on, in one pass over the body: only the content is copied.
fn content(body: &Value, extra: &BTreeSet<FieldPath>, ignored: &[FieldPath]) -> Map<String, Value> {
    let mut essence = Map::new();
    let top = body.as_object().into_iter().flatten();
    for (key, value) in top.filter(|(key, _)| !SYSTEM.contains(&key.as_str())) {
        essence.insert(key.clone(), value.clone());
    }
    if let Some(metadata) = metadata(body) {
        essence.insert("metadata".into(), Value::Object(metadata));
    }
    for path in extra {
        if let Some(value) = fields::get(body, path) {
            fields::put(&mut essence, path, value.clone());
        }
    }
    remove_empty(&mut essence);
    for path in ignored {
        remove_field(&mut essence, path);
    }
    essence
}

/// Returns the labels and annotations that are content.
fn metadata(body: &Value) -> Option<Map<String, Value>> {
    let source = body.get("metadata")?;
    let mut metadata = Map::new();
    if let Some(labels) = source.get("labels") {
        metadata.insert("labels".into(), labels.clone());
    }
    if let Some(annotations) = source.get("annotations").and_then(Value::as_object) {
        metadata.insert("annotations".into(), Value::Object(annotations::content(annotations)));
    }
    Some(metadata)
}

/// Removes the operator's own annotations. Needed for prefixes that are not recognized as those of an operator.
fn remove_annotations(essence: &mut Map<String, Value>, own: &AnnotationsDiffBase, body: &Value) {
    if let Some(annotations) = annotations_mut(essence) {
        for name in annotations::names(&own.prefix, &own.key, own.v1, body) {
            annotations.shift_remove(&name);
        }
    }
}

/// Removes empty labels, annotations and metadata only: an empty spec is content.
fn remove_empty(essence: &mut Map<String, Value>) {
    if let Some(metadata) = essence.get_mut("metadata").and_then(Value::as_object_mut) {
        remove_falsy(metadata, "annotations");
        remove_falsy(metadata, "labels");
    }
    remove_falsy(essence, "metadata");
    remove_falsy(essence, "status");
}

fn remove_falsy(map: &mut Map<String, Value>, key: &str) {
    if map.get(key).is_some_and(|it| !values::truthy(it)) {
        map.shift_remove(key);
    }
}

/// Removes a field. Skips those that cannot be removed: part of a list or of a scalar, or the whole essence.
fn remove_field(essence: &mut Map<String, Value>, path: &[String]) {
    fields::remove(essence, path).unwrap_or_default();
}

fn annotations_mut(essence: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    essence.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
