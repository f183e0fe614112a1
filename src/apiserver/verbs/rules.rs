//! The rules of a write: the parts of a body that count, the fields that only the server sets, and the refusals.
//!
//! Pure functions from the stored object and the requested one to the one that will be stored, before it gets its version.

use serde_json::{Value, json};

use crate::{
    managed,
    metadata::{self, KindFacts},
    native, object,
    refusal::{Refusal, ValidationProblem},
    resource::{CRDS, ResourceDef, kind::VersionedKind},
    schema,
    store::identities::Identities,
    verbs::scale,
};

/// The part of an object that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WritablePart {
    /// All fields but the status, if that is a subresource.
    Main,
    /// The status and nothing else.
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// All fields: an edit that bypasses the API.
    Everything,
}

/// The enforcement of the rules of Kubernetes. Tests with artificial objects can switch it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    Strict,
    Lax,
}

/// Metadata that clients cannot change.
const OWN_FIELDS: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Sets the namespace of a new object.
pub(crate) fn placed(namespace: &str, mut body: Value) -> Result<Value, Refusal> {
    if namespace.is_empty() {
        // Cluster-scoped objects ignore a namespace in the body.
        if let Some(meta) = object::meta_mut(&mut body) {
            meta.shift_remove("namespace");
        }
        return Ok(body);
    }
    let given = object::meta(&body, "namespace");
    if !given.is_empty() && given != namespace {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(message));
    }
    object::set_meta(&mut body, "namespace", namespace);
    Ok(body)
}

/// Generates a name if `generateName` requests one.
pub(crate) fn name(body: &mut Value, identities: &mut Identities) {
    let start = object::meta(body, "generateName");
    if !start.is_empty() && object::meta(body, "name").is_empty() {
        let name = identities.name(start);
        object::set_meta(body, "name", name);
    }
}

/// Decodes an object: removes unknown fields, and fills in defaults. Returns the paths of the unknown fields.
pub(crate) fn read(view: &VersionedKind, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let mut unknown = Vec::new();
    match (view.kind.native, view.schema()) {
        (Some(native), _) => {
            unknown = native::decode(&view.kind, &view.version, object)?;
            (native.defaults)(object);
        }
        (None, Some(schema)) => {
            if let Some(why) = schema::metadata::unreadable(Some(schema), object) {
                return Err(Refusal::undecodable(&view.kind.def.kind, &view.version, &why));
            }
            unknown = schema::prune(schema, object);
            schema::default(schema, object);
        }
        (None, None) => {}
    }
    Ok(unknown)
}

/// Returns a new object as it will be stored, with its name and uid.
pub(crate) fn created(
    view: &VersionedKind,
    mut object: Value,
    strictness: Strictness,
) -> Result<Value, Refusal> {
    let def = &view.kind.def;
    if let Some(native) = view.kind.native {
        (native.created)(&mut object);
    } else if view.has_status() {
        object::put(&mut object, "status", None);
    }
    metadata::normalize(&mut object);
    let mut problems = metadata::check_create(KindFacts::of(def), &object);
    let own = check(view, &object, None);
    if view.kind.native.is_some() {
        // The validation of most native kinds covers the metadata, too.
        problems.retain(|it| !own.contains(it));
    }
    problems.extend(own);
    if strictness == Strictness::Strict {
        refuse(view, &object, &problems)?;
    }
    native::order(&view.kind, &view.version, &mut object);
    Ok(object)
}

/// A write of their status does not change their metadata.
pub(crate) const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";

/// Returns an object as it will be stored after an update.
pub(crate) fn updated(
    view: &VersionedKind,
    (part, strictness): (WritablePart, Strictness),
    old: &Value,
    mut new: Value,
) -> Result<Value, Refusal> {
    let def = &view.kind.def;
    if part != WritablePart::Everything {
        check_version(def, old, &new)?;
    }
    new = match part {
        WritablePart::Status => with_status(def, old, &new),
        WritablePart::Finalize => {
            object::put(&mut new, "status", old.get("status").cloned());
            native::label_namespace(&mut new);
            new
        }
        WritablePart::Main if view.has_status() => {
            object::put(&mut new, "status", old.get("status").cloned());
            new
        }
        WritablePart::Main | WritablePart::Everything => new,
    };
    for field in ["apiVersion", "kind"] {
        object::put(&mut new, field, old.get(field).cloned());
    }
    if part == WritablePart::Everything {
        restore_own_fields(old, &mut new);
        metadata::normalize(&mut new);
    } else {
        match (part, view.kind.native) {
            (WritablePart::Main, Some(native)) => (native.updated)(old, &mut new),
            (WritablePart::Status, Some(native)) => (native.status_updated)(old, &mut new),
            _ => {}
        }
        metadata::carry_over(&mut new, old);
        metadata::normalize(&mut new);
        let mut problems = metadata::check_update(KindFacts::of(def), &new, old);
        problems.extend(managed::check_entries(&new));
        if part != WritablePart::Status || def.qualified() != CRDS {
            problems.extend(check(view, &new, Some(old)));
        }
        if strictness == Strictness::Strict {
            refuse(view, old, &problems)?;
        }
    }
    let is_bound = part == WritablePart::Everything && def.qualified() == "pods";
    if !is_bound && part != WritablePart::Status && is_new_generation(view, old, &new) {
        raise_generation(&mut new);
    }
    native::order(&view.kind, &view.version, &mut new);
    Ok(new)
}

/// Returns the old object with a new status. Writers of the status of a native kind may change metadata, too.
fn with_status(def: &ResourceDef, old: &Value, new: &Value) -> Value {
    let mut object = old.clone();
    object::put(&mut object, "status", new.get("status").cloned());
    let name = def.qualified();
    // For some kinds, only the managed fields are copied.
    let whole = def.native && name != CRDS && name != ATTACHMENTS;
    let given = if whole { "/metadata" } else { "/metadata/managedFields" };
    match new.pointer(given).cloned() {
        Some(meta) if whole => object::put(&mut object, "metadata", Some(meta)),
        Some(managers) => object::set_meta(&mut object, "managedFields", managers),
        None => {}
    }
    let kept = match name.as_str() {
        "deployments.apps" => "labels",
        "pods" => "ownerReferences",
        "namespaces" => {
            native::label_namespace(&mut object);
            return object;
        }
        _ => return object,
    };
    if let Some(meta) = object::meta_mut(&mut object) {
        match old.get("metadata").and_then(|it| it.get(kept)) {
            Some(before) => meta.insert(kept.into(), before.clone()),
            None => meta.shift_remove(kept),
        };
    }
    object
}

fn check(view: &VersionedKind, new: &Value, old: Option<&Value>) -> Vec<ValidationProblem> {
    match (view.kind.native, view.rules()) {
        (Some(native), _) => (native.check)(new, old),
        (None, rules) => {
            let mut found = rules.map(|it| it.check(new, old)).unwrap_or_default();
            found.extend(scale::faults(view, new));
            found
        }
    }
}

fn refuse(
    view: &VersionedKind,
    object: &Value,
    problems: &[ValidationProblem],
) -> Result<(), Refusal> {
    if problems.is_empty() {
        return Ok(());
    }
    let def = &view.kind.def;
    // Both kinds of events are stored as one.
    let group = if view.kind.native.is_some_and(|it| it.twin.is_some()) { "" } else { &def.group };
    Err(Refusal::invalid(group, &def.kind, object::meta(object, "name"), problems))
}

/// Checks the resource version of an update. Native kinds may leave it out.
fn check_version(def: &ResourceDef, old: &Value, new: &Value) -> Result<(), Refusal> {
    let name = object::meta(old, "name");
    let version = object::meta(new, "resourceVersion");
    if version.is_empty() && !def.native {
        // The real server names the resource instead of the kind here.
        let why = "must be specified for an update";
        let problem = ValidationProblem::invalid("metadata.resourceVersion", 0, why);
        return Err(Refusal::invalid(&def.group, &def.plural, name, &[problem]));
    }
    if !version.is_empty() && version != object::meta(old, "resourceVersion") {
        return Err(Refusal::conflict(def, name));
    }
    Ok(())
}

/// Returns whether the change increments the generation. Metadata and a separate status do not.
fn is_new_generation(view: &VersionedKind, old: &Value, new: &Value) -> bool {
    let def = &view.kind.def;
    if let Some(native) = view.kind.native {
        let differs = |it: &&str| old.pointer(it) != new.pointer(it);
        return native.generations && native.counted.iter().any(differs);
    }
    let has_status = view.has_status();
    let counted = |field: &&String| *field != "metadata" && !(has_status && *field == "status");
    let fields = |object: &Value| -> Vec<String> {
        object.as_object().into_iter().flat_map(|it| it.keys().filter(counted).cloned()).collect()
    };
    let mut names = fields(old);
    names.extend(fields(new));
    !def.native && names.iter().any(|it| old.get(it) != new.get(it))
}

/// Increments the generation of an object that has one.
pub(crate) fn raise_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_u64);
    if let Some(generation) = generation {
        object::set_meta(object, "generation", generation + 1);
    }
}

fn restore_own_fields(old: &Value, new: &mut Value) {
    let kept = old.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let Some(meta) = object::meta_mut(new) else { return };
    // The kubelet ends the grace period of a Pod.
    let own = |it: &&str| *it != "deletionGracePeriodSeconds";
    for field in OWN_FIELDS.into_iter().filter(own) {
        match kept.get(field) {
            Some(value) => meta.insert(field.into(), value.clone()),
            None => meta.shift_remove(field),
        };
    }
}
