//! Discovery: the documents that list what the server serves, and its health.
//!
//! All functions take the served kinds. They need not be fast, because clients cache the documents.

pub(crate) mod aggregated;
pub(crate) mod document;
pub(crate) mod health;
mod order;
pub(crate) mod routes;
mod subresources;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use blake2::{Blake2s256, Digest as _};
use serde_json::{Map, Value, json};

pub(crate) use self::subresources::{SubresourceEndpoint, subresources};
use crate::resource::kind::Kind;
use crate::sorted;

/// Returns `/version`: the release whose behavior is reproduced.
pub(crate) fn server_version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-07-15T00:00:00Z",
        "goVersion": "go1.26.5",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// Returns `/api`. Clients on the machine of the server reach it at this address.
pub(crate) fn core_versions(address: Option<&str>) -> Value {
    let addresses = address.map(|it| json!({ "clientCIDR": "0.0.0.0/0", "serverAddress": it }));
    let addresses: Vec<Value> = addresses.into_iter().collect();
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses })
}

/// Returns `/apis`, the list of groups.
pub(crate) fn groups(kinds: &[Arc<Kind>]) -> Value {
    let groups = order::groups(kinds).into_iter().map(|it| describe_group(kinds, it));
    let groups: Vec<Value> = groups.map(Value::Object).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// Returns `/apis/GROUP`; `None` for an unknown group.
pub(crate) fn group(kinds: &[Arc<Kind>], name: &str) -> Option<Value> {
    let known = order::groups(kinds).contains(&name);
    known.then(|| {
        let head = [("kind", "APIGroup"), ("apiVersion", "v1")];
        let head = head.into_iter().map(|(name, it)| (name.to_owned(), Value::from(it)));
        Value::Object(head.chain(describe_group(kinds, name)).collect())
    })
}

/// Returns `/apis/GROUP/VERSION` or `/api/v1`; `None` for an unknown version.
pub(crate) fn resources(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let served = of_version(kinds, group, version);
    let group_version = served.first()?.def.api_version(version);
    let resources: Vec<Value> =
        served.iter().flat_map(|it| describe_resource(it, version)).collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    });
    // The core group is older than this field.
    if let Some(fields) = list.as_object_mut().filter(|_| group.is_empty()) {
        fields.shift_remove("apiVersion");
    }
    Some(list)
}

/// Returns `/`: every path without an object.
pub(crate) fn paths(kinds: &[Arc<Kind>]) -> Value {
    let mut paths: BTreeSet<String> =
        ["/api", "/api/v1", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/version"]
            .map(String::from)
            .into();
    for group in order::groups(kinds) {
        paths.insert(format!("/apis/{group}"));
        for version in order::versions(kinds, group) {
            paths.insert(format!("/apis/{group}/{version}"));
            paths.insert(format!("/openapi/v3/apis/{group}/{version}"));
        }
    }
    paths.insert("/openapi/v3/api/v1".into());
    paths.extend(health::paths());
    json!({ "paths": paths })
}

fn describe_group(kinds: &[Arc<Kind>], name: &str) -> Map<String, Value> {
    let versions = order::versions(kinds, name).into_iter();
    let versions =
        versions.map(|it| json!({ "groupVersion": format!("{name}/{it}"), "version": it }));
    let versions: Vec<Value> = versions.collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    let fields = [
        ("name", Value::from(name)),
        ("versions", versions.into()),
        ("preferredVersion", preferred),
    ];
    fields.into_iter().map(|(name, it)| (name.to_owned(), it)).collect()
}

/// Returns the kinds that have this version, sorted by plural.
fn of_version<'a>(kinds: &'a [Arc<Kind>], group: &str, version: &str) -> Vec<&'a Kind> {
    let serves =
        |it: &&Arc<Kind>| it.def.group == group && it.def.versions.iter().any(|it| it == version);
    let mut served: Vec<&Kind> = kinds.iter().filter(serves).map(|it| &**it).collect();
    sorted::sort_by(&mut served, |left, right| left.def.plural.cmp(&right.def.plural));
    served
}

/// Returns the entries of a resource and its subresources.
fn describe_resource(kind: &Kind, version: &str) -> Vec<Value> {
    let def = &kind.def;
    let main = json!({
        "name": def.plural,
        "singularName": def.singular,
        "namespaced": def.namespaced,
        "kind": def.kind,
        "verbs": order::verbs(kind, version),
        "shortNames": def.short_names,
        "categories": def.categories,
        "storageVersionHash": storage_hash(kind),
    });
    let parts = subresources(kind, version).into_iter().map(|it| {
        let foreign = it.group != def.group || it.version != version;
        json!({
            "name": format!("{}/{}", def.plural, it.name),
            "singularName": "",
            "namespaced": def.namespaced,
            "group": if foreign { it.group } else { "" },
            "version": if foreign { it.version } else { "" },
            "kind": it.kind,
            "verbs": it.verbs,
        })
    });
    std::iter::once(main).chain(parts).map(without_empty).collect()
}

/// Returns the storage version hash. It changes with the storage version; it is empty for kinds that are never stored.
fn storage_hash(kind: &Kind) -> String {
    let def = &kind.def;
    if !def.verbs.iter().any(|it| it == "watch") {
        return String::new();
    }
    let name = format!("{}/{}/{}", def.group, kind.storage(), def.kind);
    let digest = Blake2s256::digest(name.as_bytes());
    BASE64_STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// Removes optional fields that are empty.
fn without_empty(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, value| match name.as_str() {
            "shortNames" | "categories" | "subresources" => {
                value.as_array().is_some_and(|it| !it.is_empty())
            }
            "group" | "version" | "storageVersionHash" => value != "",
            _ => true,
        });
    }
    value
}
