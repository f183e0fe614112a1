//! The zero values of native objects: the fields that the real server shows even if no client has set them.
//!
//! A client that fills in such a part manages its fields, but not the part itself. A client that sets a field to its zero value does
//! not become its manager.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

/// By kind, without metadata. A test reads it, too, so that it is valid.
static ZEROS: LazyLock<BTreeMap<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("zeros.json")).unwrap_or_default());
static PLAIN: LazyLock<Value> = LazyLock::new(|| json!({}));

/// The groups of native kinds that do not end in `.k8s.io`.
const SHORT_GROUPS: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];
const LONG_GROUPS: [&str; 17] = [
    "admissionregistration",
    "apiextensions",
    "apiregistration",
    "authentication",
    "authorization",
    "certificates",
    "coordination",
    "discovery",
    "events",
    "flowcontrol.apiserver",
    "internal.apiserver",
    "networking",
    "node",
    "rbac.authorization",
    "resource",
    "scheduling",
    "storage",
];

/// Returns the fields that an object of this kind always has; `None` for kinds that are not native.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static Value> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let long = group.strip_suffix(".k8s.io");
    if !SHORT_GROUPS.contains(&group) && !long.is_some_and(|it| LONG_GROUPS.contains(&it)) {
        return None;
    }
    // Events are in two groups, with different fields.
    let name = if kind == "Event" && group.is_empty() { "core Event" } else { kind };
    Some(ZEROS.get(name).unwrap_or(&PLAIN))
}
