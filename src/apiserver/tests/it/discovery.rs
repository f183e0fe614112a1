//! Discovery documents, OpenAPI and health.

use super::*;

#[tokio::test(start_paused = true)]
async fn resources_are_in_discovery() {
    let cluster = Cluster::stamping();
    let (_, list) = cluster.get("/apis/kopf.dev/v1").await;
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let expected = json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "kopf.dev/v1",
        "resources": [
            {
                "name": "kopfexamples",
                "singularName": "kopfexample",
                "namespaced": true,
                "kind": "KopfExample",
                "verbs": verbs,
                "shortNames": ["kex"],
                "categories": ["all"],
                "storageVersionHash": list["resources"][0]["storageVersionHash"],
            },
            {
                "name": "kopfexamples/status",
                "singularName": "",
                "namespaced": true,
                "kind": "KopfExample",
                "verbs": ["get", "patch", "update"],
            },
        ],
    });
    assert_eq!(list, expected);
}

#[tokio::test(start_paused = true)]
async fn kube_discovers_everything() {
    let cluster = Cluster::plain();
    assert_eq!(cluster.client.apiserver_version().await.expect("a version").major, "1");
    let core = cluster.client.list_core_api_versions().await.expect("versions").versions;
    assert_eq!(core, ["v1"]);
    let groups = cluster.client.list_api_groups().await.expect("groups").groups;
    let names: Vec<&str> = groups.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"apiregistration.k8s.io"), Some(&"kopf.dev")));
    let resources =
        cluster.client.list_core_api_resources("v1").await.expect("resources").resources;
    let names: Vec<&str> = resources.iter().map(|it| it.name.as_str()).collect();
    for name in ["configmaps", "events", "namespaces/status", "pods/log", "services/status"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crd_serves_its_resource_until_it_is_deleted() {
    let cluster = Cluster::plain();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "subresources": { "status": {} } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.x.dev" },
        "spec": {
            "group": "x.dev",
            "scope": "Cluster",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [version("v1", false), version("v2", true)],
        },
    });
    assert_eq!(cluster.get("/apis/x.dev/v1/things").await, (404, json!("404 page not found\n")));
    let (status, created) = cluster.post(crds, crd).await;
    assert_eq!((status, &created["status"]["conditions"][1]["type"]), (201, &json!("Established")));
    let body = json!({ "apiVersion": "x.dev/v1", "kind": "Thing", "metadata": { "name": "t" } });
    assert_eq!(cluster.post("/apis/x.dev/v1/things", body).await.0, 201);
    let (_, seen) = cluster.get("/apis/x.dev/v2/things/t").await;
    assert_eq!(seen["apiVersion"], "x.dev/v2");
    let (_, seen) = cluster.get("/apis/x.dev/v1/things/t").await;
    assert_eq!(seen["apiVersion"], "x.dev/v1");

    let request = Request::get("/apis/x.dev/v1/things?watch=true").body(Body::empty());
    let watch = cluster.client.send(request.expect("a valid request")).await.expect("an answer");
    assert_eq!(cluster.delete(&format!("{crds}/things.x.dev")).await.0, 200);
    let mut watch = WatchLines { body: watch.into_body(), start: cluster.start };
    assert_eq!(watch.next().await, "0 ADDED t 2");
    assert_eq!(watch.next().await, "0 DELETED t 3");
    assert_eq!(watch.next().await, "0 END");
    assert_eq!(cluster.get("/apis/x.dev/v1/things").await.0, 404);
    assert_eq!(cluster.get("/apis/x.dev").await.0, 404);
}
