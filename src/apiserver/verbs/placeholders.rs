//! Placeholder CRDs: generated because no CRD was given for a kind, and replaced when a client creates one.

use serde_json::Value;

use crate::{
    object,
    refusal::join,
    resource::CRDS,
    store::{Store, StoreKey},
    verbs::ApiCall,
};

/// The annotation of a placeholder CRD. A CRD with the same plural or kind replaces it, as long as it has no objects. The value is
/// `group` if its group is known; then the other CRD must have the same group.
pub const PLACEHOLDER: &str = "dev.kopf/placeholder";

const SAME_GROUP: &str = "group";

/// Returns the placeholders that a new CRD replaces.
pub(crate) fn in_the_way(store: &Store, key: &StoreKey, definition: &Value) -> Vec<StoreKey> {
    if key.resource != CRDS || mark(definition).is_some() {
        return Vec::new();
    }
    let all = store.tables.get(CRDS).into_iter().flat_map(|it| it.objects.iter());
    let others = all.filter(|(_, it)| gives_way(store, &it.tree("", ""), definition));
    others.map(|(place, _)| StoreKey { resource: CRDS.into(), place: place.clone() }).collect()
}

/// Returns whether only a placeholder has this name, so that a PUT or an apply creates the CRD.
pub(crate) fn is_replaced(call: &ApiCall<'_>, name: &str, definition: &Value) -> bool {
    let key = call.key(name);
    in_the_way(&call.shared.store(), &key, definition).contains(&key)
}

fn gives_way(store: &Store, placeholder: &Value, definition: &Value) -> bool {
    let Some(mark) = mark(placeholder) else { return false };
    let same =
        |pointer: &str| object::text(placeholder, pointer) == object::text(definition, pointer);
    let is_meant = (mark != SAME_GROUP || same("/spec/group"))
        && (same("/spec/names/plural") || same("/spec/names/kind"));
    let [plural, group] =
        ["/spec/names/plural", "/spec/group"].map(|it| object::text(placeholder, it));
    let table = store.tables.get(&join(plural, group));
    is_meant && table.is_none_or(|it| it.objects.is_empty())
}

fn mark(definition: &Value) -> Option<&str> {
    definition.get("metadata")?.get("annotations")?.get(PLACEHOLDER)?.as_str()
}
