//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;
use crate::sorted::{self, CollectSorted as _};

/// The operation of server-side apply.
const APPLY: &str = "Apply";
/// The operation of all other writes.
const UPDATE: &str = "Update";
/// Limit of entries of updates; beyond it, the oldest ones are merged.
const UPDATES_MAX: usize = 10;
/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

/// A field manager. Entries with equal ids are the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) manager: String,
    operation: String,
    /// Empty for an applier, which is the same manager in all versions.
    api_version: String,
    pub(super) subresource: String,
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ManagedFieldsEntry {
    /// The version in which the fields are named.
    pub(super) api_version: String,
    /// The time of the last change of the fields. Clients may have left it out.
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ManagedFields(pub(super) BTreeMap<Id, ManagedFieldsEntry>);

impl Id {
    pub(super) fn apply(manager: &str, subresource: &str) -> Self {
        Self::new(manager, APPLY, "", subresource)
    }

    pub(super) fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self::new(manager, UPDATE, api_version, subresource)
    }

    fn new(manager: &str, operation: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: manager.into(),
            operation: operation.into(),
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }

    pub(super) fn applies(&self) -> bool {
        self.operation == APPLY
    }

    /// Returns the version of an updater; `None` for an applier.
    pub(super) fn version(&self) -> Option<&str> {
        (!self.applies()).then_some(&self.api_version)
    }
}

impl ManagedFields {
    /// Parses the entries of an object; `None` if any of them is invalid.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let Some(list) = raw(object) else { return Some(Self::default()) };
        list.as_array()?.iter().map(|it| read_entry(it).ok_or(())).try_collect_map().ok().map(Self)
    }

    /// Returns whether a client resets managed fields: with an empty list, or a single empty entry.
    pub(super) fn is_reset(object: &Value) -> bool {
        match raw(object).and_then(Value::as_array).map(Vec::as_slice) {
            Some([]) => true,
            Some([Value::Object(only)]) => only.is_empty(),
            _ => false,
        }
    }

    /// Serializes the entries: appliers first, then by time and name.
    pub(super) fn to_json(&self) -> Value {
        let mut entries: Vec<(&Id, &ManagedFieldsEntry)> = self.0.iter().collect();
        sorted::sort_by_key(&mut entries, |(id, entry)| {
            (&id.operation, seconds(entry), &id.manager, &entry.api_version, &id.subresource)
        });
        Value::Array(entries.into_iter().map(|(id, entry)| write_entry(id, entry)).collect())
    }

    /// Removes fields from all entries but one.
    pub(super) fn take(&mut self, fields: &FieldSet, but: Option<&Id>) {
        for (_, entry) in self.0.iter_mut().filter(|(id, _)| Some(*id) != but) {
            entry.fields = entry.fields.difference(fields);
        }
    }

    /// Removes the entries without fields.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Returns the fields of all managers.
    pub(super) fn all_fields(&self) -> FieldSet {
        let mut all = FieldSet::default();
        for entry in self.0.values() {
            all.extend(entry.fields.clone());
        }
        all
    }

    /// Merges the oldest updates of each version until the limit is met.
    pub(super) fn cap(&mut self) {
        let mut updates: Vec<_> = self
            .0
            .iter()
            .filter(|(id, _)| !id.applies())
            .map(|(id, entry)| (seconds(entry), id.clone()))
            .collect();
        let mut count = updates.len();
        sorted::sort(&mut updates);
        let mut first_of_version: BTreeMap<String, Id> = BTreeMap::new();
        for (_, id) in updates {
            if count <= UPDATES_MAX {
                return;
            }
            let bucket = Id::update(ANCIENT, &id.api_version, "");
            let Some(first) = first_of_version.get(&id.api_version) else {
                first_of_version.insert(id.api_version.clone(), id);
                continue;
            };
            if id == bucket {
                continue;
            }
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            if let Some(entry) = self.0.remove(&id)
                && let Some(joined) = self.0.get_mut(&bucket)
            {
                joined.fields.extend(entry.fields);
                // The time of the newer one.
                joined.time = entry.time;
                count = count.saturating_sub(1);
            }
        }
    }
}

fn raw(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|it| !it.is_null())
}

/// Returns the time of an entry in seconds; entries without a time are the oldest.
fn seconds(entry: &ManagedFieldsEntry) -> i64 {
    let time = entry.time.as_ref().and_then(|it| it.parse::<Timestamp>().ok());
    time.map_or(0, Timestamp::as_second)
}

fn read_entry(entry: &Value) -> Option<(Id, ManagedFieldsEntry)> {
    let text = |name: &str| match entry.get(name) {
        None | Some(Value::Null) => Some(""),
        Some(value) => value.as_str(),
    };
    if !entry.is_object() || text("fieldsType")? != "FieldsV1" {
        return None;
    }
    let api_version = text("apiVersion")?;
    let operation = text("operation")?;
    let identity = if operation == APPLY { "" } else { api_version };
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::from_json(fields)?,
    };
    Some((
        Id::new(text("manager")?, operation, identity, text("subresource")?),
        ManagedFieldsEntry {
            api_version: api_version.into(),
            time: match text("time")? {
                "" => None,
                // In seconds, UTC.
                time => Some(
                    Timestamp::new(time.parse::<Timestamp>().ok()?.as_second(), 0)
                        .ok()?
                        .to_string(),
                ),
            },
            fields,
        },
    ))
}

fn write_entry(id: &Id, entry: &ManagedFieldsEntry) -> Value {
    let mut map = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            map.insert(name.into(), value.into());
        }
    };
    put("manager", &id.manager);
    put("operation", &id.operation);
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    map.insert("fieldsType".into(), json!("FieldsV1"));
    map.insert("fieldsV1".into(), entry.fields.to_json());
    if !id.subresource.is_empty() {
        map.insert("subresource".into(), id.subresource.as_str().into());
    }
    Value::Object(map)
}
