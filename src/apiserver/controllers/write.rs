//! The writes of controllers, as data, and their execution.

use std::fmt;

use serde_json::{Map, Value};

use crate::{ApiServer, Refusal, controllers::cache::ObjectKey, object};

/// The finalizer of an owner that waits for its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner that orphans its dependents.
pub(crate) const ORPHAN: &str = "orphan";

/// One write. The uid identifies the object: a new one with the same name is not changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Create {
        resource: &'static str,
        body: Value,
    },
    Change {
        at: ObjectKey,
        uid: String,
        edits: Vec<FieldEdit>,
    },
    /// Deletes as a client does: objects with finalizers are only marked, Pods get their grace period.
    Delete {
        at: ObjectKey,
        uid: String,
        foreground: bool,
    },
    /// Removes at once, even with finalizers.
    Remove {
        at: ObjectKey,
        uid: String,
    },
}

/// A change of a part of an object. It is as small as possible, because others may have written since the decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldEdit {
    /// Sets the field at this path; missing parents are created.
    Set(Vec<String>, Value),
    Unset(Vec<String>),
    DropFinalizer(&'static str),
    AddFinalizer(&'static str),
    /// Removes the references to these owners.
    DropOwners(Vec<String>),
    /// Adds the controller reference, unless there is one already.
    Adopt(Value),
    /// Clears `blockOwnerDeletion` in all owner references.
    Unblock,
    /// Removes a value from `spec.finalizers` of a namespace.
    DropSpecFinalizer(&'static str),
}

/// Makes a [`FieldEdit::Set`] with a path of literals.
pub(crate) fn set<const N: usize>(path: [&str; N], value: impl Into<Value>) -> FieldEdit {
    FieldEdit::Set(path.map(String::from).into(), value.into())
}

/// Makes a [`FieldEdit::Unset`] with a path of literals.
pub(crate) fn unset<const N: usize>(path: [&str; N]) -> FieldEdit {
    FieldEdit::Unset(path.map(String::from).into())
}

impl Write {
    /// Makes a change of a known object.
    pub(crate) fn change(at: &ObjectKey, object: &Value, edits: Vec<FieldEdit>) -> Self {
        Self::Change { at: at.clone(), uid: object::meta(object, "uid").into(), edits }
    }

    /// Makes a deletion of a known object.
    pub(crate) fn delete(at: &ObjectKey, uid: &str) -> Self {
        Self::Delete { at: at.clone(), uid: uid.into(), foreground: false }
    }

    /// Executes the write. An object that no longer exists, or was replaced meanwhile, is not an error.
    pub(crate) fn apply(&self, server: &ApiServer) -> Result<(), Refusal> {
        let done = match self {
            Self::Create { resource, body } => server.create(resource, body.clone()).map(drop),
            Self::Change { at, uid, edits } => change(server, at, uid, edits),
            Self::Delete { at, uid, foreground } => {
                if *foreground {
                    change(server, at, uid, &[FieldEdit::AddFinalizer(FOREGROUND)])?;
                }
                if !is_same(server, at, uid) {
                    return Ok(());
                }
                server.delete(&at.resource, &at.namespace, &at.name)
            }
            Self::Remove { at, uid } if is_same(server, at, uid) => {
                server.remove(&at.resource, &at.namespace, &at.name)
            }
            Self::Remove { .. } => Ok(()),
        };
        done.or_else(|refusal| if refusal.code == 404 { Ok(()) } else { Err(refusal) })
    }
}

fn is_same(server: &ApiServer, at: &ObjectKey, uid: &str) -> bool {
    let object = server.get(&at.resource, &at.namespace, &at.name);
    object.is_some_and(|it| object::meta(&it, "uid") == uid)
}

fn change(
    server: &ApiServer,
    at: &ObjectKey,
    uid: &str,
    edits: &[FieldEdit],
) -> Result<(), Refusal> {
    server
        .update(&at.resource, &at.namespace, &at.name, |object| {
            if object::meta(object, "uid") == uid {
                for edit in edits {
                    edit.apply(object);
                }
            }
        })
        .map(drop)
}

impl FieldEdit {
    /// Applies the edit to a tree.
    pub(crate) fn apply(&self, object: &mut Value) {
        match self {
            Self::Set(path, value) => put(object, path, Some(value.clone())),
            Self::Unset(path) => put(object, path, None),
            Self::AddFinalizer(name) => {
                let mut names = object::finalizers(object);
                if !object::deleting(object) && !names.iter().any(|it| it == name) {
                    names.push((*name).into());
                    object::set_meta(object, "finalizers", names);
                }
            }
            Self::DropFinalizer(name) => retain(object, "/metadata/finalizers", |it| it != name),
            Self::DropSpecFinalizer(name) => retain(object, "/spec/finalizers", |it| it != name),
            Self::DropOwners(uids) => retain(object, "/metadata/ownerReferences", |it| {
                let uid = it.get("uid").and_then(Value::as_str);
                !uid.is_some_and(|uid| uids.iter().any(|it| it == uid))
            }),
            Self::Adopt(owner) => adopt(object, owner),
            Self::Unblock => {
                let owners = object.pointer_mut("/metadata/ownerReferences");
                for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
                    object::put(owner, "blockOwnerDeletion", Some(false.into()));
                }
            }
        }
    }
}

fn adopt(object: &mut Value, owner: &Value) {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut owners = owners.cloned().unwrap_or_default();
    let managed =
        owners.iter().any(|it| it.get("controller").and_then(Value::as_bool) == Some(true));
    if !managed && !object::deleting(object) {
        owners.push(owner.clone());
        object::set_meta(object, "ownerReferences", owners);
    }
}

fn put(object: &mut Value, path: &[String], value: Option<Value>) {
    let Some((last, way)) = path.split_last() else { return };
    let mut place = object;
    for step in way {
        let Some(fields) = place.as_object_mut() else { return };
        if value.is_none() && !fields.contains_key(step) {
            return;
        }
        let next = fields.entry(step).or_insert_with(|| Value::Object(Map::new()));
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        place = next;
    }
    object::put(place, last, value);
}

fn retain(object: &mut Value, pointer: &str, keep: impl Fn(&Value) -> bool) {
    if let Some(items) = object.pointer_mut(pointer).and_then(Value::as_array_mut) {
        items.retain(keep);
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { resource, body } => {
                let name = |field| object::meta(body, field);
                let place = match name("namespace") {
                    "" => String::new(),
                    namespace => format!("{namespace}/"),
                };
                let name = match name("name") {
                    "" => format!("{}*", name("generateName")),
                    name => name.into(),
                };
                write!(f, "create {resource} {place}{name}")
            }
            Self::Change { at, edits, .. } => {
                let edits: Vec<String> = edits.iter().map(ToString::to_string).collect();
                write!(f, "change {at}: {}", edits.join(", "))
            }
            Self::Delete { at, foreground: false, .. } => write!(f, "delete {at}"),
            Self::Delete { at, foreground: true, .. } => write!(f, "delete {at} in foreground"),
            Self::Remove { at, .. } => write!(f, "remove {at}"),
        }
    }
}

impl fmt::Display for FieldEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(path, value) => write!(f, "{} = {value}", path.join(".")),
            Self::Unset(path) => write!(f, "no {}", path.join(".")),
            Self::AddFinalizer(name) => write!(f, "held by {name}"),
            Self::DropFinalizer(name) | Self::DropSpecFinalizer(name) => {
                write!(f, "not held by {name}")
            }
            Self::DropOwners(uids) => write!(f, "not owned by {}", uids.join(", ")),
            Self::Adopt(owner) => {
                let name = owner.get("name").and_then(Value::as_str).unwrap_or_default();
                write!(f, "owned by {name}")
            }
            Self::Unblock => write!(f, "blocks no owner"),
        }
    }
}
