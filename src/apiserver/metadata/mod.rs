//! The metadata of objects: validation, and the fields that the server sets.
//!
//! The types of fields are checked earlier, when a body is decoded: a field of another type counts as missing here.

mod generate;
pub(crate) mod names;
pub(crate) mod owners;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub(crate) use self::{generate::generate_name, names::NameFormat};
use crate::{
    object,
    refusal::{ProblemKind, ValidationProblem, go},
    resource::ResourceDef,
};

/// Limit of all annotations of an object together, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// The finalizers of Kubernetes itself, which have no domain.
pub(crate) const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND];
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Limit of the name of a field manager, in bytes.
const MANAGER_BYTES_MAX: usize = 128;
/// Limit of reported characters of the name of a field manager: each message contains the whole name.
const MANAGER_FAULTS_MAX: usize = 100;

/// The facts about a kind that the validation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindFacts {
    pub(crate) names: NameFormat,
    pub(crate) namespaced: bool,
    /// Finalizers of native kinds must be well-known or have a domain.
    pub(crate) native: bool,
}

impl KindFacts {
    pub(crate) fn of(def: &ResourceDef) -> Self {
        // CRDs are validated like custom objects.
        let native = def.native && def.group != "apiextensions.k8s.io";
        let names = NameFormat::of(&def.group, &def.plural);
        Self { names, namespaced: def.namespaced, native }
    }
}

/// Validates the metadata of a new object, which already has its name.
pub(crate) fn check_create(facts: KindFacts, object: &Value) -> Vec<ValidationProblem> {
    let mut found = common(facts, facts.names, object);
    if facts.native {
        found.extend(unqualified_finalizers(object));
    }
    found
}

/// Validates the metadata of a changed object, after [`carry_over`].
pub(crate) fn check_update(facts: KindFacts, new: &Value, old: &Value) -> Vec<ValidationProblem> {
    // The real server validates several times and reports every result: once for all objects, with a weaker rule for names, and
    // twice for objects that existed before.
    let mut found = common(facts, NameFormat::PathSegment, new);
    found.extend(changes(new, old));
    found.extend(changes(new, old));
    if facts.native {
        found.extend(unqualified_finalizers(new));
    }
    found
}

/// Removes fields that clients cannot set on a new object.
pub(crate) fn reset(object: &mut Value) {
    if let Some(meta) = object::meta_mut(object) {
        meta.retain(|field, _| {
            !matches!(
                field.as_str(),
                "uid"
                    | "resourceVersion"
                    | "selfLink"
                    | "clusterName"
                    | "creationTimestamp"
                    | "deletionTimestamp"
                    | "deletionGracePeriodSeconds"
            )
        });
    }
}

/// Copies the fields from the old object that a client may leave out, or cannot change.
pub(crate) fn carry_over(new: &mut Value, old: &Value) {
    let old_field = |field: &str| old.get("metadata").and_then(|it| it.get(field)).cloned();
    let Some(meta) = object::meta_mut(new) else { return };
    for field in ["generation", "creationTimestamp", "selfLink"] {
        put(meta, field, old_field(field));
    }
    if let Some(marked) = old_field("deletionTimestamp") {
        put(meta, "deletionTimestamp", Some(marked));
    }
    for field in ["uid", "namespace", "resourceVersion", "deletionGracePeriodSeconds"] {
        let missing = meta.get(field).is_none_or(|it| it.is_null() || it == "");
        if missing {
            put(meta, field, old_field(field));
        }
    }
}

/// Removes nulls, and replaces those in labels and annotations by empty strings.
pub(crate) fn normalize(object: &mut Value) {
    let Some(meta) = object::meta_mut(object) else { return };
    meta.retain(|_, value| !value.is_null());
    for field in ["labels", "annotations"] {
        let Some(texts) = meta.get_mut(field).and_then(Value::as_object_mut) else { continue };
        for value in texts.values_mut().filter(|it| it.is_null()) {
            *value = "".into();
        }
    }
    for field in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
        let empty = match meta.get(field) {
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            _ => false,
        };
        if empty {
            meta.shift_remove(field);
        }
    }
}

/// Validates the name of a field manager.
pub(crate) fn check_manager(manager: &str) -> Vec<ValidationProblem> {
    let field = "fieldManager";
    let mut found = Vec::new();
    if manager.len() > MANAGER_BYTES_MAX {
        found.push(ValidationProblem::new(
            field,
            ProblemKind::TooLong(manager.into(), MANAGER_BYTES_MAX),
        ));
    }
    let bad = manager.char_indices().filter(|(_, sign)| sign.is_control());
    for (at, sign) in bad.take(MANAGER_FAULTS_MAX) {
        let code = u32::from(sign);
        let text = format!("invalid character U+{code:04X} (at position {at})");
        found.push(ValidationProblem::invalid(field, manager, text));
    }
    found
}

fn put(meta: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            meta.insert(field.into(), value);
        }
        None => {
            meta.shift_remove(field);
        }
    }
}

fn common(facts: KindFacts, names: NameFormat, object: &Value) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    let mut named = |field: &str, name: &str, prefix: bool| {
        for fault in names.faults(name, prefix) {
            found.push(ValidationProblem::invalid(format!("metadata.{field}"), name, fault));
        }
    };
    let (name, prefix) = (object::meta(object, "name"), object::meta(object, "generateName"));
    if !prefix.is_empty() {
        named("generateName", prefix, true);
    }
    if name.is_empty() {
        found
            .push(ValidationProblem::required("metadata.name", "name or generateName is required"));
    } else {
        named("name", name, false);
    }
    found.extend(namespace(facts, object::meta(object, "namespace")));
    let meta = object.get("metadata");
    let generation = meta.and_then(|it| it.get("generation")).and_then(Value::as_i64);
    if let Some(negative) = generation.filter(|it| *it < 0) {
        let text = "must be greater than or equal to 0";
        found.push(ValidationProblem::invalid("metadata.generation", negative, text));
    }
    found.extend(labels(meta.and_then(|it| it.get("labels")), "metadata.labels"));
    found.extend(annotations(meta.and_then(|it| it.get("annotations"))));
    found.extend(owners::check(meta.and_then(|it| it.get("ownerReferences"))));
    found.extend(finalizers(object));
    found
}

fn namespace(facts: KindFacts, namespace: &str) -> Vec<ValidationProblem> {
    let field = "metadata.namespace";
    match (facts.namespaced, namespace) {
        (true, "") => vec![ValidationProblem::required(field, "")],
        (true, name) => {
            let faults = names::dns_label(name).into_iter();
            faults.map(|it| ValidationProblem::invalid(field, name, it)).collect()
        }
        (false, "") => Vec::new(),
        (false, _) => vec![ValidationProblem::forbidden(field, "not allowed on this type")],
    }
}

/// Validates the keys and values of labels, in any field.
pub(crate) fn labels(labels: Option<&Value>, field: &str) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let faults = names::qualified_name(key).into_iter();
        found.extend(faults.map(|it| ValidationProblem::invalid(field, key.as_str(), it)));
        let value = value.as_str().unwrap_or_default();
        let faults = names::label_value(value).into_iter();
        found.extend(faults.map(|it| ValidationProblem::invalid(field, value, it)));
    }
    found
}

fn annotations(annotations: Option<&Value>) -> Vec<ValidationProblem> {
    let field = "metadata.annotations";
    let mut found = Vec::new();
    let mut bytes = 0_usize;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        // The case of keys is ignored here.
        let faults = names::qualified_name(&key.to_lowercase()).into_iter();
        found.extend(faults.map(|it| ValidationProblem::invalid(field, key.as_str(), it)));
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        found.push(ValidationProblem::new(
            field,
            ProblemKind::TooLong("".into(), ANNOTATIONS_BYTES_MAX),
        ));
    }
    found
}

fn finalizers(object: &Value) -> Vec<ValidationProblem> {
    let field = "metadata.finalizers";
    let finalizers = object::finalizers(object);
    let mut found = Vec::new();
    for name in &finalizers {
        let faults = names::qualified_name(name).into_iter();
        found.extend(faults.map(|it| ValidationProblem::invalid(field, name.as_str(), it)));
    }
    let has = |name: &str| finalizers.iter().any(|it| it == name);
    if has(ORPHAN) && has(FOREGROUND) {
        let text = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        found.push(ValidationProblem::invalid(field, finalizers.clone(), text));
    }
    found
}

fn unqualified_finalizers(object: &Value) -> Vec<ValidationProblem> {
    let finalizers = object::finalizers(object).into_iter().enumerate();
    let bad = finalizers
        .filter(|(_, it)| !it.contains('/') && !STANDARD_FINALIZERS.contains(&it.as_str()));
    let text = "name is neither a standard finalizer name nor is it fully qualified";
    bad.map(|(at, name)| {
        ValidationProblem::invalid(format!("metadata.finalizers[{at}]"), name, text)
    })
    .collect()
}

/// Checks that immutable fields have not changed. Validates labels and others once more, as the real server does.
fn changes(new: &Value, old: &Value) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    if object::deleting(old) {
        let before: BTreeSet<String> = object::finalizers(old).into_iter().collect();
        let mut added = object::finalizers(new);
        added.retain(|it| !before.contains(it));
        added.sort();
        added.dedup();
        if !added.is_empty() {
            let text = "no new finalizers can be added if the object is being deleted, found new finalizers";
            let text = format!("{text} {}", go::list(&added));
            found.push(ValidationProblem::forbidden("metadata.finalizers", text));
        }
    }
    let version = object::meta(new, "resourceVersion");
    if version.is_empty() {
        let text = "must be specified for an update";
        found.push(ValidationProblem::invalid("metadata.resourceVersion", version, text));
    }
    for field in ["name", "namespace", "uid"] {
        let given = object::meta(new, field);
        if given != object::meta(old, field) {
            found.push(ValidationProblem::invalid(format!("metadata.{field}"), given, IMMUTABLE));
        }
    }
    let value = |of: &Value, field: &str| {
        of.get("metadata").and_then(|it| it.get(field)).filter(|it| !it.is_null()).cloned()
    };
    for field in ["creationTimestamp", "deletionTimestamp"] {
        let given = value(new, field);
        if given != value(old, field) {
            found.push(ValidationProblem::invalid(format!("metadata.{field}"), given, IMMUTABLE));
        }
    }
    let field = "deletionGracePeriodSeconds";
    let given = value(new, field);
    if given != value(old, field) {
        let problem = ValidationProblem::invalid(format!("metadata.{field}"), given, IMMUTABLE);
        found.push(problem);
    }
    let meta = new.get("metadata");
    found.extend(labels(meta.and_then(|it| it.get("labels")), "metadata.labels"));
    found.extend(annotations(meta.and_then(|it| it.get("annotations"))));
    found.extend(owners::check(meta.and_then(|it| it.get("ownerReferences"))));
    found
}

const IMMUTABLE: &str = "field is immutable";
