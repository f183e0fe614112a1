//! What the real server shows of native objects that nobody has filled in.
//!
//! Its native kinds have parts that are always there, be they empty. Nobody who fills them in becomes the manager of these
//! parts themselves, and a field that is set to what it is anyway is not managed at all.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

/// By kind, without the metadata. Read by a test too, so that it is not broken.
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

/// The parts that an object of this kind always has. Nothing for kinds that are not native.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static Value> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let long = group.strip_suffix(".k8s.io");
    if !SHORT_GROUPS.contains(&group) && !long.is_some_and(|it| LONG_GROUPS.contains(&it)) {
        return None;
    }
    // Events are native twice, and differ.
    let name = if kind == "Event" && group.is_empty() { "core Event" } else { kind };
    Some(ZEROS.get(name).unwrap_or(&PLAIN))
}
