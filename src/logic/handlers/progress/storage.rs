//! The storage of records on an object: reads them from its body, writes them to its patch.

use serde_json::{Map, Value};

use super::ProgressRecord;
use crate::logic::object::{annotations, corrupt::CorruptState, fields};
use crate::settings::{AnnotationsProgress, FieldPath, ProgressStorage, StatusProgress};

/// Returns the stored record of a handler in its raw form, for [`ProgressRecord::parse`]. `None` if there is none.
pub fn fetch(
    storage: &ProgressStorage,
    body: &Value,
    id: &str,
) -> Result<Option<Value>, CorruptState> {
    match storage {
        ProgressStorage::Annotations(own) => fetch_annotation(own, body, id),
        ProgressStorage::Status(own) => Ok(fetch_status(own, body, id)),
        ProgressStorage::Multi(storages) => {
            for it in storages {
                if let Some(record) = fetch(it, body, id)? {
                    return Ok(Some(record));
                }
            }
            Ok(None)
        }
        ProgressStorage::Smart(annotations, status) => {
            let found = fetch_annotation(annotations, body, id)?;
            Ok(found.or_else(|| fetch_status(status, body, id)))
        }
    }
}

/// Returns whether there is a record of any handler, of any operator.
pub fn any(storage: &ProgressStorage, body: &Value) -> bool {
    let in_annotations = |own: &AnnotationsProgress| {
        let is_own = |name: &str| {
            name.strip_prefix(own.prefix.as_str()).is_some_and(|it| it.starts_with('/'))
        };
        let is_record = |text: &Value| {
            let record = text.as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
            record.is_some_and(|it| it.get("started").is_some())
        };
        let all = annotations::of(body).into_iter().flatten();
        all.filter(|(name, _)| is_own(name)).any(|(_, text)| is_record(text))
    };
    let in_status = |own: &StatusProgress| {
        let records = fields::get(body, &own.field).and_then(Value::as_object);
        records.is_some_and(|it| it.values().any(|it| !it.is_null()))
    };
    match storage {
        ProgressStorage::Annotations(own) => in_annotations(own),
        ProgressStorage::Status(own) => in_status(own),
        ProgressStorage::Multi(storages) => storages.iter().any(|it| any(it, body)),
        ProgressStorage::Smart(annotations, status) => {
            in_annotations(annotations) || in_status(status)
        }
    }
}

/// Adds a record to a patch.
pub fn store(
    storage: &ProgressStorage,
    body: &Value,
    id: &str,
    record: &ProgressRecord,
    patch: &mut Map<String, Value>,
) {
    match storage {
        ProgressStorage::Annotations(own) | ProgressStorage::Smart(own, _) => {
            let text = record.format(own.verbose);
            for name in annotations::names(&own.prefix, id, own.v1, body) {
                annotations::put(patch, &name, text.clone().into());
            }
            annotations::put_marker(patch, &own.prefix, body);
        }
        // With nulls: a merge-patch removes the fields of an earlier record only if they are null.
        ProgressStorage::Status(own) => {
            fields::put(patch, &status_path(own, id), record.to_json(true));
        }
        ProgressStorage::Multi(storages) => {
            for it in storages {
                store(it, body, id, record, patch);
            }
        }
    }
}

/// Adds the marker of the operator to a patch, as [`store`] does.
pub fn mark(storage: &ProgressStorage, body: &Value, patch: &mut Map<String, Value>) {
    match storage {
        ProgressStorage::Annotations(own) | ProgressStorage::Smart(own, _) => {
            annotations::put_marker(patch, &own.prefix, body);
        }
        ProgressStorage::Status(_) => {}
        ProgressStorage::Multi(storages) => storages.iter().for_each(|it| mark(it, body, patch)),
    }
}

/// Removes a record: from the object if it has one, otherwise from the patch.
pub fn purge(storage: &ProgressStorage, body: &Value, id: &str, patch: &mut Map<String, Value>) {
    match storage {
        ProgressStorage::Annotations(own) => purge_annotations(own, body, id, patch),
        ProgressStorage::Status(own) => purge_status(own, body, id, patch),
        ProgressStorage::Multi(storages) => {
            for it in storages {
                purge(it, body, id, patch);
            }
        }
        ProgressStorage::Smart(annotations, status) => {
            purge_annotations(annotations, body, id, patch);
            purge_status(status, body, id, patch);
        }
    }
}

/// Sets or removes the field that only triggers a new event, unless the object already has this value.
pub fn touch(
    storage: &ProgressStorage,
    body: &Value,
    patch: &mut Map<String, Value>,
    value: Option<&str>,
) {
    let value = value.map_or(Value::Null, Value::from);
    let differs = |present: Option<&Value>| present.unwrap_or(&Value::Null) != &value;
    match storage {
        ProgressStorage::Annotations(own) | ProgressStorage::Smart(own, _) => {
            for name in annotations::names(&own.prefix, &own.touch_key, own.v1, body) {
                if differs(annotations::of(body).and_then(|it| it.get(&name))) {
                    annotations::put(patch, &name, value.clone());
                    annotations::put_marker(patch, &own.prefix, body);
                }
            }
        }
        ProgressStorage::Status(own) => {
            if differs(fields::get(body, &own.touch_field)) {
                fields::put(patch, &own.touch_field, value);
            }
        }
        ProgressStorage::Multi(storages) => {
            for it in storages {
                touch(it, body, patch, value.as_str());
            }
        }
    }
}

fn fetch_annotation(
    own: &AnnotationsProgress,
    body: &Value,
    id: &str,
) -> Result<Option<Value>, CorruptState> {
    // Without annotations, the names need not be built.
    if annotations::of(body).is_none_or(Map::is_empty) {
        return Ok(None);
    }
    for name in annotations::names(&own.prefix, id, own.v1, body) {
        let Some(text) = annotations::text(body, &name) else { continue };
        let record: Value = serde_json::from_str(text)
            .map_err(|source| CorruptState::Json { place: name, source })?;
        if !record.is_null() {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

fn fetch_status(own: &StatusProgress, body: &Value, id: &str) -> Option<Value> {
    fields::get(body, &own.field)?.get(id).filter(|it| !it.is_null()).cloned()
}

/// Returns the path of a record. The id is one key, with its slashes and dots.
fn status_path(own: &StatusProgress, id: &str) -> FieldPath {
    own.field.iter().cloned().chain([id.to_owned()]).collect()
}

fn purge_annotations(
    own: &AnnotationsProgress,
    body: &Value,
    id: &str,
    patch: &mut Map<String, Value>,
) {
    let path = ["metadata", "annotations"];
    // Most objects have no record, and the names of records take longer to make than this.
    if fields::get(body, &path).is_some() || fields::get_in(patch, &path).is_some() {
        for name in annotations::names(&own.prefix, id, own.v1, body) {
            purge_field(&["metadata", "annotations", &name], body, patch);
        }
    }
}

fn purge_status(own: &StatusProgress, body: &Value, id: &str, patch: &mut Map<String, Value>) {
    if fields::get(body, &own.field).is_some() || fields::get_in(patch, &own.field).is_some() {
        purge_field(&status_path(own, id), body, patch);
    }
}

fn purge_field<K: AsRef<str>>(path: &[K], body: &Value, patch: &mut Map<String, Value>) {
    if fields::get(body, path).is_some() {
        fields::put(patch, path, Value::Null);
    } else if fields::get_in(patch, path).is_some() {
        // The field exists, so everything above it is a map.
        fields::remove(patch, path).unwrap_or_default();
    }
}
