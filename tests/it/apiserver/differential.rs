//! The embedded server against a real one: the same requests must give the same answers.
//!
//! One difference is left out: where a request changes nothing but `managedFields`, which the embedded server does not keep,
//! the real one makes a new version.
//!
//! Runs with `E2E=1` against the cluster of `KUBECONFIG`, where it makes a namespace and a definition of its own.

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/differential.dev/v1/namespaces/differential/things";

/// Method, path below the things, content type, body.
type Ask = (&'static str, &'static str, &'static str, Value);

fn merge(path: &'static str, body: Value) -> Ask {
    ("PATCH", path, MERGE, body)
}

fn json_patch(path: &'static str, body: Value) -> Ask {
    ("PATCH", path, JSON, body)
}

fn post(body: Value) -> Ask {
    ("POST", "", "application/json", body)
}

fn put(body: Value) -> Ask {
    ("PUT", "/n1", "application/json", body)
}

fn get(path: &'static str) -> Ask {
    ("GET", path, "application/json", Value::Null)
}

fn delete(path: &'static str) -> Ask {
    ("DELETE", path, "application/json", json!({}))
}

fn thing(metadata: &Value) -> Value {
    json!({
        "apiVersion": "differential.dev/v1",
        "kind": "Thing",
        "metadata": metadata,
        "spec": { "a": 1 },
        "status": { "ignored": true },
    })
}

/// The life of an object.
fn writes() -> Vec<Ask> {
    vec![
        get("/n1"),
        post(thing(&json!({ "name": "n1", "labels": {}, "uid": "mine" }))),
        post(thing(&json!({ "name": "n1" }))),
        post(thing(&json!({}))),
        post(thing(&json!({ "name": "n2", "namespace": "other" }))),
        get("/n1"),
        get("/n1/status"),
        merge("/n1", json!({ "spec": { "a": 1, "b": null } })),
        merge(
            "/n1",
            json!({ "spec": { "a": null, "b": { "c": 1, "d": null } }, "status": { "x": 1 } }),
        ),
        merge("/n1/status", json!({ "spec": { "a": 2 }, "status": { "x": 1 } })),
        merge(
            "/n1/status",
            json!({ "metadata": { "labels": { "l": "1" } }, "status": { "x": 2 } }),
        ),
        merge(
            "/n1",
            json!({ "metadata": { "labels": { "l": "1" }, "annotations": { "a": "b" } } }),
        ),
        merge("/n1", json!({ "metadata": { "labels": { "l": null }, "annotations": {} } })),
        merge(
            "/n1",
            json!({ "metadata": { "uid": null, "creationTimestamp": null, "generation": 9 } }),
        ),
        merge("/n1", json!({ "metadata": { "resourceVersion": "1" } })),
        merge("/n1", json!({ "metadata": { "name": "x" } })),
        merge("/n1", json!({ "kind": "x" })),
        merge("/n9", json!({})),
        json_patch(
            "/n1",
            json!([{ "op": "test", "path": "/metadata/resourceVersion", "value": "0" }]),
        ),
        json_patch("/n1", json!([{ "op": "remove", "path": "/nope" }])),
        json_patch("/n1", json!([{ "op": "add", "path": "/spec/list", "value": [1, 2] }])),
        json_patch("/n1", json!([{ "op": "remove", "path": "/spec/list/0" }])),
        put(thing(&json!({ "name": "n1" }))),
        put(thing(&json!({ "name": "n1", "resourceVersion": "1" }))),
        put(thing(&json!({ "name": "n2" , "resourceVersion": "1" }))),
    ]
}

/// Its end, and another one.
fn deletions() -> Vec<Ask> {
    let finalizers = |names: Value| json!({ "metadata": { "finalizers": names } });
    vec![
        merge("/n1", finalizers(json!(["a.dev/b", "c.dev/d"]))),
        delete("/n1"),
        delete("/n1"),
        merge("/n1", json!({ "spec": { "late": true } })),
        json_patch("/n1", json!([{ "op": "remove", "path": "/metadata/finalizers/0" }])),
        merge("/n1", finalizers(json!([]))),
        get("/n1"),
        delete("/n1"),
        post(thing(&json!({ "name": "n3" }))),
        get("?fieldSelector=metadata.name%3Dn3"),
        get("?fieldSelector=spec.x%3D1"),
        delete("/n3"),
        get("/n3/nope"),
    ]
}

/// Numbers for values that differ between servers, in the order in which they appear.
#[derive(Default)]
struct Normal {
    versions: Vec<String>,
}

impl Normal {
    /// Same text, same number; other differences of the servers are left out.
    fn of(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|field, value| {
                    field != "managedFields" && !(field == "continue" && value == "")
                });
                for (field, value) in fields.iter_mut() {
                    match (field.as_str(), &*value) {
                        ("uid" | "creationTimestamp" | "deletionTimestamp", _) => {
                            *value = json!("*");
                        }
                        ("resourceVersion", Value::String(version)) => {
                            *value = self.ordinal(version.clone()).into();
                        }
                        _ => self.of(value),
                    }
                }
            }
            Value::Array(items) => {
                // Some problems are reported twice by the real server.
                items.dedup();
                for item in items {
                    self.of(item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn ordinal(&mut self, version: String) -> usize {
        self.versions.iter().position(|it| *it == version).unwrap_or_else(|| {
            self.versions.push(version);
            self.versions.len() - 1
        })
    }
}

/// Everything the server says to the requests, and then in a watch of it.
async fn transcript(client: &kube::Client) -> Vec<(u16, Value)> {
    let (_, list) = send(client, "GET", THINGS, ("", String::new())).await;
    let mut normal = Normal::default();
    let mut answers = Vec::new();
    for (method, path, kind, body) in writes().into_iter().chain(deletions()) {
        let (status, mut answer) =
            send(client, method, &format!("{THINGS}{path}"), (kind, body.to_string())).await;
        // Lists show the version of the whole server, where others write too.
        if let Some(Value::Array(_)) = answer.get("items") {
            answer["metadata"] = Value::Null;
        }
        normal.of(&mut answer);
        answers.push((status, answer));
    }
    let watch = format!("{THINGS}?watch=true&timeoutSeconds=1&resourceVersion={}", version(&list));
    let (status, lines) = send(client, "GET", &watch, ("", String::new())).await;
    for line in lines.as_str().expect("lines").lines() {
        let mut event = serde_json::from_str(line).expect("a line is JSON");
        normal.of(&mut event);
        answers.push((status, event));
    }
    answers
}

async fn prepare(client: &kube::Client) {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": "differential" },
    });
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.differential.dev" },
        "spec": {
            "group": "differential.dev",
            "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    let post = async |path, body: Value| {
        send(client, "POST", path, ("application/json", body.to_string())).await.0
    };
    assert!(matches!(post("/api/v1/namespaces", namespace).await, 201 | 409));
    assert!(matches!(post(CRDS, crd).await, 201 | 409));
    // A real server needs a moment to serve a new definition.
    while send(client, "GET", THINGS, ("", String::new())).await.0 == 404 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
async fn a_real_server_answers_alike() {
    if std::env::var("E2E").is_err() {
        return;
    }
    let real = kube::Client::try_default().await.expect("a client");
    let embedded = testing::client(&ApiServer::builder().build());
    prepare(&real).await;
    prepare(&embedded).await;
    let (real, embedded) = (transcript(&real).await, transcript(&embedded).await);
    let questions = writes().into_iter().chain(deletions()).map(|it| format!("{it:?}"));
    let questions = questions.chain(std::iter::repeat("watch".to_owned()));
    let mut differences = Vec::new();
    for ((real, embedded), question) in real.iter().zip(&embedded).zip(questions) {
        if real != embedded {
            differences.push(format!("{question}\nreal:     {real:?}\nembedded: {embedded:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert_eq!(real.len(), embedded.len());
}
