//! Objects that a user has suspended: no handler is called for them until they are resumed, except those of their deletion.
//!
//! Kopf ignores the annotation, and it is not part of the essence. What has changed meanwhile is handled afterwards, as one change.

use super::failed::own_prefix;
use crate::logic::object::Header;
use crate::settings::{PREFIX, PersistenceSettings};

/// The name of the annotation, after the prefix.
pub const NAME: &str = "kopf-suspended";

/// Returns whether an object is suspended. Objects that are being deleted never are.
pub fn is_suspended(persistence: &PersistenceSettings, header: &Header) -> bool {
    let all = &header.annotations;
    if all.is_empty() || header.deletion_timestamp.is_some() {
        return false;
    }
    let has = |prefix: &str| all.contains_key(&format!("{prefix}/{NAME}"));
    has(PREFIX) || own_prefix(&persistence.progress_storage).is_some_and(has)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_suspended;
    use crate::logic::object::Object;
    use crate::settings::PersistenceSettings;

    #[test]
    fn an_annotation_suspends_an_object_until_it_is_deleted() {
        let is_suspended = |metadata| {
            let object = Object::from_value(json!({ "metadata": metadata }));
            is_suspended(&PersistenceSettings::default(), object.header())
        };
        let annotations = json!({ "kopf.zalando.org/kopf-suspended": "" });
        assert!(is_suspended(json!({ "annotations": annotations })));
        let deleted = "2026-01-01T00:00:00Z";
        assert!(!is_suspended(json!({ "annotations": annotations, "deletionTimestamp": deleted })));
        assert!(!is_suspended(json!({ "annotations": { "a/b": "" } })));
    }
}
