//! What has changed in a copy of a cluster.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::copy::{ClusterCopy, ObjectKey, key, resource, text};
use crate::logic::{
    handlers::selector::settings_of,
    object::{
        diff::{Diff, DiffItem, DiffOperation},
        essence, hidden,
    },
};
use crate::settings::{FieldPath, PersistenceSettings, Settings};
use kopf_apiserver::{LoggedRequest, ResourceDef};

/// The fields that are shown, besides those that count as content.
const SHOWN: [&[&str]; 3] =
    [&["metadata", "finalizers"], &["metadata", "ownerReferences"], &["status"]];

/// The prefix of the labels and annotations that the operator sets on children and on webhook configurations.
const MARKS: &str = "kopf.dev/";

/// The changes in a copy.
#[derive(Debug, Default)]
pub(super) struct PlannedChanges {
    /// By resource, namespace and name.
    pub(super) objects: Vec<ObjectChange>,
    /// The number of posted events.
    pub(super) events: usize,
    /// The number of objects in which only the state of the operator has changed.
    pub(super) only_state: usize,
}

/// A change of one object.
#[derive(Debug)]
pub(super) struct ObjectChange {
    pub(super) action: ChangeAction,
    pub(super) key: ObjectKey,
    pub(super) fields: Diff,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeAction {
    Create,
    Update,
    Delete,
}

/// Returns what differs between a copy and the objects that were read.
pub(super) fn changes(copy: &ClusterCopy, settings: &Arc<Settings>) -> PlannedChanges {
    let mut originals = std::mem::take(&mut copy.originals.lock().objects);
    let sent = sent(&copy.server.requests());
    let mut changes = PlannedChanges::default();
    for def in copy.server.resources() {
        let settings = settings_of(&resource(&def), settings);
        let persistence = &settings.persistence;
        for object in copy.server.list(&def.qualified()) {
            let key = key(&def, &object);
            let original = originals.remove(&key);
            if is_event(&def) {
                changes.events += usize::from(original.is_none());
                continue;
            }
            if is_own(&def, &object) {
                continue;
            }
            let sent = sent.get(&key);
            changes.add(key, fields(persistence, original.as_ref(), &object, sent));
        }
    }
    let deleted = originals.into_keys().filter(|(resource, ..)| !is_lease(resource));
    changes.objects.extend(deleted.map(|key| ObjectChange {
        action: ChangeAction::Delete,
        key,
        fields: Diff::new(),
    }));
    crate::sorted::sort_by_key(&mut changes.objects, |it| it.key.clone());
    changes
}

/// The result of a comparison.
enum Compared {
    Same,
    /// Only the state of the operator differs.
    OnlyState,
    Changed(ChangeAction, Diff),
}

impl PlannedChanges {
    fn add(&mut self, key: ObjectKey, compared: Compared) {
        match compared {
            Compared::Same => {}
            _ if is_lease(&key.0) => {}
            Compared::OnlyState => self.only_state += 1,
            Compared::Changed(action, fields) => {
                self.objects.push(ObjectChange { action, key, fields });
            }
        }
    }

    /// Returns the number of objects with this action.
    pub(super) fn count(&self, action: ChangeAction) -> usize {
        self.objects.iter().filter(|it| it.action == action).count()
    }
}

/// Compares an object with what it was.
fn fields(
    persistence: &PersistenceSettings,
    original: Option<&Value>,
    object: &Value,
    sent: Option<&Value>,
) -> Compared {
    let deletion = |it: &Value| it.pointer("/metadata/deletionTimestamp").is_some();
    let content = |it: &Value| content(persistence, it);
    let loggable = |diff: Diff| hidden::loggable_diff(persistence, &diff).unwrap_or(diff);
    let Some(original) = original else {
        // Without the defaults of the server.
        let mut diff = Diff::new();
        compare(&mut Vec::new(), None, Some(&content(sent.unwrap_or(object))), &mut diff);
        return Compared::Changed(ChangeAction::Create, loggable(diff));
    };
    if deletion(object) && !deletion(original) {
        return Compared::Changed(ChangeAction::Delete, Diff::new());
    }
    let mut diff = Diff::new();
    compare(&mut Vec::new(), Some(&content(original)), Some(&content(object)), &mut diff);
    if !diff.is_empty() {
        return Compared::Changed(ChangeAction::Update, loggable(diff));
    }
    let annotations = |it: &Value| it.pointer("/metadata/annotations").cloned();
    if annotations(original) == annotations(object) { Compared::Same } else { Compared::OnlyState }
}

/// Returns what is shown of an object.
fn content(persistence: &PersistenceSettings, object: &Value) -> Value {
    let shown = SHOWN.map(|path| path.iter().map(|it| (*it).to_owned()).collect::<FieldPath>());
    let mut content = essence::of(persistence, object, &shown.into_iter().collect());
    for part in ["labels", "annotations"] {
        let marked = content.get_mut("metadata").and_then(|it| it.get_mut(part));
        if let Some(marked) = marked.and_then(Value::as_object_mut) {
            marked.retain(|name, _| !name.starts_with(MARKS));
        }
    }
    let owners = content.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        *owner = format!("{}/{}", text(owner, "/kind"), text(owner, "/name")).into();
    }
    content
}

/// Collects the fields that differ, item by item also in lists of the same length. The depth is that of an object of the API.
pub(super) fn compare(
    path: &mut FieldPath,
    old: Option<&Value>,
    new: Option<&Value>,
    diff: &mut Diff,
) {
    let (old, new) = (old.filter(|it| !it.is_null()), new.filter(|it| !it.is_null()));
    let none = Map::new();
    let map = |it| Option::map_or(it, Some(&none), Value::as_object);
    let is_map = |it: Option<&Value>| it.is_some_and(Value::is_object);
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (index, (old, new)) in before.iter().zip(after).enumerate() {
                below(path, format!("[{index}]"), (Some(old), Some(new)), diff);
            }
        }
        (None, Some(Value::Array(items))) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                below(path, format!("[{index}]"), (None, Some(item)), diff);
            }
        }
        (old, new) if is_map(old) || is_map(new) => match (map(old), map(new)) {
            (Some(before), Some(after)) => {
                for (name, old) in before {
                    below(path, name.clone(), (Some(old), after.get(name)), diff);
                }
                for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                    below(path, name.clone(), (None, Some(new)), diff);
                }
            }
            _ => diff.push(item(path, old, new)),
        },
        (old, new) => diff.push(item(path, old, new)),
    }
}

fn below(
    path: &mut FieldPath,
    name: String,
    (old, new): (Option<&Value>, Option<&Value>),
    diff: &mut Diff,
) {
    path.push(name);
    compare(path, old, new, diff);
    path.pop();
}

fn item(path: &FieldPath, old: Option<&Value>, new: Option<&Value>) -> DiffItem {
    let operation = match (old, new) {
        (None, _) => DiffOperation::Add,
        (Some(_), None) => DiffOperation::Remove,
        (Some(_), Some(_)) => DiffOperation::Change,
    };
    let value = |it: Option<&Value>| it.cloned().unwrap_or_default();
    DiffItem { operation, field: path.clone(), old: value(old), new: value(new) }
}

/// Returns what was sent to create or apply objects, by object.
fn sent(requests: &[LoggedRequest]) -> BTreeMap<ObjectKey, Value> {
    let mut sent = BTreeMap::<ObjectKey, Value>::new();
    for request in requests.iter().filter(|it| it.status < 300) {
        let is_whole = request.method == "POST" || request.content_type.contains("apply-patch");
        let is_merge = request.content_type.contains("merge-patch");
        let body = request.json();
        let Some(key) = addressed(request, &body) else { continue };
        if is_whole || is_merge && sent.contains_key(&key) {
            json_patch::merge(sent.entry(key).or_default(), &body);
        }
    }
    sent
}

/// Returns the object that a request addresses; `None` for other paths, and for generated names.
fn addressed(request: &LoggedRequest, body: &Value) -> Option<ObjectKey> {
    let mut segments = request.path.trim_matches('/').split('/');
    let group = match segments.next()? {
        "api" => "",
        "apis" => segments.next()?,
        _ => return None,
    };
    let _version = segments.next()?;
    let rest: Vec<&str> = segments.collect();
    let (namespace, plural, name) = match rest.as_slice() {
        ["namespaces", namespace, plural, name @ ..] => (*namespace, *plural, name),
        [plural, name @ ..] => ("", *plural, name),
        [] => return None,
    };
    let name = name.first().copied().unwrap_or_else(|| text(body, "/metadata/name"));
    let dotted = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    (!name.is_empty()).then(|| (dotted, namespace.to_owned(), name.to_owned()))
}

fn is_event(def: &ResourceDef) -> bool {
    def.plural == "events" && matches!(def.group.as_str(), "" | "events.k8s.io")
}

/// Returns whether it is a webhook configuration of the operator, which a copy cannot show: its address is that of the copy.
fn is_own(def: &ResourceDef, object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    def.group == "admissionregistration.k8s.io"
        && annotations.is_some_and(|it| it.keys().any(|it| it.starts_with(MARKS)))
}

/// Returns whether it is the resource in which operators keep their locks and schedules.
fn is_lease(resource: &str) -> bool {
    resource == "leases.coordination.k8s.io"
}
