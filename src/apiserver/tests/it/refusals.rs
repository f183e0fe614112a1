//! Messages of refusals, as recorded from a real server.

use super::*;

/// Removes the fields that all responses share.
fn brief((code, mut status): (u16, Value)) -> (u16, Value) {
    let fields = status.as_object_mut().expect("a status");
    let envelope = ["kind", "apiVersion", "status"].map(|it| fields.shift_remove(it));
    assert_eq!(envelope.map(Option::unwrap_or_default), ["Status", "v1", "Failure"]);
    assert_eq!(fields.shift_remove("metadata"), Some(json!({})));
    assert_eq!(fields.shift_remove("code"), Some(json!(code)));
    (code, status)
}

fn about(reason: &str, message: &str, name: &str) -> Value {
    let details = json!({ "name": name, "group": "kopf.dev", "kind": "kopfexamples" });
    json!({ "message": message, "reason": reason, "details": details })
}

fn bad(message: &str) -> (u16, Value) {
    (400, json!({ "message": message, "reason": "BadRequest" }))
}

/// Returns the refusal of one invalid field of n1.
fn invalid(kind: &str, field: &str, reason: &str, problem: &str) -> (u16, Value) {
    let mut refusal =
        about("Invalid", &format!("{kind}.kopf.dev \"n1\" is invalid: {field}: {problem}"), "n1");
    refusal["details"]["kind"] = json!(kind);
    refusal["details"]["causes"] =
        json!([{ "reason": reason, "message": problem, "field": field }]);
    (422, refusal)
}

#[tokio::test(start_paused = true)]
async fn missing_objects_and_used_names_are_reported() {
    let cluster = Cluster::stamping();
    let absent = (404, about("NotFound", "kopfexamples.kopf.dev \"n1\" not found", "n1"));
    assert_eq!(brief(cluster.get(N1).await), absent);
    assert_eq!(brief(cluster.patch(N1, MERGE, json!({})).await), absent);
    assert_eq!(brief(cluster.delete(N1).await), absent);
    cluster.post(OBJECTS, object("n1")).await;
    let taken = about("AlreadyExists", "kopfexamples.kopf.dev \"n1\" already exists", "n1");
    assert_eq!(brief(cluster.post(OBJECTS, object("n1")).await), (409, taken));
}

#[tokio::test(start_paused = true)]
async fn stale_versions_conflict() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object("n1")).await;
    let message = "Operation cannot be fulfilled on kopfexamples.kopf.dev \"n1\": the object has been modified; \
                   please apply your changes to the latest version and try again";
    let conflict = (409, about("Conflict", message, "n1"));
    let stale = json!({ "metadata": { "resourceVersion": "0" } });
    assert_eq!(brief(cluster.patch(N1, MERGE, stale).await), conflict);
    let stale = object_with("n1", "resourceVersion", json!("0"));
    assert_eq!(brief(cluster.put(N1, stale).await), conflict);
    let problem = "Invalid value: 0: must be specified for an update";
    let expected =
        invalid("kopfexamples", "metadata.resourceVersion", "FieldValueInvalid", problem);
    assert_eq!(brief(cluster.put(N1, object("n1")).await), expected);
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_are_reported() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object_with("n1", "finalizers", json!(["a.dev/b"]))).await;
    let patch = async |patch: Value| brief(cluster.patch(N1, MERGE, patch).await);

    let problem = "Invalid value: \"x\": field is immutable";
    let mut expected = invalid("KopfExample", "metadata.uid", "FieldValueInvalid", problem);
    // The real server checks it twice.
    let causes = expected.1["details"]["causes"].as_array_mut().expect("causes");
    causes.push(causes[0].clone());
    assert_eq!(patch(json!({ "metadata": { "uid": "x" } })).await, expected);

    let problem = "Invalid value: \"x\": must be KopfExample";
    assert_eq!(
        patch(json!({ "kind": "x" })).await,
        invalid("x", "kind", "FieldValueInvalid", problem)
    );

    cluster.delete(N1).await;
    let problem = "Forbidden: no new finalizers can be added if the object is being deleted, \
                   found new finalizers []string{\"c.dev/d\"}";
    let mut expected =
        invalid("KopfExample", "metadata.finalizers", "FieldValueForbidden", problem);
    let causes = expected.1["details"]["causes"].as_array_mut().expect("causes");
    causes.push(causes[0].clone());
    let more = json!({ "metadata": { "finalizers": ["a.dev/b", "c.dev/d"] } });
    assert_eq!(patch(more).await, expected);
}

#[tokio::test(start_paused = true)]
async fn names_must_be_given_and_agree_with_the_url() {
    let cluster = Cluster::stamping();
    let (code, nameless) = brief(cluster.post(OBJECTS, object("")).await);
    let message = "KopfExample.kopf.dev \"\" is invalid: metadata.name: Required value: name or generateName is required";
    assert_eq!((code, &nameless["message"]), (422, &json!(message)));
    assert_eq!(nameless["details"].get("name"), None);

    cluster.post(OBJECTS, object("n1")).await;
    let expected = bad("the name of the object (n2) does not match the name on the URL (n1)");
    let stranger = object_with("n2", "resourceVersion", json!("1"));
    assert_eq!(brief(cluster.put(N1, stranger).await), expected);
    let expected = bad(
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    let stranger = object_with("n2", "namespace", json!("other"));
    assert_eq!(brief(cluster.post(OBJECTS, stranger).await), expected);
}

#[tokio::test(start_paused = true)]
async fn patches_that_cannot_be_applied_are_refused() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object("n1")).await;
    let message = "the server rejected our request due to an error in our request";
    let unprocessable = (422, json!({ "message": message, "reason": "Invalid", "details": {} }));
    for operation in [
        json!({ "op": "test", "path": "/metadata/resourceVersion", "value": "0" }),
        json!({ "op": "remove", "path": "/nope" }),
    ] {
        assert_eq!(brief(cluster.patch(N1, JSON, json!([operation])).await), unprocessable);
    }
    for kind in ["application/strategic-merge-patch+json", "application/json", ""] {
        let (code, refused) = brief(cluster.patch(N1, kind, json!({})).await);
        assert_eq!((code, &refused["reason"]), (415, &json!("UnsupportedMediaType")));
        let message = refused["message"].as_str().expect("a message");
        assert!(message.starts_with(
            "the body of the request was in an unknown format - accepted media types include: "
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_resources_are_not_found() {
    let cluster = Cluster::stamping();
    let text = (404, json!("404 page not found\n"));
    for path in [
        "/apis/nope",
        "/apis/nope/v1",
        "/apis/kopf.dev/v1/nopes",
        "/apis/kopf.dev/v2/kopfexamples",
        "/apis/kopf.dev/v1/kopfexamples/n1",
    ] {
        assert_eq!(cluster.get(path).await, text, "{path}");
    }
    assert_eq!(cluster.post("/apis/kopf.dev/v1/kopfexamples", object("n1")).await, text);
    assert_eq!(cluster.get("/nope").await, text);
    let message = "the server could not find the requested resource";
    let expected = (404, json!({ "message": message, "reason": "NotFound", "details": {} }));
    assert_eq!(brief(cluster.get("/apis/apps/v9").await), expected);
    assert_eq!(brief(cluster.get("/api/v1/nopes").await), expected);
    assert_eq!(brief(cluster.get("/api/v1/configmaps/x").await), expected);
}

#[tokio::test(start_paused = true)]
async fn verbs_that_are_not_advertised_are_not_allowed() {
    let def = ResourceDef { verbs: vec!["list".into()], ..kex() };
    let cluster = Cluster::new(ApiServer::builder(), def);
    assert_eq!(cluster.get(OBJECTS).await.0, 200);
    let message = "the server does not allow this method on the requested resource";
    let expected =
        (405, json!({ "message": message, "reason": "MethodNotAllowed", "details": {} }));
    assert_eq!(brief(cluster.post(OBJECTS, object("n1")).await), expected);
    assert_eq!(brief(cluster.delete(OBJECTS).await), expected);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_cannot_be_selected() {
    let cluster = Cluster::stamping();
    for (query, message) in [
        ("fieldSelector=spec.x%3D1", "field label not supported: spec.x"),
        ("fieldSelector=spec", "invalid selector: 'spec'; can't understand 'spec'"),
    ] {
        assert_eq!(brief(cluster.get(&format!("{OBJECTS}?{query}")).await), bad(message));
    }
}
