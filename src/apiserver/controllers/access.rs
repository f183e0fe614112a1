//! What controllers need of the server beside its controls: the changes since a version, and edits past the API.
//!
//! The one place to be changed when the server offers these itself.

use std::sync::Arc;

use serde_json::Value;

use crate::apiserver::{
    ApiServer, Refusal, controllers::world::Key, resource::ResourceDef, store,
    store::history::ChangeKind, verbs::write::Part,
};

/// A change of one object.
pub(crate) struct Changed {
    pub(crate) key: Key,
    /// `None`: it is gone.
    pub(crate) object: Option<Arc<Value>>,
}

/// The changes after a version, oldest first, and the version they lead to. `None` if they are not remembered.
pub(crate) fn changes(server: &ApiServer, after: u64) -> Option<(Vec<Changed>, u64)> {
    let store = server.0.store();
    let tables = store.tables.iter();
    if tables.clone().any(|(_, it)| it.history.forgotten() > after) {
        return None;
    }
    let mut found: Vec<(u64, Changed)> = Vec::new();
    for (resource, table) in tables {
        found.extend(table.history.after(after).map(|it| {
            let [namespace, name] = ["namespace", "name"]
                .map(|field| crate::apiserver::object::meta(&it.object, field));
            let object = (it.kind != ChangeKind::Deleted).then(|| Arc::clone(&it.object));
            (it.revision, Changed { key: Key::new(resource, namespace, name), object })
        }));
    }
    found.sort_by_key(|(revision, _)| *revision);
    Some((found.into_iter().map(|(_, it)| it).collect(), store.revision))
}

/// Everything there is, and its version.
pub(crate) fn everything(server: &ApiServer) -> (Vec<Changed>, u64) {
    let store = server.0.store();
    let objects = store.tables.iter().flat_map(|(resource, table)| {
        table.objects.iter().map(|((namespace, name), object)| Changed {
            key: Key::new(resource, namespace, name),
            object: Some(Arc::clone(object)),
        })
    });
    (objects.collect(), store.revision)
}

/// Resolves when there is something after this version.
pub(crate) async fn moved(server: &ApiServer, after: u64) {
    let mut signal = server.0.signal.subscribe();
    // Fails only if the server is gone, and we hold a handle of it.
    drop(signal.wait_for(|it| it.revision > after).await);
}

/// Changes an object in all its parts.
pub(crate) fn update(
    server: &ApiServer,
    resource: &str,
    namespace: &str,
    name: &str,
    edit: impl FnOnce(&mut Value),
) -> Result<Value, Refusal> {
    let key = key(resource, namespace, name);
    let updated = server.0.store().update(&key, Part::Everything, |object| {
        let mut object = object.clone();
        edit(&mut object);
        Ok(object)
    });
    server.0.announce();
    updated
}

/// Removes an object at once.
pub(crate) fn remove(
    server: &ApiServer,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<(), Refusal> {
    update(server, resource, namespace, name, |object| {
        crate::apiserver::object::set_meta(object, "finalizers", Value::Array(Vec::new()));
    })?;
    server.delete(resource, namespace, name)
}

/// The time for stamps.
pub(crate) fn now(server: &ApiServer) -> String {
    server.0.store().now()
}

/// What is served.
pub(crate) fn resources(server: &ApiServer) -> Vec<ResourceDef> {
    server.0.store().tables.values().map(|it| it.def.clone()).collect()
}

fn key(resource: &str, namespace: &str, name: &str) -> store::Key {
    store::Key { resource: resource.into(), namespace: namespace.into(), name: name.into() }
}
