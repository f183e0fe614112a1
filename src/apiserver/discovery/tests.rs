//! Discovery compared with the documents of a real server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::{
    request::query::Query,
    resource::{
        ResourceDef,
        kind::{KindVersion, Scale},
    },
};

fn recorded() -> Value {
    serde_json::from_str(include_str!("../tests/recorded/discovery.json")).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|it| it.as_str().unwrap().into()).collect()
}

fn kind(def: ResourceDef, scale: bool) -> Arc<Kind> {
    let scale = scale.then(|| Scale {
        wanted: ".spec.replicas".into(),
        present: ".status.replicas".into(),
        selector: None,
    });
    let version = KindVersion { scale, ..KindVersion::default() };
    let versions = def.versions.iter().map(|it| (it.clone(), version.clone()));
    let versions: BTreeMap<String, KindVersion> = versions.collect();
    Arc::new(Kind { versions, ..Kind::plain(def) })
}

/// Returns the kinds of a recorded document.
fn kinds(group: &str, document: &Value) -> Vec<Arc<Kind>> {
    let resources = document["resources"].as_array().unwrap();
    let has = |name: String| resources.iter().any(|it| it["name"] == name);
    let text = |it: &Value| String::from(it.as_str().unwrap_or_default());
    let main = resources.iter().filter(|it| !it["name"].as_str().unwrap().contains('/'));
    let kinds = main.map(|it| {
        let plural = text(&it["name"]);
        let def = ResourceDef {
            namespaced: it["namespaced"] == true,
            native: group != "present.example.com",
            singular: text(&it["singularName"]),
            short_names: texts(&it["shortNames"]),
            categories: texts(&it["categories"]),
            verbs: texts(&it["verbs"]),
            status_subresource: has(format!("{plural}/status")),
            ..ResourceDef::new(group, "v1", &plural, it["kind"].as_str().unwrap())
        };
        kind(def, has(format!("{plural}/scale")))
    });
    // The order of the kinds must not matter.
    let mut kinds: Vec<_> = kinds.collect();
    kinds.reverse();
    kinds
}

#[test]
fn the_resources_of_a_version_are_listed_as_by_the_real_server() {
    for (path, document) in recorded()["resources"].as_object().unwrap() {
        let group = path.strip_prefix("/apis/").map_or("", |it| it.split_once('/').unwrap().0);
        let mut listed = resources(&kinds(group, document), group, "v1").unwrap();
        // These fields are not recorded.
        for resource in listed["resources"].as_array_mut().unwrap() {
            resource.as_object_mut().unwrap().shift_remove("storageVersionHash");
        }
        assert_eq!(listed, *document, "{path}");
    }
}

#[test]
fn groups_come_in_the_order_of_the_real_server_and_custom_ones_last() {
    let recorded = recorded();
    let groups: Vec<(&str, Vec<String>)> = recorded["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it[0].as_str().unwrap(), texts(&it[1])))
        .collect();
    let mut all = vec![kind(ResourceDef::new("b.dev", "v1", "bs", "B"), false)];
    all.push(kind(ResourceDef::new("a.dev", "v2", "as", "A"), false));
    for (name, versions) in groups.iter().rev() {
        let versions = versions.iter().rev().cloned().collect();
        let def = ResourceDef { versions, ..ResourceDef::new(name, "", "things", "Thing") };
        all.push(kind(def, false));
    }
    let listed = super::groups(&all);
    let listed: Vec<(&str, Vec<String>)> = listed["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let versions = it["versions"].as_array().unwrap();
            assert_eq!(it["preferredVersion"], versions[0]);
            let versions = versions.iter().map(|it| it["version"].as_str().unwrap().into());
            (it["name"].as_str().unwrap(), versions.collect())
        })
        .collect();
    let custom = [("b.dev", vec!["v1".to_owned()]), ("a.dev", vec!["v2".to_owned()])];
    assert_eq!(listed, [groups, custom.into()].concat());
}

#[test]
fn versions_are_ordered_by_maturity() {
    let versions = ["foo", "v1alpha1", "v10", "v1", "v1beta1", "v01", "v11alpha2", "v1beta2"];
    let def = ResourceDef {
        versions: versions.map(String::from).into(),
        ..ResourceDef::new("g.dev", "", "things", "Thing")
    };
    let all = [kind(def, false)];
    let listed = group(&all, "g.dev").unwrap();
    let listed: Vec<&str> = listed["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["version"].as_str().unwrap())
        .collect();
    let order = ["v10", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo", "v01"];
    assert_eq!(listed, order);
    assert_eq!(group(&all, "other.dev"), None);
    assert_eq!(resources(&all, "g.dev", "v3"), None);
}

#[test]
fn aggregated_discovery_has_everything_at_once() {
    let apps = kinds("apps", &recorded()["resources"]["/apis/apps/v1"]);
    let listed = aggregated::groups(&apps);
    assert_eq!(listed["apiVersion"], "apidiscovery.k8s.io/v2");
    let group = &listed["items"][0];
    assert_eq!(group["metadata"], json!({ "name": "apps" }));
    let version = &group["versions"][0];
    assert_eq!((&version["version"], &version["freshness"]), (&json!("v1"), &json!("Current")));
    let resources = version["resources"].as_array().unwrap();
    let deployments = resources.iter().find(|it| it["resource"] == "deployments").unwrap();
    assert_eq!(
        *deployments,
        json!({
            "resource": "deployments",
            "responseKind": { "group": "apps", "version": "v1", "kind": "Deployment" },
            "scope": "Namespaced",
            "singularResource": "deployment",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["deploy"],
            "categories": ["all"],
            "subresources": [
                {
                    "subresource": "scale",
                    "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" },
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "status",
                    "responseKind": { "group": "apps", "version": "v1", "kind": "Deployment" },
                    "verbs": ["get", "patch", "update"],
                },
            ],
        })
    );
    let core = kinds("", &recorded()["resources"]["/api/v1"]);
    let listed = aggregated::core(&core);
    assert_eq!(listed["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(listed["items"][0]["metadata"], json!({}));
    // The core group is not in the list of groups.
    assert_eq!(aggregated::groups(&core)["items"], json!([]));
}

#[test]
fn the_health_is_reported_as_by_the_real_server() {
    let ask = |path: &str, query: &str| health::respond(path, &Query::parse(query));
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/etcd", "/readyz/shutdown"]
    {
        assert_eq!(ask(path, "").as_deref(), Some("ok"), "{path}");
    }
    for path in ["/readyz/", "/readyz/foo", "/readyz/ping/x", "/livez/shutdown", "/", "/ping", ""] {
        assert_eq!(ask(path, ""), None, "{path}");
    }
    let text = ask("/readyz", "verbose&exclude=etcd&exclude=foo").unwrap();
    let expected = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]informer-sync ok\n";
    assert!(text.starts_with(expected), "{text}");
    let expected = "[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"foo\"\nreadyz check passed\n";
    assert!(text.ends_with(expected), "{text}");
    assert!(ask("/livez", "verbose").unwrap().ends_with("\nlivez check passed\n"));
}

#[test]
fn all_paths_are_listed() {
    let all = [kind(ResourceDef::new("g.dev", "v1", "things", "Thing"), false)];
    let listed = paths(&all);
    let listed = texts(&listed["paths"]);
    for path in ["/apis/g.dev/v1", "/readyz/ping", "/openapi/v3/apis/g.dev/v1", "/version"] {
        assert!(listed.iter().any(|it| it == path), "{path}");
    }
    assert!(listed.is_sorted());
}

#[test]
fn documents_are_sent_once_to_clients_that_cache_them() {
    let document = document::CompressedDocument::new("text/plain", b"hello");
    assert_eq!(document.body(), "hello");
    assert!(document.is_known(&document.etag) && document.is_known("*"));
    assert!(document.is_known(&format!("\"x\", W/{}", document.etag)));
    assert!(!document.is_known("") && !document.is_known("\"x\""));
    assert_ne!(document.etag, document::CompressedDocument::new("text/plain", b"hallo").etag);
    assert!(document.packed().starts_with(&[0x1f, 0x8b]));
}
