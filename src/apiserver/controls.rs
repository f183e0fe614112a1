//! What tests do past the API: edits from aside, faults, and a look at what happened.

use std::time::Duration;

use serde_json::Value;

use crate::apiserver::{
    ApiServer, LoggedRequest, Refusal, lock,
    patch::Patch,
    store::{Key, Store},
    verbs::write::Part,
};

/// Resources are named as in messages of the server: `pods`, `kopfexamples.kopf.dev`. The namespace of a cluster-scoped object
/// is empty.
impl ApiServer {
    /// Adds an object as it is; a status, a deletion time or a uid of its own are kept. Its namespace is in its metadata.
    pub fn create(&self, resource: &str, body: Value) -> Result<Value, Refusal> {
        self.change(|store| store.create(resource, body))
    }

    /// Changes an object by a merge patch, in all its parts.
    pub fn merge(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, Refusal> {
        let patch = Patch::Merge(patch);
        let key = key(resource, namespace, name);
        self.change(|store| {
            store.update(&key, Part::Everything, |object| patch.apply(object, None))
        })
    }

    /// Deletes an object, or marks it if somebody holds it.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        let key = key(resource, namespace, name);
        self.change(|store| store.delete(&key)).map(drop)
    }

    /// One object, if it is there.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let found = self.0.store().get(&key(resource, namespace, name)).ok()?;
        Some((*found).clone())
    }

    /// All objects of a resource, by namespace and name.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let store = self.0.store();
        let objects = store.table(resource).map(|it| it.objects.values());
        objects.into_iter().flatten().map(|it| (**it).clone()).collect()
    }

    /// The version of the latest change.
    pub fn revision(&self) -> u64 {
        self.0.store().revision
    }

    /// Lets watchers see the changes from now on so much later.
    pub fn set_latency(&self, latency: Duration) {
        self.0.store().latency = latency;
    }

    /// Answers the next PATCH requests with these statuses; 200 lets one through.
    pub fn inject(&self, statuses: impl IntoIterator<Item = u16>) {
        lock(&self.0.injected).extend(statuses);
    }

    /// Ends all open watches, as the real server does at times.
    pub fn close_watches(&self) {
        self.0.signal.send_modify(|it| it.epoch += 1);
    }

    /// Forgets the past: a watch from an older version than the present one gets a 410. Open watches go on.
    pub fn compact(&self) {
        let mut store = self.0.store();
        store.compacted = store.revision;
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        lock(&self.0.requests).all()
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Store) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let changed = change(&mut self.0.store());
        self.0.announce();
        changed
    }
}

impl LoggedRequest {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    Key { resource: resource.into(), namespace: namespace.into(), name: name.into() }
}
