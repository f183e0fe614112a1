//! What tests do past the API: edits from aside, faults, and a look at what happened.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ApiServer, LoggedRequest, Refusal, ResourceDef,
    faults::{Effect, Fault},
    metadata, object,
    resource::{CRDS, kind::View},
    store::{Key, Store, history::ChangeKind},
    verbs::{
        definitions, delete, modify,
        rules::{self, Part, Strictness},
    },
};

/// The address of the server itself inside of the cluster, the first one of its network.
const API_SERVER: &str = "10.96.0.1";
/// The namespaces of a new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Changed {
    /// As in messages of the server: `pods`, `kopfexamples.kopf.dev`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Of the object.
    pub name: String,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Resources are named as in messages of the server: `pods`, `kopfexamples.kopf.dev`. The namespace of a cluster-scoped object
/// is empty.
impl ApiServer {
    /// Adds an object as it is; a status, a deletion time or a uid of its own are kept. Its namespace is in its metadata.
    pub fn create(&self, resource: &str, mut body: Value) -> Result<Value, Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            rules::name(&mut body, &mut store.identities);
            let key =
                Key::new(resource, object::meta(&body, "namespace"), object::meta(&body, "name"));
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

    /// Changes an object by a merge patch, in all its parts.
    pub fn merge(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, Refusal> {
        self.update(resource, namespace, name, move |object| json_patch::merge(object, &patch))
    }

    /// Changes an object in all its parts. An edit that changes nothing makes no new version.
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Value, Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let key = Key::new(resource, namespace, name);
            let present = store.get(&key);
            let present = present.ok_or_else(|| Refusal::not_found(&view.kind.def, name))?;
            let old = view.tree(&present);
            let mut new = old.clone();
            edit(&mut new);
            let new = rules::updated(&view, (Part::Everything, Strictness::Lax), &old, new)?;
            let swapped = modify::swap(store, &key, &present, (&old, new));
            swapped.map(|it| view.tree(&it)).ok_or_else(|| Refusal::conflict(&view.kind.def, name))
        })
    }

    /// Deletes an object as a client does it: held ones are only marked, Pods get their time to stop.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let key = Key::new(resource, namespace, name);
            if store.get(&key).is_none() {
                return Err(Refusal::not_found(&view.kind.def, name));
            }
            delete::plainly(&self.0, store, &view, &key);
            Ok(())
        })
    }

    /// Removes an object at once, whoever holds it.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        self.change(|store| {
            let view = view(store, resource)?;
            let removed = store.remove(&Key::new(resource, namespace, name));
            removed.map(drop).ok_or_else(|| Refusal::not_found(&view.kind.def, name))
        })
    }

    /// One object, if it is there.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let store = self.0.store();
        let found = store.get(&Key::new(resource, namespace, name))?;
        Some(view(&store, resource).ok()?.tree(&found))
    }

    /// All objects of a resource, by namespace and name.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let store = self.0.store();
        let Ok(view) = view(&store, resource) else { return Vec::new() };
        let objects = store.tables.get(resource).into_iter().flat_map(|it| it.objects.values());
        objects.map(|it| view.tree(it)).collect()
    }

    /// The version of the latest change.
    pub fn revision(&self) -> u64 {
        self.0.store().revision
    }

    /// The time as in stamps of objects.
    pub fn now(&self) -> String {
        self.0.store().now()
    }

    /// What is served.
    pub fn resources(&self) -> Vec<ResourceDef> {
        self.0.store().tables.values().map(|it| it.kind.def.clone()).collect()
    }

    /// The changes after a version, oldest first, and the version they reach to. `None`: some are forgotten.
    pub fn changes(&self, after: u64) -> Option<(Vec<Changed>, u64)> {
        let store = self.0.store();
        let mut changes = Vec::new();
        for (resource, table) in &store.tables {
            if table.history.lacks(after) {
                return None;
            }
            changes.extend(table.history.after(after).map(|it| (it.revision, resource, it)));
        }
        changes.sort_by_key(|(revision, ..)| *revision);
        let changes = changes.into_iter().map(|(_, resource, change)| Changed {
            resource: resource.clone(),
            namespace: change.object.head.namespace.to_string(),
            name: change.object.head.name.to_string(),
            deleted: change.kind == ChangeKind::Deleted,
        });
        Some((changes.collect(), store.revision))
    }

    /// Waits for a newer version than this one.
    pub async fn moved(&self, after: u64) {
        self.0.signals.wait_for(|it| it.revision > after).await;
    }

    /// Lets watchers see the changes from now on so much later.
    pub fn set_latency(&self, latency: Duration) {
        self.0.store().latency = latency;
    }

    /// Lets something go wrong from now on. Of several faults that concern a request, the first one happens.
    pub fn fault(&self, fault: Fault) {
        self.0.faults.lock().add(fault);
    }

    /// Lets nothing go wrong any more.
    pub fn clear_faults(&self) {
        self.0.faults.lock().clear();
    }

    /// Answers the next PATCH requests with these statuses; 200 lets one through.
    pub fn inject(&self, statuses: impl IntoIterator<Item = u16>) {
        for code in statuses {
            let effect = match code {
                200 => Effect::Pass,
                code => Effect::Refuse { code, retry_after_seconds: None },
            };
            self.fault(Fault::always(effect).on("PATCH", "").times(1));
        }
    }

    /// Ends all open watches, as the real server does at times.
    pub fn close_watches(&self) {
        self.0.signals.change(|it| it.epoch += 1);
    }

    /// Forgets the past: a watch from an older version than the present one gets a 410. Open watches go on.
    pub fn compact(&self) {
        let mut store = self.0.store();
        store.compacted = store.revision;
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.0.requests.lock().all()
    }

    /// What a new cluster has.
    pub(super) fn furnish(&self) {
        for name in NAMESPACES {
            let namespace = json!({
                "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            // A restored cluster has it already.
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

    /// What the server adds to a new object.
    fn stamp(&self, store: &mut Store, view: &View, body: &mut Value) {
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
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The resource in the version it is stored in.
fn view(store: &Store, resource: &str) -> Result<View, Refusal> {
    let kind = &store.tables.get(resource).ok_or_else(Refusal::unknown_resource)?.kind;
    Ok(View::new(kind, kind.storage()))
}
