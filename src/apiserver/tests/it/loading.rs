//! Objects of another server, which are loaded when a request first needs them.

use std::sync::Arc;

use kopf_apiserver::{Loader, ObjectQuery, Refusal};
use parking_lot::Mutex;

use super::*;

/// Another server with these objects, and the requests for its objects: `NAMESPACE/NAME`, `*` for all.
#[derive(Clone, Default)]
struct Other {
    objects: Arc<Mutex<Vec<Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Other {
    fn with(objects: Vec<Value>) -> Self {
        Other { objects: Arc::new(Mutex::new(objects)), ..Other::default() }
    }

    fn cluster(&self) -> Cluster {
        let own = self.clone();
        let loader = Loader::new(move |query| {
            let own = own.clone();
            async move { own.load(&query) }
        });
        Cluster::new(ApiServer::builder().loader(loader), kex())
    }

    fn load(&self, query: &ObjectQuery) -> Result<Vec<Value>, Refusal> {
        let ObjectQuery { resource, namespace, name } = query;
        assert_eq!(resource.qualified(), KEX);
        let part = |it: &Option<String>| it.clone().unwrap_or_else(|| "*".into());
        self.asked.lock().push(format!("{}/{}", part(namespace), part(name)));
        if namespace.as_deref() == Some("secret") {
            return Err(Refusal {
                code: 403,
                reason: "Forbidden".into(),
                message: "no".into(),
                details: None,
            });
        }
        let is_wanted = |it: &&Value| {
            let meta = &it["metadata"];
            namespace.as_ref().is_none_or(|wanted| meta["namespace"] == wanted.as_str())
                && name.as_ref().is_none_or(|wanted| meta["name"] == wanted.as_str())
        };
        Ok(self.objects.lock().iter().filter(is_wanted).cloned().collect())
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

/// Returns the names in a response to a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|it| it["metadata"]["name"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_loaded_once_as_it_is_there() {
    let other = Other::with(vec![object_with("n1", "uid", json!("theirs")), object("n2")]);
    let cluster = other.cluster();
    let (status, found) = cluster.get(N1).await;
    assert_eq!((status, &found["metadata"]["uid"]), (200, &json!("theirs")));
    assert_eq!(found["metadata"]["creationTimestamp"], Value::Null, "its times are kept");
    let patch = json!({ "spec": { "a": 2 } });
    assert_eq!(cluster.patch(N1, MERGE, patch).await.1["spec"]["a"], 2);
    assert_eq!(cluster.get(N1).await.1["spec"]["a"], 2);
    assert_eq!(other.asked(), ["ns1/n1"]);
}

#[tokio::test(start_paused = true)]
async fn what_has_changed_is_not_loaded_again_with_its_collection() {
    let other = Other::with(["n1", "n2", "n3"].map(object).to_vec());
    let cluster = other.cluster();
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    assert_eq!(cluster.delete(&format!("{OBJECTS}/n2")).await.0, 200);
    let (_, list) = cluster.get(OBJECTS).await;
    assert_eq!(names(&list), ["n1", "n3"]);
    assert_eq!(list["items"][0]["spec"]["a"], 2);
    cluster.delete(&format!("{OBJECTS}/n3")).await;
    let (_, list) = cluster.get("/apis/kopf.dev/v1/kopfexamples").await;
    assert_eq!(names(&list), ["n1"]);
    assert_eq!(cluster.get(&format!("{OBJECTS}/n3")).await.0, 404);
    assert_eq!(other.asked(), ["ns1/n1", "ns1/n2", "ns1/*", "*/*"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_other_server_is_not_created_again() {
    let cluster = Other::with(vec![object("n1")]).cluster();
    assert_eq!(cluster.post(OBJECTS, object("n1")).await.0, 409);
    assert_eq!(cluster.post(OBJECTS, object("n2")).await.0, 201);
    let mut generated = object("");
    generated["metadata"] = json!({ "generateName": "n-" });
    assert_eq!(cluster.post(OBJECTS, generated).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_other_server_is_the_response_and_it_is_asked_again() {
    let other = Other::default();
    let cluster = other.cluster();
    let path = "/apis/kopf.dev/v1/namespaces/secret/kopfexamples";
    for _ in 0..2 {
        let (status, told) = cluster.get(path).await;
        assert_eq!((status, &told["message"]), (403, &json!("no")));
    }
    assert_eq!(other.asked(), ["secret/*", "secret/*"]);
}

#[tokio::test(start_paused = true)]
async fn an_imported_definition_serves_its_resource() {
    let cluster = Cluster::stamping();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com", "uid": "theirs" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    cluster.server.import("customresourcedefinitions.apiextensions.k8s.io", crd).expect("served");
    assert_eq!(cluster.get("/apis/example.com/v1/things").await.0, 200);
    let unknown =
        cluster.server.import("others.example.com", object("n1")).expect_err("not served");
    assert_eq!(unknown.code, 404);
}
