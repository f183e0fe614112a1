//! Resources and namespaces that come and go while the operator runs.

use std::time::Duration;

use kopf::{reactor::Scope, testing};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time;

use super::watched::{EXAMPLES, Watched, object};

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": name } })
}

async fn a_while() {
    time::sleep(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_defined_later_is_served() {
    let server = ApiServer::builder().build();
    let operator = Watched::start(&server, Scope::Cluster, |_| {});
    a_while().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": EXAMPLES },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    server.create("customresourcedefinitions.apiextensions.k8s.io", definition).expect("it is new");
    a_while().await;
    server.create(EXAMPLES, object("ns1", "late")).expect("it is new");
    a_while().await;
    assert_eq!(operator.end().await, ["late"]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_while_they_are_there_and_match() {
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    server.create("namespaces", namespace("app-1")).expect("it is new");
    let operator = Watched::start(&server, Scope::Namespaces(vec!["app-*".into()]), |_| {});
    a_while().await;
    for name in ["app-2", "other"] {
        server.create("namespaces", namespace(name)).expect("it is new");
    }
    a_while().await;
    for (place, name) in [("app-1", "one"), ("app-2", "two"), ("other", "never")] {
        server.create(EXAMPLES, object(place, name)).expect("it is new");
    }
    a_while().await;
    server.delete("namespaces", "", "app-1").expect("it is there");
    a_while().await;
    server.create(EXAMPLES, object("app-1", "gone")).expect("it is new");
    a_while().await;
    let mut created = operator.end().await;
    created.sort();
    assert_eq!(created, ["one", "two"]);
}
