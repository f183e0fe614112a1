//! What becomes of a body that a client sends: which parts count, which fields are the server's own.
//!
//! Pure: from the stored object and the wanted one to the one that is going to be stored, before it gets its version.

use serde_json::{Value, json};

use crate::apiserver::{
    object,
    refusal::{Problem, Refusal},
    resource::{
        self, CRDS, ResourceDef,
        kind::{Kind, View},
    },
    store::identities::Identities,
};

/// Which part of an object a writer may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, if that has an endpoint of its own.
    Main,
    /// The status only.
    Status,
    /// Everything: an edit past the API.
    Everything,
}

/// Set by the server, never by clients.
pub(crate) const OWN_FIELDS: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Not stored when empty.
const COLLECTIONS: [&str; 5] =
    ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"];

/// A new object in its namespace.
pub(crate) fn placed(namespace: &str, mut body: Value) -> Result<Value, Refusal> {
    let given = object::meta(&body, "namespace");
    if !given.is_empty() && given != namespace {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(message));
    }
    if !namespace.is_empty() {
        object::set_meta(&mut body, "namespace", namespace);
    }
    Ok(body)
}

/// Makes a name if one is asked for.
pub(crate) fn name(body: &mut Value, identities: &mut Identities) {
    let prefix = object::meta(body, "generateName");
    if prefix.is_empty() || !object::meta(body, "name").is_empty() {
        return;
    }
    // Room for the suffix within the 63 characters of a label.
    let mut name: String = prefix.chars().take(58).collect();
    name.push_str(&identities.suffix());
    object::set_meta(body, "name", name);
}

/// A new object as it is going to be stored.
pub(crate) fn created(view: &View, mut body: Value) -> Result<Value, Refusal> {
    let def = &view.kind.def;
    if object::meta(&body, "name").is_empty() {
        let problem = Problem::required("metadata.name", "name or generateName is required");
        return Err(Refusal::invalid(&def.group, &def.kind, "", &[problem]));
    }
    if def.status_subresource {
        object::put(&mut body, "status", None);
    }
    if def.qualified() == CRDS {
        let status = resource::established(&body);
        object::put(&mut body, "status", Some(status));
    }
    drop_empty(&mut body);
    Ok(body)
}

/// The object as it is after an update.
pub(crate) fn updated(
    view: &View,
    part: Part,
    old: &Value,
    mut new: Value,
) -> Result<Value, Refusal> {
    let def = &view.kind.def;
    check_shape(def, &new)?;
    if part != Part::Everything {
        check_identity(def, old, &new)?;
    }
    match part {
        Part::Status => {
            let status = new.get("status").cloned();
            new = old.clone();
            object::put(&mut new, "status", status);
        }
        Part::Main if def.status_subresource => {
            object::put(&mut new, "status", old.get("status").cloned());
        }
        Part::Main | Part::Everything => {}
    }
    for field in ["apiVersion", "kind"] {
        object::put(&mut new, field, old.get(field).cloned());
    }
    restore_own_fields(old, &mut new);
    drop_empty(&mut new);
    if part != Part::Everything {
        check_finalizers(def, old, &new)?;
    }
    if is_new_generation(&view.kind, old, &new) {
        raise_generation(&mut new);
    }
    Ok(new)
}

/// Removes what Kubernetes does not store: empty maps and lists of the metadata.
pub(crate) fn drop_empty(body: &mut Value) {
    let Some(meta) = object::meta_mut(body) else { return };
    for field in COLLECTIONS {
        let empty = meta.get(field).is_some_and(|it| {
            it.is_null()
                || it.as_object().is_some_and(serde_json::Map::is_empty)
                || it.as_array().is_some_and(Vec::is_empty)
        });
        if empty {
            meta.shift_remove(field);
        }
    }
}

/// Whether the change counts as a new generation: neither metadata nor a separate status do.
fn is_new_generation(kind: &Kind, old: &Value, new: &Value) -> bool {
    let def = &kind.def;
    if let Some(native) = kind.native {
        return native.generations && old.get("spec") != new.get("spec");
    }
    let counted =
        |field: &str| field != "metadata" && !(def.status_subresource && field == "status");
    let fields = |object: &'_ Value| -> Vec<String> {
        object.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect()
    };
    let mut names = fields(old);
    names.extend(fields(new));
    !def.native && names.iter().any(|it| counted(it) && old.get(it) != new.get(it))
}

/// Says that the object goes away as soon as nobody holds it.
pub(crate) fn mark(object: &mut Value, now: &str, stamps: bool) {
    object::set_meta(object, "deletionTimestamp", now);
    if stamps {
        object::set_meta(object, "deletionGracePeriodSeconds", 0);
        raise_generation(object);
    }
}

/// Only objects that count their generations have one.
pub(crate) fn raise_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_u64);
    if let Some(generation) = generation {
        object::set_meta(object, "generation", generation + 1);
    }
}

fn check_shape(def: &ResourceDef, body: &Value) -> Result<(), Refusal> {
    let metadata = body.get("metadata").unwrap_or(&Value::Null);
    if body.is_object() && (metadata.is_object() || metadata.is_null()) {
        return Ok(());
    }
    let kind = &def.kind;
    Err(Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind})"
    )))
}

fn check_kind(def: &ResourceDef, body: &Value) -> Result<(), Refusal> {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == def.kind {
        return Ok(());
    }
    let problem = Problem::invalid("kind", kind, format!("must be {}", def.kind));
    Err(Refusal::invalid(&def.group, kind, object::meta(body, "name"), &[problem]))
}

/// The wanted object must be the stored one, in the stored version.
fn check_identity(def: &ResourceDef, old: &Value, new: &Value) -> Result<(), Refusal> {
    let [name, given] = [old, new].map(|it| object::meta(it, "name"));
    if given != name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    check_kind(def, new)?;
    let version = object::meta(new, "resourceVersion");
    if !version.is_empty() && version != object::meta(old, "resourceVersion") {
        return Err(Refusal::conflict(def, name));
    }
    let uid = object::meta(new, "uid");
    if !uid.is_empty() && uid != object::meta(old, "uid") {
        let problem = Problem::invalid("metadata.uid", uid, "field is immutable");
        return Err(Refusal::invalid(&def.group, &def.kind, name, &[problem]));
    }
    Ok(())
}

/// Nobody can start to hold an object that is going away.
fn check_finalizers(def: &ResourceDef, old: &Value, new: &Value) -> Result<(), Refusal> {
    let before = object::finalizers(old);
    let mut added = object::finalizers(new);
    added.retain(|it| !before.contains(it));
    if !object::deleting(old) || added.is_empty() {
        return Ok(());
    }
    let added: Vec<String> = added.iter().map(|it| format!("{it:?}")).collect();
    let problem = Problem::forbidden(
        "metadata.finalizers",
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ),
    );
    Err(Refusal::invalid(&def.group, &def.kind, object::meta(old, "name"), &[problem]))
}

fn restore_own_fields(old: &Value, new: &mut Value) {
    let kept = old.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let Some(meta) = object::meta_mut(new) else { return };
    for field in OWN_FIELDS {
        match kept.get(field) {
            Some(value) => meta.insert(field.into(), value.clone()),
            None => meta.shift_remove(field),
        };
    }
}
