//! Access for tests that bypasses the API: edits, faults, and the log of requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ApiServer, LoggedRequest, Refusal, ResourceDef,
    faults::{Fault, FaultEffect},
    metadata, object,
    resource::{CRDS, kind::VersionedKind},
    store::{Store, StoreKey, history::ChangeKind},
    verbs::{
        definitions, delete, modify,
        rules::{self, Strictness, WritablePart},
    },
};
use crate::sorted;

/// The address of the API server inside of the cluster: the first one of the service network.
const API_SERVER: &str = "10.96.0.1";
/// The namespaces of a new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The qualified resource, as in messages of the server: `pods`, `kopfexamples.kopf.dev`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The object has been deleted.
    pub deleted: bool,
}

/// Resources are named as in messages of the server: `pods`, `kopfexamples.kopf.dev`. The namespace of a cluster-scoped object is
/// empty.
impl ApiServer {
    /// Creates an object as given: its status, deletion time and uid are kept. The namespace is taken from its metadata.
    pub fn create(&self, resource: &str, mut body: Value) -> Result<Value, Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            rules::name(&mut body, &mut store.identities);
            let key = StoreKey::new(
                resource,
                object::meta(&body, "namespace"),
                object::meta(&body, "name"),
            );
            if store.get(&key).is_some() {
                return Err(Refusal::already_exists(&view.kind.def, &key.place.name));
            }
            self.stamp(store, &view, &mut body);
            if resource == CRDS && body.get("status").is_none() {
                definitions::settle(store, &mut body);
            }
            metadata::normalize(&mut body);
            Ok(view.tree(&store.put(&key, body)))
        })
    }

    /// Applies a merge patch to an object, including its status and metadata.
    pub fn merge(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, Refusal> {
        self.update(resource, namespace, name, move |object| json_patch::merge(object, &patch))
    }

    /// Edits an object, including its status and metadata. An edit without a difference makes no new version.
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Value, Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let key = StoreKey::new(resource, namespace, name);
            let present = store.get(&key);
            let present = present.ok_or_else(|| Refusal::not_found(&view.kind.def, name))?;
            let old = view.tree(&present);
            let mut new = old.clone();
            edit(&mut new);
            let new =
                rules::updated(&view, (WritablePart::Everything, Strictness::Lax), &old, new)?;
            let swapped = modify::swap(store, &key, &present, (&old, new));
            swapped.map(|it| view.tree(&it)).ok_or_else(|| Refusal::conflict(&view.kind.def, name))
        })
    }

    /// Deletes an object as a client does: one with finalizers is only marked, Pods get their grace period.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let key = StoreKey::new(resource, namespace, name);
            if store.get(&key).is_none() {
                return Err(Refusal::not_found(&view.kind.def, name));
            }
            delete::as_controller(&self.0, store, &view, &key);
            Ok(())
        })
    }

    /// Removes an object at once, even if it has finalizers.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let removed = store.remove(&StoreKey::new(resource, namespace, name));
            removed.map(drop).ok_or_else(|| Refusal::not_found(&view.kind.def, name))
        })
    }

    /// Returns an object; `None` if it does not exist.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let store = self.0.store();
        let found = store.get(&StoreKey::new(resource, namespace, name))?;
        Some(view(&store, resource).ok()?.tree(&found))
    }

    /// Returns all objects of a resource, ordered by namespace and name.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let store = self.0.store();
        let Ok(view) = view(&store, resource) else { return Vec::new() };
        let objects = store.tables.get(resource).into_iter().flat_map(|it| it.objects.values());
        objects.map(|it| view.tree(it)).collect()
    }

    /// Returns the version of the latest change.
    pub fn revision(&self) -> u64 {
        self.0.store().revision
    }

    /// Returns the time of the server in the form of timestamps, RFC 3339.
    pub fn now(&self) -> String {
        self.0.store().now()
    }

    /// Returns the served resources.
    pub fn resources(&self) -> Vec<ResourceDef> {
        self.0.store().tables.values().map(|it| it.kind.def.clone()).collect()
    }

    /// Returns the changes after a version, oldest first, and the version of the last one. `None` if some of them have been
    /// dropped.
    pub fn changes(&self, after: u64) -> Option<(Vec<Changed>, u64)> {
        let store = self.0.store();
        let mut changes = Vec::new();
        for (resource, table) in &store.tables {
            if table.history.lacks(after) {
                return None;
            }
            changes.extend(table.history.after(after).map(|it| (it.revision, resource, it)));
        }
        sorted::sort_by_key(&mut changes, |(revision, ..)| *revision);
        let changes = changes.into_iter().map(|(_, resource, change)| Changed {
            resource: resource.clone(),
            namespace: change.object.head.namespace.to_string(),
            name: change.object.head.name.to_string(),
            deleted: change.kind == ChangeKind::Deleted,
        });
        Some((changes.collect(), store.revision))
    }

    /// Waits until the server has a newer version than this one.
    pub async fn moved(&self, after: u64) {
        self.0.signals.wait_for(|it| it.revision > after).await;
    }

    /// Sets the delay with which watchers see changes from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.0.store().latency = latency;
    }

    /// Adds a fault for the following requests. If several faults match a request, the first one applies.
    pub fn fault(&self, fault: Fault) {
        self.0.faults.lock().add(fault);
    }

    /// Removes all faults that were added before.
    pub fn clear_faults(&self) {
        self.0.faults.lock().clear();
    }

    /// Makes the next PATCH requests fail with these statuses, in order; 200 lets one pass.
    pub fn inject(&self, statuses: impl IntoIterator<Item = u16>) {
        for code in statuses {
            let effect = match code {
                200 => FaultEffect::Pass,
                code => FaultEffect::Refuse { code, retry_after_seconds: None },
            };
            self.fault(Fault::always(effect).on("PATCH", "").times(1));
        }
    }

    /// Ends all open watches, as the real server does at times.
    pub fn close_watches(&self) {
        self.0.signals.change(|it| it.epoch += 1);
    }

    /// Compacts the history: a watch that starts from an older version gets a 410. Open watches continue.
    pub fn compact(&self) {
        let mut store = self.0.store();
        store.compacted = store.revision;
    }

    /// Returns the logged requests, oldest first.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.0.requests.lock().all()
    }

    /// Creates the objects of a new cluster.
    pub(super) fn create_initial_objects(&self) {
        for name in NAMESPACES {
            let namespace = json!({
                "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            // A restored cluster already has it.
            drop(self.create("namespaces", namespace));
        }
        let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
        let port = json!({ "name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443 });
        let service = json!({
            "metadata": { "name": "kubernetes", "namespace": "default", "labels": labels },
            "spec": {
                "ports": [port],
                "clusterIP": API_SERVER,
                "clusterIPs": [API_SERVER],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "internalTrafficPolicy": "Cluster",
            },
            "status": { "loadBalancer": {} },
        });
        drop(self.create("services", service));
    }

    /// Sets the metadata that the server adds to a new object.
    fn stamp(&self, store: &mut Store, view: &VersionedKind, body: &mut Value) {
        if !self.0.stamps {
            return;
        }
        if object::meta(body, "uid").is_empty() {
            object::set_meta(body, "uid", store.identities.uid());
        }
        object::set_meta(body, "creationTimestamp", store.now());
        if view.kind.counts_generations() {
            object::set_meta(body, "generation", 1);
        }
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
    /// Returns the body as JSON; null if it is not valid JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Returns the resource in its storage version.
fn view(store: &Store, resource: &str) -> Result<VersionedKind, Refusal> {
    let kind = &store.tables.get(resource).ok_or_else(Refusal::unknown_resource)?.kind;
    Ok(VersionedKind::new(kind, kind.storage()))
}
