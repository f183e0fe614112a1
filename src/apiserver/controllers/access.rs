//! The functions with which controllers read the server: everything at the start, then only the changes.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::{ApiServer, controllers::cache::ObjectKey, object};

/// The current state of one object; `None` if it has been deleted.
pub(crate) type CurrentObject = (ObjectKey, Option<Arc<Value>>);

/// Returns the objects that have changed after a version, in their current state and in the order of their first change, and the
/// version of the last change. `None` if some changes have been dropped.
pub(crate) fn changes(server: &ApiServer, after: u64) -> Option<(Vec<CurrentObject>, u64)> {
    let (changes, revision) = server.changes(after)?;
    let mut seen: BTreeSet<ObjectKey> = BTreeSet::new();
    let mut present = Vec::new();
    for change in changes {
        let key = ObjectKey::new(&change.resource, &change.namespace, &change.name);
        if seen.insert(key.clone()) {
            let object = server.get(&key.resource, &key.namespace, &key.name).map(Arc::new);
            present.push((key, object));
        }
    }
    Some((present, revision))
}

/// Returns all objects, and a version that they are at least as new as.
pub(crate) fn everything(server: &ApiServer) -> (Vec<CurrentObject>, u64) {
    let revision = server.revision();
    let mut objects = Vec::new();
    for def in server.resources() {
        let resource = def.qualified();
        objects.extend(server.list(&resource).into_iter().map(|object| {
            let meta = |field| object::meta(&object, field);
            (ObjectKey::new(&resource, meta("namespace"), meta("name")), Some(Arc::new(object)))
        }));
    }
    (objects, revision)
}
