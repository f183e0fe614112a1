//! Aggregated discovery: two documents instead of one for each version; newer clients request them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{of_version, order, subresources, without_empty};
use crate::resource::kind::Kind;

/// Returns `/api` as an `APIGroupDiscoveryList`.
pub(crate) fn core(kinds: &[Arc<Kind>]) -> Value {
    list(kinds, &[""])
}

/// Returns `/apis` as an `APIGroupDiscoveryList`.
pub(crate) fn groups(kinds: &[Arc<Kind>]) -> Value {
    list(kinds, &order::groups(kinds))
}

/// Marks versions as stale and removes their resources if the path of their document is refused, as for an aggregated API server
/// that is down.
pub(crate) fn mark_stale(list: &mut Value, is_refused: impl Fn(&str) -> bool) {
    let groups = list.get_mut("items").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten() {
        let name = group.pointer("/metadata/name").and_then(Value::as_str);
        let path = name.map_or_else(|| "/api".to_owned(), |it| format!("/apis/{it}"));
        let versions = group.get_mut("versions").and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten() {
            let name = version.get("version").and_then(Value::as_str).unwrap_or_default();
            if is_refused(&format!("{path}/{name}")) {
                *version = json!({ "version": name, "freshness": "Stale" });
            }
        }
    }
}

fn list(kinds: &[Arc<Kind>], groups: &[&str]) -> Value {
    let items: Vec<Value> = groups.iter().map(|it| group(kinds, it)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn group(kinds: &[Arc<Kind>], name: &str) -> Value {
    let metadata = match name {
        "" => json!({}),
        name => json!({ "name": name }),
    };
    let versions = order::versions(kinds, name).into_iter().map(|version| {
        let served = of_version(kinds, name, version);
        let resources: Vec<Value> = served.iter().map(|it| resource(it, version)).collect();
        json!({ "version": version, "resources": resources, "freshness": "Current" })
    });
    let versions: Vec<Value> = versions.collect();
    json!({ "metadata": metadata, "versions": versions })
}

fn resource(kind: &Kind, version: &str) -> Value {
    let def = &kind.def;
    let parts = subresources(kind, version).into_iter().map(|it| {
        json!({
            "subresource": it.name,
            "responseKind": { "group": it.group, "version": it.version, "kind": it.kind },
            "verbs": it.verbs,
        })
    });
    let parts: Vec<Value> = parts.collect();
    without_empty(json!({
        "resource": def.plural,
        "responseKind": { "group": def.group, "version": version, "kind": def.kind },
        "scope": if def.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": def.singular,
        "verbs": order::verbs(kind, version),
        "shortNames": def.short_names,
        "categories": def.categories,
        "subresources": parts,
    }))
}
