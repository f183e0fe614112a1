//! Discovery of resources.

use std::{collections::BTreeSet, sync::Arc};

use kopf::{
    cluster::KubeCluster,
    logic::object::resource::Resource,
    ports::{Cluster as _, GroupFilter},
    settings::Settings,
};
use serde_json::{Value, json};

use super::{Reply, scripted};

fn cluster() -> KubeCluster {
    let client = scripted(|request| match request.uri().path() {
        "/api" => Reply::ok(json!({"versions": ["v1"]})),
        "/apis" => Reply::ok(json!({"groups": [
            {"name": "kopf.dev", "versions": [{"version": "v1"}, {"version": "v2"}],
                "preferredVersion": {"version": "v2"}},
            {"name": "dead.dev", "versions": [{"version": "v1"}]},
            {"name": "gone.dev", "versions": [{"version": "v1"}]},
        ]})),
        "/api/v1" => Reply::ok(json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list"], "shortNames": ["po"],
                "categories": ["all"], "singularName": ""},
            {"name": "pods/status", "kind": "Pod", "verbs": ["get"]},
            {"name": "pods/a/b", "kind": "Pod"},
            {"name": "nodes", "kind": "Node", "singularName": "knot", "verbs": null},
        ]})),
        "/apis/kopf.dev/v1" | "/apis/kopf.dev/v2" => {
            Reply::ok(json!({"resources": [{"name": "kopfexamples", "kind": "KopfExample"}]}))
        }
        "/apis/dead.dev/v1" => Reply::status(503),
        _ => Reply::status(404),
    });
    KubeCluster::over(client, Arc::new(Settings::default()))
}

async fn discover(filter: GroupFilter) -> Vec<Resource> {
    cluster().discover(&filter).await.expect("resources").resources
}

fn names(resources: &[Resource]) -> Vec<String> {
    resources
        .iter()
        .map(|it| format!("{it}{}", if it.preferred { "" } else { " (other)" }))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn groups_that_are_dead_or_gone_are_left_out() {
    let found = discover(GroupFilter::All).await;
    let expected =
        ["pods.v1", "nodes.v1", "kopfexamples.v1.kopf.dev (other)", "kopfexamples.v2.kopf.dev"];
    assert_eq!(names(&found), expected);
}

#[tokio::test(start_paused = true)]
async fn only_the_groups_asked_for_are_read() {
    let only = |groups: &[&str]| GroupFilter::Only(groups.iter().map(|&it| it.into()).collect());
    assert_eq!(names(&discover(only(&[""])).await), ["pods.v1", "nodes.v1"]);
    assert_eq!(discover(only(&["kopf.dev"])).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_described_with_its_parts() {
    let found = discover(GroupFilter::All).await;
    let set = |items: &[&str]| items.iter().map(|&it| it.to_owned()).collect::<BTreeSet<_>>();
    let pods = &found[0];
    assert_eq!((pods.kind.as_str(), pods.singular.as_str(), pods.namespaced), ("Pod", "pod", true));
    assert_eq!((&pods.shortcuts, &pods.categories), (&set(&["po"]), &set(&["all"])));
    assert_eq!((&pods.subresources, &pods.verbs), (&set(&["status", "a/b"]), &set(&["list"])));
    assert_eq!(found[1].singular, "knot");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_an_error() {
    let client = scripted(|request| match request.uri().path() {
        "/api" => Reply::ok(json!({"versions": ["v1"]})),
        "/apis" => Reply::ok(json!({"groups": []})),
        _ => Reply::Refuse("no route"),
    });
    let cluster = KubeCluster::over(client, Arc::new(Settings::default()));
    assert!(cluster.discover(&GroupFilter::All).await.is_err());
}

/// The page of a proxy does not mean that the cluster, or a group, has no resources: their daemons would stop.
#[tokio::test(start_paused = true)]
async fn the_page_of_a_proxy_is_not_an_empty_discovery() {
    for page in [json!({}), json!({ "error": "maintenance" }), json!({ "kind": "Status" })] {
        for broken in ["/api", "/apis", "/api/v1"] {
            let page = page.clone();
            let client = scripted(move |request| match request.uri().path() {
                path if path == broken => Reply::ok(page.clone()),
                "/api" => Reply::ok(json!({ "versions": ["v1"] })),
                "/apis" => Reply::ok(json!({ "groups": [] })),
                _ => Reply::ok(json!({ "resources": null })),
            });
            let cluster = KubeCluster::over(client, Arc::new(Settings::default()));
            match cluster.discover(&GroupFilter::All).await {
                Ok(found) => assert!(found.failed.contains_key(""), "{broken}"),
                Err(error) => assert!(error.message.contains(broken), "{error}"),
            }
        }
    }
}

/// Returns a cluster with aggregated discovery. `wide.dev/v1` could not be refreshed, and `wide` returns its separate document.
fn aggregating(wide: fn() -> Reply) -> KubeCluster {
    let list = |items: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let client = scripted(move |request| match request.uri().path() {
        "/api" => {
            Reply::ok(list(json!([{"metadata": {}, "versions": [{"version": "v1", "resources": [
                {"resource": "pods", "responseKind": {"group": "", "version": "", "kind": "Pod"}, "scope": "Namespaced",
                    "verbs": ["list"], "shortNames": ["po"], "categories": ["all"], "subresources": [
                        {"subresource": "status", "responseKind": {"kind": "Pod"}, "verbs": ["get"]},
                        {"subresource": "a/b", "verbs": []},
                    ]},
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "singularResource": "knot", "scope": "Cluster", "verbs": null},
                {"resource": "parts", "scope": "Cluster", "subresources": [{"subresource": "scale"}]},
            ]}]}])))
        }
        "/apis" => {
            let accept = request.headers()["accept"].to_str().expect("text");
            assert!(accept.starts_with(
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
            ));
            Reply::ok(list(json!([
                {"metadata": {"name": "kopf.dev"}, "versions": [
                    {"version": "v2", "freshness": "Current", "resources": [
                        {"resource": "kopfexamples", "responseKind": {"kind": "KopfExample"}, "verbs": []}]},
                    {"version": "v1", "freshness": "Current", "resources": [
                        {"resource": "kopfexamples", "responseKind": {"kind": "KopfExample"}, "verbs": []}]},
                ]},
                {"metadata": {"name": "wide.dev"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
                {"metadata": {"name": "empty.dev"}},
            ])))
        }
        "/apis/wide.dev/v1" => wide(),
        path => panic!("nobody needs {path}"),
    });
    KubeCluster::over(client, Arc::new(Settings::default()))
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_needs_no_other_document() {
    let cluster = aggregating(|| panic!("nobody needs it"));
    let groups = ["", "kopf.dev"].map(str::to_owned).into();
    let found = cluster.discover(&GroupFilter::Only(groups)).await.expect("resources");
    let expected =
        ["pods.v1", "nodes.v1", "kopfexamples.v2.kopf.dev", "kopfexamples.v1.kopf.dev (other)"];
    assert_eq!(names(&found.resources), expected);
    let (pods, nodes) = (&found.resources[0], &found.resources[1]);
    let set = |items: &[&str]| items.iter().map(|&it| it.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!((pods.singular.as_str(), pods.namespaced), ("pod", true));
    assert_eq!((&pods.shortcuts, &pods.categories), (&set(&["po"]), &set(&["all"])));
    assert_eq!((&pods.subresources, &pods.verbs), (&set(&["status", "a/b"]), &set(&["list"])));
    assert_eq!((nodes.singular.as_str(), nodes.namespaced), ("knot", false));
}

#[tokio::test(start_paused = true)]
async fn a_stale_group_of_aggregated_discovery_is_read_by_itself() {
    let read = || Reply::ok(json!({"resources": [{"name": "seas", "kind": "Sea"}]}));
    let found = aggregating(read).discover(&GroupFilter::All).await.expect("resources");
    assert_eq!(names(&found.resources).last().map(String::as_str), Some("seas.v1.wide.dev"));
    assert!(found.failed.is_empty());
    let found = aggregating(|| Reply::status(503)).discover(&GroupFilter::All).await;
    let found = found.expect("the other resources");
    assert_eq!(found.resources.len(), 4);
    assert_eq!(found.failed.keys().collect::<Vec<_>>(), ["wide.dev"]);
}
