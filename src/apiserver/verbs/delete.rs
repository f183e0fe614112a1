//! `DELETE`: the end of an object, or the mark that it is to end once nobody holds it.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};

use crate::apiserver::{
    Shared, metadata, object,
    refusal::Refusal,
    reply::Reply,
    request::deletion::Options,
    resource::{CRDS, ResourceDef, kind::View},
    store::{Key, Store, stored::Stored},
    verbs::{Call, read, rules},
    webhooks,
};

/// The finalizers that a propagation policy asks for.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Resources whose objects are shown once more when they go.
const SHOWN: [&str; 6] = [
    "pods",
    "persistentvolumeclaims",
    "persistentvolumes",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
];
/// Holds a deleted definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(crate) async fn one(call: &Call<'_>, name: &str) -> Result<Reply, Refusal> {
    let options = Options::parse(call.ask, &call.query)?;
    let (key, def) = (call.key(name), &call.view.kind.def);
    ask_webhooks(call, &key).await?;
    let mut store = call.shared.store();
    let found = store.get(&key).ok_or_else(|| Refusal::not_found(def, name))?;
    options.check(def, identity(&found))?;
    Ok(match delete(&mut store, &Deletion::of(call, &options), &key) {
        Some(object) => Reply::Object { status: 200, view: call.view.clone(), object },
        None if SHOWN.contains(&key.resource.as_str()) => {
            Reply::Document(200, last(&store, call, &options, &found))
        }
        None => Reply::Document(200, removed(def, name, &found.head.uid)),
    })
}

/// Deletes as an eviction wants it.
pub(crate) fn evicted(call: &Call<'_>, name: &str, options: &Value) -> Result<(), Refusal> {
    let options = Options::of(options)?;
    let (key, def) = (call.key(name), &call.view.kind.def);
    let mut store = call.shared.store();
    let found = store.get(&key).ok_or_else(|| Refusal::not_found(def, name))?;
    options.check(def, identity(&found))?;
    delete(&mut store, &Deletion::of(call, &options), &key);
    Ok(())
}

pub(crate) async fn collection(call: &Call<'_>) -> Result<Reply, Refusal> {
    let options = Options::parse(call.ask, &call.query)?;
    let list = read::page(call)?;
    for item in &list.items {
        let key = Key::new(&call.resource(), &item.head.namespace, &item.head.name);
        ask_webhooks(call, &key).await?;
        options.check(&call.view.kind.def, identity(item))?;
        delete(&mut call.shared.store(), &Deletion::of(call, &options), &key);
    }
    Ok(Reply::List(list))
}

/// What preconditions are about.
fn identity(found: &Stored) -> (&str, &str, u64) {
    (&found.head.name, &found.head.uid, found.head.revision)
}

async fn ask_webhooks(call: &Call<'_>, key: &Key) -> Result<(), Refusal> {
    let found = call.shared.store().get(key);
    let Some(old) = found.map(|it| call.view.tree(&it)) else { return Ok(()) };
    let attempt = call.attempt("DELETE", &key.place.name, Some(&old));
    webhooks::validate_deletion(call.shared, &attempt).await
}

/// What is known of a deletion beside the object.
struct Deletion<'a> {
    view: &'a View,
    /// Whether the server stamps.
    stamps: bool,
    /// Whether controllers empty what is deleted; otherwise namespaces and definitions go at once.
    emptied: bool,
    options: &'a Options,
}

impl<'a> Deletion<'a> {
    fn of(call: &'a Call<'_>, options: &'a Options) -> Self {
        let emptied = call.shared.emptied.load(Ordering::Relaxed);
        Self { view: &call.view, stamps: call.shared.stamps, emptied, options }
    }
}

/// Deletes as a client does it that leaves everything to the server.
pub(crate) fn plainly(shared: &Shared, store: &mut Store, view: &View, key: &Key) {
    let emptied = shared.emptied.load(Ordering::Relaxed);
    let options = Options::default();
    let deletion = Deletion { view, stamps: shared.stamps, emptied, options: &options };
    delete(store, &deletion, key);
}

/// Marks a held object and gives it; removes a free one, for which there is nothing to show.
fn delete(store: &mut Store, deletion: &Deletion<'_>, key: &Key) -> Option<Arc<Stored>> {
    let Deletion { view, options, .. } = deletion;
    let found = store.get(key)?;
    let mut object = view.tree(&found);
    hold(&mut object, options.propagation.as_deref());
    hold_content(&mut object, &key.resource, deletion.emptied, &store.now());
    let grace = grace_seconds(&view.kind.def, &object, options.grace_seconds);
    let held =
        object::held(&object) && (deletion.emptied || !object::finalizers(&object).is_empty());
    if !held && grace == 0 {
        if !options.dry {
            store.remove(key);
        }
        return None;
    }
    mark(store, deletion.stamps, &mut object, grace);
    if matches!(key.resource.as_str(), "namespaces" | CRDS)
        && let Some(meta) = object::meta_mut(&mut object)
    {
        // These have no grace to give: they wait for their content.
        meta.shift_remove("deletionGracePeriodSeconds");
    }
    if options.dry {
        return Some(Arc::new(Stored::of(&object)));
    }
    if object == view.tree(&found) { Some(found) } else { Some(store.put(key, object)) }
}

/// What has content of its own is marked, so that the controllers empty it.
fn hold_content(object: &mut Value, resource: &str, emptied: bool, now: &str) {
    if object::deleting(object) || !emptied {
        return;
    }
    if resource == "namespaces" {
        let status = json!({ "phase": "Terminating" });
        json_patch::merge(object, &json!({ "status": status }));
    }
    if resource == CRDS {
        let mut finalizers = object::finalizers(object);
        finalizers.push(CLEANUP.into());
        object::set_meta(object, "finalizers", finalizers);
        let mut conditions = object.pointer("/status/conditions").cloned().unwrap_or_default();
        let terminating = json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        });
        match conditions.as_array_mut() {
            Some(conditions) => conditions.push(terminating),
            None => conditions = json!([terminating]),
        }
        json_patch::merge(object, &json!({ "status": { "conditions": conditions } }));
    }
}

/// Adds or removes the finalizers of the garbage collection.
fn hold(object: &mut Value, propagation: Option<&str>) {
    let wanted = match propagation {
        Some("Orphan") => Some(ORPHAN),
        Some("Foreground") => Some(FOREGROUND),
        Some("Background") => None,
        _ => return,
    };
    let before = object::finalizers(object);
    let mut finalizers = before.clone();
    finalizers.retain(|it| it != ORPHAN && it != FOREGROUND);
    finalizers.extend(wanted.map(String::from));
    if finalizers != before {
        object::set_meta(object, "finalizers", finalizers);
        metadata::normalize(object);
    }
}

/// How long a Pod may take to end. Only Pods that run somewhere are given time.
fn grace_seconds(def: &ResourceDef, object: &Value, asked: Option<i64>) -> i64 {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let ended = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if def.qualified() != "pods" || ended || text("/spec/nodeName").is_empty() {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// Says that the object goes away, and when. A shorter time than before replaces the longer one.
fn mark(store: &Store, stamps: bool, object: &mut Value, grace: i64) {
    let before = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if object::deleting(object) && before.is_none_or(|it| it <= grace) {
        return;
    }
    let first = !object::deleting(object);
    object::set_meta(object, "deletionTimestamp", later(&store.now(), grace));
    if stamps {
        object::set_meta(object, "deletionGracePeriodSeconds", grace);
        if first {
            rules::raise_generation(object);
        }
    }
}

/// A time so many seconds after another one, if that is one.
fn later(time: &str, seconds: i64) -> String {
    let moved = time
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|it| it.checked_add(jiff::SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(|| time.to_owned(), |it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// An object as it was when it went. Pods are marked first, also when they get no time.
fn last(store: &Store, call: &Call<'_>, options: &Options, found: &Stored) -> Value {
    let mut object = call.view.tree(found);
    if call.view.kind.def.qualified() == "pods" {
        mark(store, call.shared.stamps, &mut object, 0);
        if !options.dry {
            object::set_meta(&mut object, "resourceVersion", store.revision.to_string());
        }
    }
    object
}

/// The answer to a DELETE that leaves nothing behind.
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
