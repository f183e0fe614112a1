//! `DELETE`: removes an object, or marks it for deletion until its finalizers are gone.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};

use crate::{
    Shared,
    admission::evictions,
    metadata, object,
    refusal::Refusal,
    reply::Reply,
    request::deletion::DeleteOptions,
    resource::{CRDS, ResourceDef, kind::VersionedKind},
    store::{Store, StoreKey, stored::Stored},
    verbs::{ApiCall, read, rules},
    webhooks::{self, AdmissionRequest, conversion},
};

/// The finalizer of the propagation policy `Orphan`.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const NAMESPACES: &str = "namespaces";
/// The finalizer of a deleted CRD that still has objects.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Namespaces that cannot be deleted.
const UNDELETABLE: [&str; 3] = ["default", "kube-system", "kube-public"];
/// Resources whose deletion returns the last state of the object; others return a `Status`.
const RETURNS_LAST_STATE: [&str; 11] = [
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "storageclasses.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
];
/// Deletions of Jobs orphan their Pods by default.
const JOBS: &str = "jobs.batch";
const PRESERVED: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                         them or set propagationPolicy=Orphan to suppress this warning";
/// Events have no dependents.
const WITHOUT_DEPENDENTS: &str = "events";

pub(crate) async fn one(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    let options = DeleteOptions::parse(call.request, &call.query)?;
    let (key, def) = (call.key(name), &call.view.kind.def);
    if key.resource == JOBS && options.propagation.is_none() {
        call.warnings.lock().push(PRESERVED.into());
    }
    let found = || call.shared.store().get(&key).ok_or_else(|| Refusal::not_found(def, name));
    options.check(def, identity(&*found()?))?;
    ask(call, &options, &key).await?;
    // Webhooks take time, so the object is read again.
    options.check(def, identity(&*found()?))?;
    let mut store = call.shared.store();
    let end = delete(&mut store, &Deletion::of(call, &options), &key);
    drop(store);
    let view = call.view.clone();
    Ok(match end.ok_or_else(|| Refusal::not_found(def, name))? {
        Deleted::Marked(object) => {
            let status = if options.abandons_nothing { 202 } else { 200 };
            Reply::Object { status, view, object }
        }
        Deleted::Removed(object) if RETURNS_LAST_STATE.contains(&key.resource.as_str()) => {
            Reply::Object { status: 200, view, object }
        }
        Deleted::Removed(object) => Reply::Document(200, removed(def, name, &object.head.uid)),
    })
}

/// Deletes a Pod with the options of an eviction.
pub(crate) fn evicted(call: &ApiCall<'_>, name: &str, options: &Value) -> Result<(), Refusal> {
    let mut options = DeleteOptions::of(options)?;
    options.dry |= call.is_dry();
    let (key, def) = (call.key(name), &call.view.kind.def);
    let mut store = call.shared.store();
    let found = store.get(&key).ok_or_else(|| Refusal::not_found(def, name))?;
    options.check(def, identity(&found))?;
    if call.shared.admission {
        evictions::permit(&mut store, &call.view.tree(&found), options.dry)?;
    }
    delete(&mut store, &Deletion::of(call, &options), &key);
    Ok(())
}

pub(crate) async fn collection(call: &ApiCall<'_>) -> Result<Reply, Refusal> {
    let options = DeleteOptions::parse(call.request, &call.query)?;
    let list = read::page(call)?;
    for item in &list.items {
        let key = StoreKey::new(&call.resource(), &item.head.namespace, &item.head.name);
        options.check(&call.view.kind.def, identity(item))?;
        ask(call, &options, &key).await?;
        delete(&mut call.shared.store(), &Deletion::of(call, &options), &key);
    }
    Ok(Reply::List(list))
}

/// Returns the fields that preconditions are compared with.
fn identity(found: &Stored) -> (&str, &str, u64) {
    (&found.head.name, &found.head.uid, found.head.revision)
}

/// Checks whether the cluster and the webhooks allow the deletion of the object.
async fn ask(call: &ApiCall<'_>, options: &DeleteOptions, key: &StoreKey) -> Result<(), Refusal> {
    let name = key.place.name.as_str();
    if call.shared.cluster && key.resource == NAMESPACES && UNDELETABLE.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(Refusal::forbidden(&call.view.kind.def, name, why));
    }
    let Some(found) = call.shared.store().get(key) else { return Ok(()) };
    let old = conversion::tree(call.shared, &call.view, &found).await?;
    let request =
        AdmissionRequest { dry: options.dry, ..call.admission_request("DELETE", name, Some(&old)) };
    webhooks::validate_deletion(call.shared, &request).await
}

/// The parameters of a deletion.
struct Deletion<'a> {
    view: &'a VersionedKind,
    /// The server sets metadata.
    stamps: bool,
    /// Controllers empty deleted namespaces and CRDs; without them, these are removed at once.
    emptied: bool,
    /// The deletion is requested by a client, for which the default policies apply.
    by_client: bool,
    options: &'a DeleteOptions,
}

impl<'a> Deletion<'a> {
    fn of(call: &'a ApiCall<'_>, options: &'a DeleteOptions) -> Self {
        let emptied = call.shared.emptied.load(Ordering::Relaxed);
        let stamps = call.shared.stamps;
        Self { view: &call.view, stamps, emptied, by_client: true, options }
    }
}

/// The result of a deletion.
enum Deleted {
    /// The object is marked and still exists in this state.
    Marked(Arc<Stored>),
    /// The object is removed; this was its last state.
    Removed(Arc<Stored>),
}

/// Deletes as a controller does, without the defaults for clients.
pub(crate) fn as_controller(
    shared: &Shared,
    store: &mut Store,
    view: &VersionedKind,
    key: &StoreKey,
) {
    let emptied = shared.emptied.load(Ordering::Relaxed);
    let (options, stamps) = (DeleteOptions::default(), shared.stamps);
    delete(store, &Deletion { view, stamps, emptied, by_client: false, options: &options }, key);
}

/// Marks an object that has finalizers or a grace period, or removes it.
fn delete(store: &mut Store, deletion: &Deletion<'_>, key: &StoreKey) -> Option<Deleted> {
    let found = store.get(key)?;
    let old = deletion.view.tree(&found);
    let has_content = deletion.emptied && matches!(key.resource.as_str(), NAMESPACES | CRDS);
    if has_content && !object::deleting(&old) {
        let new = marked_for_controllers(deletion, key, old.clone(), &store.now());
        return Some(Deleted::Marked(save(store, deletion, key, (&found, &old), new)));
    }
    let content_left = !object::strings(&old, "/spec/finalizers").is_empty();
    if has_content && key.resource == NAMESPACES && content_left {
        return Some(Deleted::Marked(found));
    }
    let mut new = old.clone();
    let grace = match grace(&key.resource, &old, deletion.options.grace_seconds) {
        Grace::Pending => return Some(Deleted::Marked(found)),
        Grace::None => None,
        Grace::Seconds(seconds) => Some(seconds),
    };
    set_finalizers(&mut new, deletion, key);
    let held = !object::finalizers(&new).is_empty();
    if grace.is_some() || held {
        mark(&mut new, &store.now(), deletion.stamps, grace.unwrap_or(0));
    }
    // A change is stored even if the object is removed at once: watchers see both.
    let last = save(store, deletion, key, (&found, &old), new);
    if held || grace.is_some_and(|it| it > 0) {
        return Some(Deleted::Marked(last));
    }
    // The version of a removed object is that of its removal.
    let removed = if deletion.options.dry { None } else { store.remove(key) };
    Some(Deleted::Removed(removed.unwrap_or(last)))
}

/// Stores a changed object, unless it is a dry run.
fn save(
    store: &mut Store,
    deletion: &Deletion<'_>,
    key: &StoreKey,
    (found, old): (&Arc<Stored>, &Value),
    new: Value,
) -> Arc<Stored> {
    if new == *old {
        return Arc::clone(found);
    }
    let new = deletion.view.stored(new);
    if deletion.options.dry { Arc::new(Stored::of(&new)) } else { store.put(key, new) }
}

/// Marks a namespace or a CRD for the controllers that empty it.
fn marked_for_controllers(
    deletion: &Deletion<'_>,
    key: &StoreKey,
    mut object: Value,
    now: &str,
) -> Value {
    object::set_meta(&mut object, "deletionTimestamp", now);
    if key.resource == NAMESPACES {
        set_finalizers(&mut object, deletion, key);
        json_patch::merge(&mut object, &json!({ "status": { "phase": "Terminating" } }));
        return object;
    }
    let mut finalizers = object::finalizers(&object);
    if !finalizers.iter().any(|it| it == CLEANUP) {
        finalizers.push(CLEANUP.into());
    }
    object::set_meta(&mut object, "finalizers", finalizers);
    let terminating = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    conditions.retain(|it| it.get("type") != terminating.get("type"));
    conditions.push(terminating);
    json_patch::merge(&mut object, &json!({ "status": { "conditions": conditions } }));
    object
}

/// Adds or removes the finalizers of the garbage collection.
fn set_finalizers(object: &mut Value, deletion: &Deletion<'_>, key: &StoreKey) {
    let before = object::finalizers(object);
    let wanted = wanted_finalizer(&before, deletion, key);
    let mut finalizers = before.clone();
    // Existing finalizers keep their order.
    finalizers.retain(|it| Some(it.as_str()) == wanted || (it != ORPHAN && it != FOREGROUND));
    let missing = wanted.filter(|wanted| !finalizers.iter().any(|it| it == wanted));
    finalizers.extend(missing.map(String::from));
    if finalizers != before {
        object::set_meta(object, "finalizers", finalizers);
        metadata::normalize(object);
    }
}

/// Returns the finalizer of the garbage collection that an object should have, if any.
fn wanted_finalizer(
    finalizers: &[String],
    deletion: &Deletion<'_>,
    key: &StoreKey,
) -> Option<&'static str> {
    if key.resource == WITHOUT_DEPENDENTS {
        return None;
    }
    let present = || [ORPHAN, FOREGROUND].into_iter().find(|it| finalizers.iter().any(|f| f == it));
    let by_default = || {
        let orphans = deletion.view.kind.native.is_some_and(|it| it.orphans);
        (deletion.by_client && orphans).then_some(ORPHAN)
    };
    match deletion.options.propagation.as_deref() {
        Some("Orphan") => Some(ORPHAN),
        Some("Foreground") => Some(FOREGROUND),
        Some(_) => None,
        None => present().or_else(by_default),
    }
}

/// The grace period of a deletion.
enum Grace {
    /// The kind has no grace period, or it is over.
    None,
    Seconds(i64),
    /// It already has a shorter one.
    Pending,
}

/// Returns the grace period. Only Pods have one, if they are scheduled to a node.
fn grace(resource: &str, object: &Value, asked: Option<i64>) -> Grace {
    if resource != "pods" {
        return Grace::None;
    }
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
    if object::deleting(object) {
        let before = number("/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        return match asked {
            _ if before == 0 => Grace::None,
            Some(shorter) if whole(shorter) < before => Grace::Seconds(whole(shorter)),
            _ => Grace::Pending,
        };
    }
    let ended = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if ended || text("/spec/nodeName").is_empty() {
        return Grace::Seconds(0);
    }
    let own = number("/spec/terminationGracePeriodSeconds");
    Grace::Seconds(whole(asked.or(own).unwrap_or(30)))
}

/// Replaces a negative period by the shortest one.
fn whole(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Sets the deletion timestamp and the grace period. A shorter period replaces a longer one.
fn mark(object: &mut Value, now: &str, stamps: bool, grace: i64) {
    let first = !object::deleting(object);
    let before = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if first {
        object::set_meta(object, "deletionTimestamp", later(now, grace));
    } else if let Some(before) = before.filter(|it| *it > grace) {
        let time = object::meta(object, "deletionTimestamp");
        let sooner = later(time, grace.saturating_sub(before));
        object::set_meta(object, "deletionTimestamp", sooner);
    }
    if stamps {
        object::set_meta(object, "deletionGracePeriodSeconds", grace);
        if first {
            rules::raise_generation(object);
        }
    }
}

/// Returns a time plus seconds; an invalid time is returned as it is.
fn later(time: &str, seconds: i64) -> String {
    let moved = time
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|it| it.checked_add(jiff::SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(|| time.to_owned(), |it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Returns the `Status` of a deletion that has removed the object.
fn removed(def: &ResourceDef, name: &str, uid: &str) -> Value {
    let mut details = json!({ "name": name, "group": def.group, "kind": def.plural, "uid": uid });
    if let Some(fields) = details.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
