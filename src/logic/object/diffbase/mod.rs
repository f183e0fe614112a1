//! The last handled essence, as it is stored on the object.
//!
//! The contract is `tests/vectors/diffbase-storage.json`. An essence that does not fit as plain JSON is stored by `compact.rs`.

mod compact;
#[cfg(test)]
mod tests;

use kopf_json::values;
use serde_json::{Map, Value};

use super::{annotations, corrupt::CorruptState, fields};
use crate::logic::object::depth;
use crate::settings::DiffBaseStorage;

/// Returns the stored essence; `None` if nothing was stored yet. A stored null counts as absent.
pub fn fetch(storage: &DiffBaseStorage, body: &Value) -> Result<Option<Value>, CorruptState> {
    match storage {
        DiffBaseStorage::Annotations(own) => {
            for name in annotations::names(&own.prefix, &own.key, own.v1, body) {
                let text = annotations::text(body, &name);
                if let Some(essence) = text.map(|it| decode(it, &name)).transpose()?.flatten() {
                    return Ok(Some(essence));
                }
            }
            Ok(None)
        }
        DiffBaseStorage::Status(own) => match fields::get(body, &own.field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => decode(text, &own.field.join(".")),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(CorruptState::Shape { place: own.field.join("."), expected: "text" })
            }
        },
        DiffBaseStorage::Multi(storages) => {
            for it in storages {
                if let Some(essence) = fetch(it, body)? {
                    return Ok(Some(essence));
                }
            }
            Ok(None)
        }
    }
}

/// Returns whether exactly this essence is stored, byte for byte: a fast check for the usual case. False is inconclusive.
pub fn is_stored(storage: &DiffBaseStorage, body: &Value, essence: &Value) -> bool {
    let text = match storage {
        DiffBaseStorage::Annotations(own) => {
            let names = annotations::names(&own.prefix, &own.key, own.v1, body);
            names.iter().find_map(|it| annotations::text(body, it))
        }
        DiffBaseStorage::Status(own) => fields::get(body, &own.field).and_then(Value::as_str),
        DiffBaseStorage::Multi(storages) => {
            return storages.first().is_some_and(|it| is_stored(it, body, essence));
        }
    };
    text.is_some_and(|it| it.trim_end() == values::encode(essence) || compact::is_of(it, essence))
}

/// Adds the essence to a patch of the object.
pub fn store(
    storage: &DiffBaseStorage,
    body: &Value,
    essence: &Value,
    patch: &mut Map<String, Value>,
) {
    match storage {
        DiffBaseStorage::Annotations(own) => {
            let names = annotations::names(&own.prefix, &own.key, own.v1, body);
            let room = compact::room(body, &names);
            // With a line feed, so that `kubectl get -o yaml` shows a block and not an escaped line.
            let text = compact::fit(values::encode(essence), essence, room) + "\n";
            for name in names {
                annotations::put(patch, &name, text.clone().into());
            }
            annotations::put_marker(patch, &own.prefix, body);
        }
        DiffBaseStorage::Status(own) => {
            fields::put(patch, &own.field, values::encode(essence).into());
        }
        DiffBaseStorage::Multi(storages) => {
            for it in storages {
                store(it, body, essence, patch);
            }
        }
    }
}

fn decode(text: &str, place: &str) -> Result<Option<Value>, CorruptState> {
    let essence = depth::value(text.as_bytes())
        .map_err(|source| CorruptState::Json { place: place.to_owned(), source })?;
    let broken = || CorruptState::Shape { place: place.to_owned(), expected: "a compact essence" };
    let essence = compact::unfold(essence).ok_or_else(broken)?;
    Ok(Some(essence).filter(|it: &Value| !it.is_null()))
}
