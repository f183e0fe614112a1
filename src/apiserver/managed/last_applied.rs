//! The annotation with the last configuration of `kubectl apply`. Server-side applies of kubectl update it, so that users can
//! switch back to client-side apply.

use serde_json::Value;

use crate::object;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const POINTER: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Updates the annotation, if the object has it and the writer is kubectl.
pub(super) fn update(manager: &str, config: &Value, object: &mut Value) {
    if manager != "kubectl" || object.pointer(POINTER).is_none() {
        return;
    }
    let mut applied = config.clone();
    if let Some(meta) = object::meta_mut(&mut applied) {
        meta.shift_remove("managedFields");
        let annotations = meta.get_mut("annotations").and_then(Value::as_object_mut);
        if annotations.is_some_and(|it| it.shift_remove(ANNOTATION).is_some() && it.is_empty()) {
            meta.shift_remove("annotations");
        }
    }
    applied.sort_all_objects();
    if let Some(text) = object.pointer_mut(POINTER) {
        *text = format!("{applied}\n").into();
    }
}
