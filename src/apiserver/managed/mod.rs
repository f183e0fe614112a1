//! Field management: `metadata.managedFields`, and server-side apply.
//!
//! Pure functions. [`track`] records the manager of any write; [`apply`] merges an applied configuration into an object. Both run
//! after defaulting, but before webhooks and before the server sets its own fields, which have no manager. [`settle`] runs last.
//!
//! Objects are assumed to have the same fields in all versions, as with the conversion strategy `None`. The real server of the recordings
//! has bugs that newer ones have fixed, and that are not reproduced: it loses the schema of a CRD with an `int-or-string`, loses all
//! entries of an object with duplicates in a list, and cannot remove the last field of a map of a custom object; and the creator of a map
//! that is now empty becomes the manager of everything that others add to it.

mod collect;
mod compare;
mod conflict;
mod element;
mod entries;
mod last_applied;
mod merge;
mod names;
mod set;
#[cfg(test)]
mod tests;
mod typing;
mod validate;
mod zero;

use std::sync::LazyLock;

use serde_json::Value;

pub(crate) use self::names::{check_entries, manager_of};
use self::{
    collect::{fields_of, reconciled},
    compare::compare,
    element::Element,
    entries::{Id, ManagedFields, ManagedFieldsEntry},
    set::FieldSet,
    typing::FieldType,
};
use crate::{object, refusal::Refusal, schema::Schema};

/// The manager of fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields of the metadata without a manager, because the server or the URL sets them.
const IDENTITY: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    let field = |name: &str| Element::Field(name.into());
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[field(name)]);
    }
    for name in IDENTITY {
        set.insert(&[field("metadata"), field(name)]);
    }
    set
});

static EMPTY: Value = Value::Null;

/// The field manager of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldManager<'a> {
    pub(crate) manager: &'a str,
    /// The version of the request.
    pub(crate) api_version: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The time of the write, in seconds.
    pub(crate) time: &'a str,
    /// Top-level fields that this request cannot change, such as `status` if that is a subresource.
    pub(crate) ignored: &'a [&'a str],
}

/// Sets the `managedFields` of an object before it is stored. `old` is the stored object in the same version.
///
/// Objects without entries stay without them until the first apply, except new ones.
pub(crate) fn track(
    schema: Option<&Schema>,
    writer: &FieldManager<'_>,
    old: Option<&Value>,
    new: &mut Value,
) {
    let entries = match old {
        None => Some(ManagedFields::default()),
        Some(old) => continued(writer, old, new),
    };
    if let Some(meta) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.shift_remove("managedFields");
    }
    let Some(mut entries) = entries else { return };
    update(schema, writer, (old, new), &mut entries);
    store(new, &entries);
}

/// Makes the writer the manager of a field that was written through a subresource: the replicas of a scale.
pub(crate) fn hand_over(writer: &FieldManager<'_>, path: &str, new: &mut Value) {
    let Some(mut entries) = ManagedFields::read(new) else { return };
    let elements = path.split('.').filter(|it| !it.is_empty());
    let elements: Vec<Element> = elements.map(|it| Element::Field(it.into())).collect();
    let mut field = FieldSet::default();
    field.insert(&elements);
    entries.take(&field, None);
    let id = Id::update(writer.manager, writer.api_version, writer.subresource);
    let api_version = writer.api_version.to_owned();
    let empty = ManagedFieldsEntry { api_version, time: None, fields: FieldSet::default() };
    entries.0.entry(id).or_insert(empty).fields.extend(field);
    entries.drop_empty();
    store(new, &entries);
}

/// Returns the entries before an update; `None` if the object is not tracked.
fn continued(writer: &FieldManager<'_>, old: &Value, new: &Value) -> Option<ManagedFields> {
    let filled = |it: &ManagedFields| !it.0.is_empty();
    let stored = || ManagedFields::read(old).filter(filled);
    if !writer.subresource.is_empty() {
        return stored();
    }
    if ManagedFields::is_reset(new) {
        return None;
    }
    // Clients may edit entries. If a client does not send them, or sends invalid ones, they are kept.
    ManagedFields::read(new).filter(filled).or_else(stored)
}

/// Makes the writer the manager of the fields that it has changed.
fn update(
    schema: Option<&Schema>,
    writer: &FieldManager<'_>,
    (old, new): (Option<&Value>, &Value),
    entries: &mut ManagedFields,
) {
    let (kind, zero) = type_of(schema, new);
    reconcile(kind, entries);
    let changes = compare(kind, zero, old.unwrap_or(zero), new).without(writer.ignored);
    let id = Id::update(writer.manager, writer.api_version, writer.subresource);
    let former = entries.0.get(&id).cloned();
    entries.take(&changes.set, None);
    entries.take(&changes.removed, None);
    let own = without_identity(&changes.set);
    if !own.is_empty() {
        let api_version = writer.api_version.to_owned();
        let entry = entries.0.entry(id.clone());
        let entry =
            entry.or_insert(ManagedFieldsEntry { api_version, time: None, fields: own.clone() });
        entry.fields.extend(own);
        let same = former.as_ref().filter(|it| it.fields == entry.fields);
        entry.time = same.map_or_else(|| Some(writer.time.into()), |it| it.time.clone());
    }
    entries.drop_empty();
    entries.cap();
}

/// Returns the stored object with an applied configuration, and its `managedFields`. It equals the stored one if nothing changes.
/// `config` is in the version of the request.
pub(crate) fn apply(
    schema: Option<&Schema>,
    writer: &FieldManager<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, Refusal> {
    let (kind, zero) = type_of(schema, config);
    check_config(kind, config)?;
    let former = live.and_then(ManagedFields::read).unwrap_or_default();
    let mut entries = former.clone();
    if entries.0.is_empty() && live.is_some() {
        let before = FieldManager { manager: BEFORE_FIRST_APPLY, subresource: "", ..*writer };
        update(schema, &before, (None, live.unwrap_or(zero)), &mut entries);
    }
    reconcile(kind, &mut entries);

    let id = Id::apply(writer.manager, writer.subresource);
    let last = entries.0.remove(&id);
    let applied = fields_of(kind, config).without(writer.ignored);
    let fields = without_identity(&applied);
    let mut merged = merged(kind, writer, live, config);
    if let Some(last) = &last {
        let last = last.fields.clone().without(writer.ignored);
        // The applied name keeps the metadata from being removed with its last other field.
        let managed = entries.all_fields().union(&applied);
        merged = merge::prune(kind, merged, &last, &managed);
    }
    let changes = compare(kind, zero, live.unwrap_or(zero), &merged).without(writer.ignored);
    let found = entries.0.iter().map(|(id, it)| (id, it.fields.intersection(&changes.set)));
    let found: Vec<(&Id, FieldSet)> = found.filter(|(_, set)| !set.is_empty()).collect();
    if !force && !found.is_empty() {
        return Err(conflict::refusal(&found));
    }
    entries.take(&changes.set, None);
    entries.take(&changes.removed, None);
    let time = last.and_then(|it| it.time);
    let api_version = writer.api_version.to_owned();
    entries.0.insert(id.clone(), ManagedFieldsEntry { api_version, time, fields });
    entries.drop_empty();
    last_applied::update(writer.manager, config, &mut merged);
    let remembered = |it: &Value| it.pointer("/metadata/annotations").cloned();
    let same = live.is_some_and(|it| remembered(it) == remembered(&merged));
    if let Some(live) = live.filter(|_| same && changes.is_empty() && entries == former) {
        return Ok(live.clone());
    }
    // An applier of unchanged fields becomes their manager without a new time.
    let is_written = live.is_none() || !changes.is_empty() || !same;
    if let Some(entry) = entries.0.get_mut(&id).filter(|_| is_written) {
        entry.time = Some(writer.time.into());
    }
    store(&mut merged, &entries);
    Ok(merged)
}

/// Restores the times of entries if nothing else has changed, so that such a write is a no-op. It must run after everything else
/// that changes the object.
pub(crate) fn settle(old: &Value, new: &mut Value) {
    let list = |object: &'_ Value| object.pointer("/metadata/managedFields").cloned();
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (list(old), list(new)) else {
        return;
    };
    if before == after || before.len() != after.len() {
        return;
    }
    let same_entry = |(left, right): (&Value, &Value)| same_but(left, right, "time", |_, _| true);
    let same_meta =
        |left: &Value, right: &Value| same_but(left, right, "managedFields", |_, _| true);
    if before.iter().zip(&after).all(same_entry) && same_but(old, new, "metadata", same_meta) {
        object::set_meta(new, "managedFields", before);
    }
}

/// Returns whether two maps are equal except for one field, which is compared by another rule.
fn same_but(
    left: &Value,
    right: &Value,
    name: &str,
    rule: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return false };
    left.len() == right.len()
        && left.iter().all(|(key, left)| match right.get(key) {
            None => false,
            Some(right) if key == name => rule(left, right),
            Some(right) => left == right,
        })
}

/// Refuses a configuration that cannot be applied.
fn check_config(kind: FieldType<'_>, config: &Value) -> Result<(), Refusal> {
    if config.get("metadata").and_then(|it| it.get("managedFields")).is_some_and(|it| !it.is_null())
    {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, given) = (text("/apiVersion"), text("/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let Some(text_of) = validate::mistakes(kind, config) else { return Ok(()) };
    // The real server reports it as an internal error, without a reason.
    Err(Refusal {
        code: 500,
        reason: "".into(),
        message: format!(
            "failed to create typed patch object ({}/{}; {}, Kind={given}): {text_of}",
            text("/metadata/namespace"),
            text("/metadata/name"),
            if group.is_empty() { format!("/{version}") } else { api_version.to_owned() },
        ),
        details: None,
    })
}

/// Returns the live object merged with the configuration, without its entries.
fn merged(
    kind: FieldType<'_>,
    writer: &FieldManager<'_>,
    live: Option<&Value>,
    config: &Value,
) -> Value {
    let mut config = config.clone();
    if let Some(fields) = config.as_object_mut() {
        fields.retain(|name, _| !writer.ignored.contains(&name.as_str()));
    }
    let Some(live) = live else { return config };
    merge::merge(kind, live, &config)
}

fn type_of<'a>(schema: Option<&'a Schema>, object: &Value) -> (FieldType<'a>, &'static Value) {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let zero = zero::of(text("apiVersion"), text("kind"));
    (FieldType::object(schema, zero.is_some()), zero.unwrap_or(&EMPTY))
}

fn reconcile(kind: FieldType<'_>, entries: &mut ManagedFields) {
    for entry in entries.0.values_mut() {
        entry.fields = reconciled(kind, &entry.fields);
    }
}

fn without_identity(fields: &FieldSet) -> FieldSet {
    fields.difference(&NOBODYS)
}

fn store(object: &mut Value, entries: &ManagedFields) {
    if entries.0.is_empty() {
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.shift_remove("managedFields");
        }
    } else {
        object::set_meta(object, "managedFields", entries.to_json());
    }
}
