//! The part of the status that has changed.

use kopf_json::values;
use serde_json::{Map, Value};

/// Returns the merge patch that sets these fields of a status to the wanted values; other fields of the status are not touched.
pub fn changes(status: Option<&Value>, wanted: &Map<String, Value>) -> Map<String, Value> {
    let status = status.and_then(Value::as_object);
    let mut patch = Map::new();
    for (key, value) in wanted {
        let present = status.and_then(|it| it.get(key)).unwrap_or(&Value::Null);
        if let Some(change) = change(present, value) {
            patch.insert(key.clone(), change);
        }
    }
    patch
}

/// Returns the merge patch from one value to another; `None` if they are equal.
fn change(present: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (present, wanted) else {
        return (!values::equal(present, wanted)).then(|| wanted.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        let present = before.get(key).unwrap_or(&Value::Null);
        patch.extend(change(present, value).map(|it| (key.clone(), it)));
    }
    for key in before.keys().filter(|it| !after.contains_key(*it)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
