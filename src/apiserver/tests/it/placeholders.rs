//! Placeholder CRDs, which are replaced by those that clients create.

use kopf_apiserver::{ApiServer, PLACEHOLDER};
use serde_json::{Value, json};

use crate::{client, send};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(plural: &str, group: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

/// Returns a server with a placeholder; `mark` is the value of its annotation.
async fn with_placeholder(mark: &str) -> kube::Client {
    let client = client(&ApiServer::builder().cluster(true).build());
    let mut placeholder = definition("things", "kopf.dev", "Thing");
    placeholder["metadata"]["annotations"] = json!({ PLACEHOLDER: mark });
    let (status, body) = write(&client, "POST", CRDS, &placeholder).await;
    assert_eq!(status, 201, "{body}");
    client
}

async fn write(client: &kube::Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    send(client, method, path, (kind, body.to_string())).await
}

async fn names(client: &kube::Client) -> Vec<String> {
    let (_, list) = send(client, "GET", CRDS, ("", String::new())).await;
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_crd_with_other_names_replaces_a_placeholder_by_every_method() {
    for (method, path) in [
        ("POST", CRDS.to_owned()),
        ("PUT", format!("{CRDS}/things.kopf.dev")),
        ("PATCH", format!("{CRDS}/things.kopf.dev?fieldManager=operator")),
    ] {
        let client = with_placeholder("group").await;
        let real = definition("things", "kopf.dev", "ThingOfTheOperator");
        let (status, body) = write(&client, method, &path, &real).await;
        assert_eq!(status, 201, "{method}: {body}");
        assert_eq!(body["spec"]["names"]["kind"], "ThingOfTheOperator");
        assert_eq!(body["metadata"].get("annotations"), None);
        let accepted = &body["status"]["acceptedNames"]["kind"];
        assert_eq!(accepted, "ThingOfTheOperator", "{method}");
        assert_eq!(names(&client).await, ["things.kopf.dev"]);
        // The CRD is no longer a placeholder.
        let (status, _) =
            write(&client, "POST", CRDS, &definition("things", "kopf.dev", "Other")).await;
        assert_eq!(status, 409, "{method}");
    }
}

#[tokio::test]
async fn a_crd_of_the_same_kind_with_another_plural_replaces_a_placeholder() {
    let client = with_placeholder("group").await;
    let (status, body) =
        write(&client, "POST", CRDS, &definition("thingz", "kopf.dev", "Thing")).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(body["status"]["acceptedNames"]["kind"], "Thing");
    assert_eq!(names(&client).await, ["thingz.kopf.dev"]);
}

#[tokio::test]
async fn only_a_placeholder_with_a_guessed_group_is_replaced_by_another_group() {
    for (mark, expected) in [
        ("names", vec!["things.example.com"]),
        ("group", vec!["things.example.com", "things.kopf.dev"]),
    ] {
        let client = with_placeholder(mark).await;
        let (status, body) =
            write(&client, "POST", CRDS, &definition("things", "example.com", "Thing")).await;
        assert_eq!(status, 201, "{body}");
        assert_eq!(names(&client).await, expected, "{mark}");
    }
}

#[tokio::test]
async fn placeholders_stay_for_their_objects_dry_runs_and_invalid_crds() {
    let client = with_placeholder("group").await;
    let real = definition("things", "kopf.dev", "Real");
    let (status, _) = write(&client, "POST", &format!("{CRDS}?dryRun=All"), &real).await;
    assert_eq!(status, 201);
    let mut invalid = real.clone();
    invalid["spec"]["scope"] = "Nowhere".into();
    let (status, _) = write(&client, "POST", CRDS, &invalid).await;
    assert_eq!(status, 422);
    let object =
        json!({ "apiVersion": "kopf.dev/v1", "kind": "Thing", "metadata": { "name": "one" } });
    let path = "/apis/kopf.dev/v1/namespaces/default/things";
    let (status, body) = write(&client, "POST", path, &object).await;
    assert_eq!(status, 201, "{body}");
    let (status, _) = write(&client, "POST", CRDS, &real).await;
    assert_eq!(status, 409, "its objects would be lost");
    let (status, _) = send(&client, "GET", &format!("{path}/one"), ("", String::new())).await;
    assert_eq!(status, 200);
}
