//! Namespaces: their initial objects, and the deletion of their content.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Controller, NO_STEP, ReconcileResult,
    cache::{Cache, CachedObject, ObjectKey, Update},
    conditions::{self, DesiredCondition},
    time::DecisionTime,
    write::{FieldEdit, Write, set},
};
use crate::{
    object::{self, text},
    refusal::join,
};

const NAMESPACES: &str = "namespaces";
const ACCOUNTS: &str = "serviceaccounts";
const CONFIG_MAPS: &str = "configmaps";
/// The service account that every namespace has.
const DEFAULT_ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
/// The finalizer in `spec.finalizers`; it stays until the namespace is empty.
const FINALIZER: &str = "kubernetes";

pub(super) const CONTROLLER: Controller = Controller {
    reads: &[NAMESPACES],
    affected,
    reconcile,
    step: NO_STEP,
    // A cluster has these namespaces, and recreates them.
    start: &[
        (NAMESPACES, "default"),
        (NAMESPACES, "kube-node-lease"),
        (NAMESPACES, "kube-public"),
        (NAMESPACES, "kube-system"),
    ],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if update.key.resource == NAMESPACES {
        found.push(update.key.clone());
        return;
    }
    if update.key.namespace.is_empty() {
        return;
    }
    let namespace = ObjectKey::new(NAMESPACES, "", &update.key.namespace);
    let lost = update.new.is_none() && is_standard(update.key);
    let going = cache.get(&namespace).is_some_and(|it| it.deleting);
    if lost || going {
        found.push(namespace);
    }
}

fn is_standard(key: &ObjectKey) -> bool {
    matches!(
        (key.resource.as_str(), key.name.as_str()),
        (ACCOUNTS, DEFAULT_ACCOUNT) | (CONFIG_MAPS, ROOT_CA)
    )
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some((entry, body)) = cache.get(key).and_then(|it| Some((it, it.body.as_ref()?))) else {
        return if CONTROLLER.start.contains(&(NAMESPACES, key.name.as_str())) {
            vec![create(&key.name)].into()
        } else {
            ReconcileResult::none()
        };
    };
    if entry.deleting {
        empty(cache, key, body, moment)
    } else {
        add_missing(cache, key, body).into()
    }
}

/// Creates one of the namespaces that every cluster has.
fn create(name: &str) -> Write {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
        "spec": { "finalizers": [FINALIZER] },
        "status": { "phase": "Active" },
    });
    Write::Create { resource: NAMESPACES, body }
}

/// Returns the writes that add what an active namespace lacks.
fn add_missing(cache: &Cache, key: &ObjectKey, body: &Value) -> Vec<Write> {
    let mut writes = Vec::new();
    if text(body, "/status/phase").is_empty() {
        let mut edits = vec![set(["status", "phase"], "Active")];
        if body.pointer("/spec/finalizers").is_none() {
            edits.push(set(["spec", "finalizers"], vec![FINALIZER]));
        }
        writes.push(Write::change(key, body, edits));
    }
    let missing = |resource, name| {
        cache.def(resource).is_some()
            && cache.get(&ObjectKey::new(resource, &key.name, name)).is_none()
    };
    if missing(ACCOUNTS, DEFAULT_ACCOUNT) {
        let metadata = json!({ "name": DEFAULT_ACCOUNT, "namespace": key.name });
        let body = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
        writes.push(Write::Create { resource: ACCOUNTS, body });
    }
    if missing(CONFIG_MAPS, ROOT_CA) {
        let metadata = json!({ "name": ROOT_CA, "namespace": key.name });
        // There is no certificate: the embedded server uses plain HTTP.
        let data = json!({ "ca.crt": "" });
        let body =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
        writes.push(Write::Create { resource: CONFIG_MAPS, body });
    }
    writes
}

/// Deletes the content of a deleted namespace, then removes the finalizer.
fn empty(cache: &Cache, key: &ObjectKey, body: &Value, moment: &DecisionTime) -> ReconcileResult {
    let living = cache.inside(&key.name).filter(|(_, it)| !it.deleting);
    let mut writes: Vec<Write> = living.map(|(at, it)| Write::delete(at, &it.uid)).collect();
    if !writes.is_empty() {
        if text(body, "/status/phase") != "Terminating" {
            let edit = set(["status", "phase"], "Terminating");
            writes.insert(0, Write::change(key, body, vec![edit]));
        }
        // Remaining objects are reported the next time.
        return writes.into();
    }
    let remaining: Vec<(&ObjectKey, &CachedObject)> = cache.inside(&key.name).collect();
    if remaining.is_empty() {
        let finalizers = object::strings(body, "/spec/finalizers");
        let rest = finalizers.iter().any(|it| it != FINALIZER);
        let edits = vec![FieldEdit::DropSpecFinalizer(FINALIZER)];
        writes.push(Write::change(key, body, edits));
        if !rest && !object::has_finalizers(body) {
            writes.push(Write::Remove { at: key.clone(), uid: object::meta(body, "uid").into() });
        }
        return writes.into();
    }
    let mut conditions = conditions::all(body);
    report(&mut conditions, cache, &remaining, &moment.stamp);
    let status = json!({ "conditions": conditions, "phase": "Terminating" });
    writes.push(Write::change(key, body, vec![set(["status"], status)]));
    writes.into()
}

/// Sets the conditions about remaining objects, with the messages of the real controller.
fn report(
    conditions: &mut Vec<Value>,
    cache: &Cache,
    remaining: &[(&ObjectKey, &CachedObject)],
    stamp: &str,
) {
    let mut resources: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, entry) in remaining {
        let names = cache.def(&key.resource).map(|it| (it.plural.as_str(), it.group.as_str()));
        let (plural, group) = names.unwrap_or((&key.resource, ""));
        // The real controller writes the dot even without a group.
        let name = if group.is_empty() { format!("{plural}.") } else { join(plural, group) };
        *resources.entry(name).or_default() += 1;
        for finalizer in &entry.finalizers {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let resources =
        resources.iter().map(|(name, count)| format!("{name} has {count} resource instances"));
    let resources: Vec<String> = resources.collect();
    let held =
        finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
    let held: Vec<String> = held.collect();
    let remain = format!("Some resources are remaining: {}", resources.join(", "));
    let holding =
        format!("Some content in the namespace has finalizers remaining: {}", held.join(", "));
    let finalizers = if held.is_empty() {
        ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    } else {
        ("True", "SomeFinalizersRemain", holding.as_str())
    };
    let facts = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", &remain),
        ("NamespaceFinalizersRemaining", finalizers.0, finalizers.1, finalizers.2),
    ];
    for (kind, status, reason, message) in facts {
        conditions::put(conditions, DesiredCondition { kind, status, reason, message }, stamp);
    }
}
