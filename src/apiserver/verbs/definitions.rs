//! The status of CRDs: accepted names and conditions. Controllers set them in a real cluster, this server at once.

use serde_json::Value;

use crate::{
    object,
    resource::{CRDS, definition},
    store::Store,
};

/// Sets the status of a CRD that is about to be stored.
pub(crate) fn settle(store: &Store, definition: &mut Value) {
    let name = object::meta(definition, "name");
    let others = store.tables.get(CRDS).into_iter().flat_map(|it| it.objects.values());
    let others: Vec<Value> =
        others.filter(|it| *it.head.name != *name).map(|it| it.tree("", "")).collect();
    let others: Vec<&Value> = others.iter().collect();
    let status = definition::status(definition, &others, &store.now());
    object::put(definition, "status", Some(status));
}
