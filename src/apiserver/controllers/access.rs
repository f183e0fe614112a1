//! How controllers read the server: everything at the start, then what has changed.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::{ApiServer, controllers::world::Key, object};

/// The present state of one object; `None`: it is gone.
pub(crate) type Present = (Key, Option<Arc<Value>>);

/// The objects that have changed after a version, as they are now, in the order of their first change; and the version that
/// this reaches to. `None` if some changes are not remembered.
pub(crate) fn changes(server: &ApiServer, after: u64) -> Option<(Vec<Present>, u64)> {
    let (changes, revision) = server.changes(after)?;
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    let mut present = Vec::new();
    for change in changes {
        let key = Key::new(&change.resource, &change.namespace, &change.name);
        if seen.insert(key.clone()) {
            let object = server.get(&key.resource, &key.namespace, &key.name).map(Arc::new);
            present.push((key, object));
        }
    }
    Some((present, revision))
}

/// Everything there is, and a version that it is not older than.
pub(crate) fn everything(server: &ApiServer) -> (Vec<Present>, u64) {
    let revision = server.revision();
    let mut objects = Vec::new();
    for def in server.resources() {
        let resource = def.qualified();
        objects.extend(server.list(&resource).into_iter().map(|object| {
            let meta = |field| object::meta(&object, field);
            (Key::new(&resource, meta("namespace"), meta("name")), Some(Arc::new(object)))
        }));
    }
    (objects, revision)
}
