//! The documents that tell clients what is served.

use serde_json::{Value, json};

use crate::apiserver::{resource::ResourceDef, store::Store};

/// `/version`: the release whose behaviour is imitated.
pub(crate) fn server_version() -> Value {
    json!({
        "major": "1",
        "minor": "34",
        "gitVersion": "v1.34.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2025-08-27T00:00:00Z",
        "goVersion": "go1.24.6",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// `/apis`
pub(crate) fn groups(store: &Store) -> Value {
    let mut names: Vec<&str> = defs(store).map(|it| it.group.as_str()).collect();
    names.retain(|it| !it.is_empty());
    names.sort_unstable();
    names.dedup();
    let groups: Vec<Value> = names.iter().filter_map(|it| describe_group(store, it)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`
pub(crate) fn group(store: &Store, name: &str) -> Option<Value> {
    let description = describe_group(store, name)?;
    let mut group = json!({ "kind": "APIGroup", "apiVersion": "v1" });
    if let (Some(group), Value::Object(description)) = (group.as_object_mut(), description) {
        group.extend(description);
    }
    Some(group)
}

/// `/apis/GROUP/VERSION` and `/api/v1`
pub(crate) fn resources(store: &Store, group: &str, version: &str) -> Option<Value> {
    let served =
        |it: &&ResourceDef| it.group == group && it.versions.iter().any(|it| it == version);
    let served: Vec<&ResourceDef> = defs(store).filter(served).collect();
    let group_version = served.first()?.api_version(version);
    let resources: Vec<Value> = served.into_iter().flat_map(describe_resource).collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn defs(store: &Store) -> impl Iterator<Item = &ResourceDef> {
    store.tables.values().map(|it| &it.kind.def)
}

fn describe_group(store: &Store, name: &str) -> Option<Value> {
    let mut versions: Vec<&String> = Vec::new();
    for version in defs(store).filter(|it| it.group == name).flat_map(|it| &it.versions) {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    let describe = |version: &&String| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    let preferred = versions.first().map(describe)?;
    let versions: Vec<Value> = versions.iter().map(describe).collect();
    Some(json!({ "name": name, "versions": versions, "preferredVersion": preferred }))
}

/// The resource, and its status if that is one.
fn describe_resource(def: &ResourceDef) -> Vec<Value> {
    let mut main = json!({
        "name": def.plural,
        "singularName": def.singular,
        "namespaced": def.namespaced,
        "kind": def.kind,
        "verbs": def.verbs,
        "shortNames": def.short_names,
        "categories": def.categories,
    });
    if let Some(fields) = main.as_object_mut() {
        fields.retain(|name, value| {
            !matches!(name.as_str(), "shortNames" | "categories")
                || value.as_array().is_some_and(|it| !it.is_empty())
        });
    }
    let status = json!({
        "name": format!("{}/status", def.plural),
        "singularName": "",
        "namespaced": def.namespaced,
        "kind": def.kind,
        "verbs": ["get", "patch", "update"],
    });
    if def.status_subresource { vec![main, status] } else { vec![main] }
}
