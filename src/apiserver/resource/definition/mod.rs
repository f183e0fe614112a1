//! `CustomResourceDefinition` objects: their rules, and the kinds that they define.

mod checks;
mod conversion;
mod convert;
mod defaults;
mod openapi;
mod order;
mod status;
mod structure;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub(crate) use self::{checks::check, defaults::defaults, order::by_priority, status::status};
use super::{
    ResourceDef,
    kind::{Column, Kind, KindVersion, Scale, Storage},
};
use crate::sorted::{self, CollectSorted as _};
use crate::{
    object,
    schema::{Rules, Schema},
};

/// Returns the kind that a CRD defines; `None` if the CRD is incomplete.
pub(crate) fn kind(crd: &Value) -> Option<Kind> {
    let text = |path: &str| crd.pointer(path).and_then(Value::as_str);
    let preserves = object::flag(crd, "/spec/preserveUnknownFields");
    let all = crd.pointer("/spec/versions")?.as_array()?;
    let mut served: Vec<&Value> = all.iter().filter(|it| object::flag(it, "/served")).collect();
    sorted::sort_by(&mut served, |a, b| {
        by_priority(structure::text(a, "name"), structure::text(b, "name"))
    });
    let names: Vec<String> =
        served.iter().map(|it| structure::text(it, "name").to_owned()).collect();
    let kind = text("/spec/names/kind")?;
    let basic = ResourceDef::new(text("/spec/group")?, "", text("/spec/names/plural")?, kind);
    let mut versions: BTreeMap<String, KindVersion> = served
        .iter()
        .zip(&names)
        .map(|(it, name)| (name.clone(), version(it, preserves)))
        .collect_map();
    let has_status =
        |it: &Value| it.pointer("/subresources/status").is_some_and(|it| !it.is_null());
    let any_status = served.iter().any(|it| has_status(it));
    for (name, it) in names.iter().zip(&served) {
        if let Some(version) = versions.get_mut(name) {
            version.without_status = any_status && !has_status(it);
            version.warning = deprecation(crd, it, &served);
            version.terminating = is_terminating(crd);
        }
    }
    let storage = storage(crd, all);
    if storage.webhook.is_none() {
        share_storage(all, preserves, &mut versions);
    }
    Some(Kind {
        def: ResourceDef {
            singular: text("/spec/names/singular")
                .map_or_else(|| basic.singular.clone(), String::from),
            short_names: object::strings(crd, "/spec/names/shortNames"),
            categories: object::strings(crd, "/spec/names/categories"),
            namespaced: text("/spec/scope") == Some("Namespaced"),
            status_subresource: any_status,
            versions: names.clone(),
            ..basic
        },
        native: None,
        versions,
        storage,
    })
}

/// Returns the storage of the objects of a CRD: the version, and the conversion webhook.
fn storage(crd: &Value, versions: &[Value]) -> Storage {
    let stored = versions.iter().find(|it| object::flag(it, "/storage"));
    let version = stored.map(|it| structure::text(it, "name").to_owned()).unwrap_or_default();
    let strategy = crd.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    let webhook = crd.pointer("/spec/conversion/webhook/clientConfig");
    let webhook = webhook.filter(|_| strategy == Some("Webhook")).cloned().map(Arc::new);
    Storage { version, webhook }
}

/// Returns whether the CRD and its objects are being deleted.
fn is_terminating(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let condition = conditions.find(|it| structure::text(it, "type") == "Terminating");
    condition.is_some_and(|it| structure::text(it, "status") == "True")
}

/// Applies the storage schema to all versions: without a conversion webhook, objects have only its fields and defaults, whatever
/// version is requested.
fn share_storage(all: &[Value], preserves: bool, versions: &mut BTreeMap<String, KindVersion>) {
    let schema = |it: &Value| it.pointer("/schema/openAPIV3Schema").cloned();
    let Some(storage) = all.iter().find(|it| object::flag(it, "/storage")).map(schema) else {
        return;
    };
    if preserves || all.iter().all(|it| schema(it) == storage) {
        return;
    }
    let parsed = storage.map_or_else(
        || Schema { preserves_unknown: true, ..Schema::default() },
        |it| Schema::parse(&it),
    );
    let parsed = Arc::new(parsed);
    for version in versions.values_mut() {
        version.stored = Some(Arc::clone(&parsed));
    }
}

/// Returns the warning about a deprecated version: its own message, or the name of a newer version.
fn deprecation(crd: &Value, version: &Value, served: &[&Value]) -> Option<String> {
    if !object::flag(version, "/deprecated") {
        return None;
    }
    if let Some(own) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(own.into());
    }
    let text = |path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let name = structure::text(version, "name");
    // They are sorted: the first one is the newest.
    let better = served.iter().map(|it| (structure::text(it, "name"), *it));
    let better = better
        .filter(|(other, it)| !object::flag(it, "/deprecated") && by_priority(other, name).is_lt())
        .map(|(other, _)| other)
        .next();
    let advice = better.map(|it| format!("; use {group}/{it} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{advice}"))
}

/// Adds the storage version to the stored versions in the status of a changed CRD.
pub(crate) fn updated(_: &Value, new: &mut Value) {
    status::remember_storage(new);
}

fn version(version: &Value, preserves: bool) -> KindVersion {
    let raw = version.pointer("/schema/openAPIV3Schema").cloned().map(Arc::new);
    let schema = raw.as_ref().map(|it| Arc::new(Schema::parse(it)));
    let rules = raw.as_ref().zip(schema.as_ref()).and_then(|(raw, schema)| {
        // A schema that cannot be compiled is refused when the CRD is written. If one is stored nevertheless, objects are not
        // validated.
        Rules::new(raw, schema.clone()).ok().map(Arc::new)
    });
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    KindVersion {
        // A schema that keeps all unknown fields need not be structural, so it cannot be used for pruning and merging.
        schema: schema.filter(|_| !preserves),
        raw_schema: raw,
        rules,
        selectable: structure::several(version, "selectableFields")
            .map(|it| structure::text(it, "jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        columns: columns.into_iter().flatten().map(column).collect(),
        scale: version.pointer("/subresources/scale").filter(|it| it.is_object()).map(scale),
        ..KindVersion::default()
    }
}

fn column(column: &Value) -> Column {
    let text = |field: &str| structure::text(column, field).to_owned();
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        json_path: text("jsonPath"),
    }
}

fn scale(scale: &Value) -> Scale {
    let text = |field: &str| structure::text(scale, field).to_owned();
    Scale {
        wanted: text("specReplicasPath"),
        present: text("statusReplicasPath"),
        selector: Some(text("labelSelectorPath")).filter(|it| !it.is_empty()),
    }
}
