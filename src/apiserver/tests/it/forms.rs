//! Other forms of responses than the stored JSON: tables, YAML, indented, compressed, or not modified.

use std::io::Read as _;

use flate2::read::GzDecoder;
use http::{HeaderMap, Response};

use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const YAML: &str = "application/yaml";

async fn open(cluster: &Cluster, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a valid request");
    cluster.client.send(request).await.expect("the server answers")
}

/// Returns the status, the headers and the body of a response.
async fn ask(cluster: &Cluster, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let (parts, body) = open(cluster, path, headers).await.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    (parts.status.as_u16(), parts.headers, body.to_vec())
}

/// Sends an `Accept` header. Returns the content type and the body.
async fn accept(cluster: &Cluster, path: &str, form: &str) -> (String, String) {
    let (_, headers, body) = ask(cluster, path, &[("accept", form)]).await;
    (text(&headers, "content-type"), String::from_utf8(body).expect("UTF-8"))
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().into()
}

fn tree(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

#[tokio::test(start_paused = true)]
async fn objects_and_lists_are_tables_on_request() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object("n1")).await;
    for path in [OBJECTS, N1] {
        let (kind, table) = accept(&cluster, path, TABLE).await;
        let table: Value = serde_json::from_str(&table).expect("JSON");
        assert_eq!((kind.as_str(), &table["kind"]), ("application/json", &json!("Table")));
        assert_eq!(table["metadata"], json!({ "resourceVersion": "1" }));
        let names: Vec<&Value> = table["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(names, ["Name", "Age"]);
        assert_eq!(table["rows"][0]["cells"], json!(["n1", "0s"]));
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    }
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "a": "b" } });
    cluster.post("/api/v1/namespaces/ns1/configmaps", body).await;
    let (_, table) = accept(&cluster, "/api/v1/configmaps", TABLE).await;
    let table: Value = serde_json::from_str(&table).expect("JSON");
    assert_eq!(table["rows"][0]["cells"], json!(["c", 1, "0s"]));
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_tables() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object("n1")).await;
    let path = format!("{OBJECTS}?watch=true&resourceVersion=0");
    let response = open(&cluster, &path, &[("accept", TABLE)]).await;
    let mut watch = WatchLines { body: response.into_body(), start: cluster.start };
    let first = watch.event().await.expect("an event");
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"][0]["cells"], json!(["n1", "0s"]));
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    let second = watch.event().await.expect("an event");
    assert_eq!(second["type"], "MODIFIED");
    assert_eq!(second["object"]["columnDefinitions"], Value::Null);
    assert_eq!(second["object"]["rows"][0]["object"]["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn objects_lists_and_refusals_are_yaml_on_request() {
    let cluster = Cluster::stamping();
    let words = json!([
        "yes",
        "no",
        "012",
        "1e3",
        "~",
        "",
        " a ",
        "a: b",
        "# c",
        "- d",
        "two\nlines\n",
        "'\"",
        "null",
        "2001-01-01",
        "é\u{7}",
        "x".repeat(200) + " y",
        "a\n\n b",
        "\t",
        "%",
        "@",
        "0x1f",
        "1_000",
    ]);
    let mut body = object("n1");
    body["spec"] = json!({ "words": words, "n": 1.5, "none": [], "empty": {}, "on": true });
    cluster.post(OBJECTS, body).await;
    for path in [
        OBJECTS,
        N1,
        "/apis/kopf.dev/v1",
        "/api",
        "/apis/kopf.dev/v1/namespaces/ns1/kopfexamples/n2",
    ] {
        let (kind, shown) = accept(&cluster, path, YAML).await;
        assert_eq!(kind, YAML, "{path}");
        let (_, plain) = cluster.get(path).await;
        assert_eq!(tree(&shown), plain, "{path}");
    }
    let (_, refusal) =
        accept(&cluster, "/apis/kopf.dev/v1/namespaces/x/kopfexamples/n2", YAML).await;
    let expected = "\
        apiVersion: v1\n\
        code: 404\n\
        details:\n  \
          group: kopf.dev\n  \
          kind: kopfexamples\n  \
          name: n2\n\
        kind: Status\n\
        message: kopfexamples.kopf.dev \"n2\" not found\n\
        metadata: {}\n\
        reason: NotFound\n\
        status: Failure\n";
    assert_eq!(refusal, expected);
    // Streams of YAML are never served, but the refusal may be YAML.
    let (kind, refusal) = accept(&cluster, &format!("{OBJECTS}?watch=true"), YAML).await;
    assert_eq!((kind.as_str(), &tree(&refusal)["code"]), (YAML, &json!(406)));
}

#[tokio::test(start_paused = true)]
async fn people_get_indented_json() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let (_, plain) = cluster.get(N1).await;
    let pretty = serde_json::to_string_pretty(&plain).expect("JSON");
    let shown = async |path: &str, headers: &[(&str, &str)]| {
        let (_, _, body) = ask(&cluster, path, headers).await;
        String::from_utf8(body).expect("UTF-8")
    };
    assert_eq!(shown(&format!("{N1}?pretty=true"), &[]).await, pretty);
    assert_eq!(shown(N1, &[("user-agent", "curl/8.5")]).await, pretty);
    assert_eq!(shown(N1, &[("accept", "application/json;pretty=1")]).await, pretty);
    let once = shown(&format!("{N1}?pretty=false"), &[("user-agent", "curl/8.5")]).await;
    assert_eq!(once.lines().count(), 1);
    let refusal = shown(&format!("{OBJECTS}/n2?pretty=1"), &[]).await;
    assert!(refusal.starts_with("{\n  \"kind\": \"Status\",\n"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn large_documents_are_compressed_and_cached_by_clients() {
    let cluster = Cluster::plain();
    for path in ["/openapi/v2", "/openapi/v3"] {
        let (status, headers, packed) = ask(&cluster, path, &[("accept-encoding", "gzip")]).await;
        assert_eq!((status, text(&headers, "content-encoding").as_str()), (200, "gzip"), "{path}");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).expect("gzip");
        let (_, headers, plain) = ask(&cluster, path, &[]).await;
        assert_eq!(text(&headers, "content-encoding"), "", "{path}");
        assert!(unpacked == plain, "{path}");

        let tag = text(&headers, "etag");
        let known = [("if-none-match", tag.as_str())];
        let (status, headers, body) = ask(&cluster, path, &known).await;
        assert_eq!(
            (status, text(&headers, "etag"), body),
            (304, tag.clone(), Vec::new()),
            "{path}"
        );
        let (status, ..) = ask(&cluster, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(status, 200, "{path}");
    }
}
