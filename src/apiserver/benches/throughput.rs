//! Memory and speed of the embedded API server, called in process on one thread.
//!
//! Run `cargo bench -p kopf-apiserver`. Creations pass the whole service: request, validation, managed fields, response. The memory
//! is that of this process minus the memory before the first object. Linux only: it reads `/proc`.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first surprise")]
#![expect(clippy::print_stdout, reason = "the table is the result")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::{fs, time::Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::Service as _;

/// The number of objects that the targets of performance are defined for.
const OBJECTS: u32 = 10_000;
const TEXT_BYTES: usize = 800;
const WATCHERS: usize = 10;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const EXAMPLES: &str = "/apis/kopf.dev/v1/namespaces/default/kopfexamples";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let begun = Instant::now();
    let mut server = ApiServer::builder().cluster(true).seed(1).build();
    let (status, _) = send(&mut server, "GET", "/readyz", None).await;
    row("start to ready", "ms", begun.elapsed().as_secs_f64() * 1e3);
    assert_eq!(status, 200);
    let (status, answer) = send(&mut server, "POST", CRDS, Some(definition())).await;
    assert_eq!(status, 201, "{answer}");

    let before = resident_kib();
    let begun = Instant::now();
    let mut bytes = 0;
    for number in 0..OBJECTS {
        let (status, answer) = send(&mut server, "POST", EXAMPLES, Some(object(number))).await;
        assert_eq!(status, 201, "{answer}");
        bytes = bytes.max(answer.len());
    }
    row("creations", "/s", f64::from(OBJECTS) / begun.elapsed().as_secs_f64());
    row("size of an object as answered", "B", f64::from(u32::try_from(bytes).expect("small")));
    row("memory of all objects", "MiB", (resident_kib() - before) / 1024.0);

    let begun = Instant::now();
    for number in 0..OBJECTS {
        let patch = json!({ "spec": { "round": number + 1 } });
        let path = format!("{EXAMPLES}/object-{number}");
        let (status, answer) = send(&mut server, "PATCH", &path, Some(patch)).await;
        assert_eq!(status, 200, "{answer}");
    }
    row("patches", "/s", f64::from(OBJECTS) / begun.elapsed().as_secs_f64());
    row("memory after them", "MiB", (resident_kib() - before) / 1024.0);

    let begun = Instant::now();
    let (_, list) = send(&mut server, "GET", EXAMPLES, None).await;
    row("one list of all", "ms", begun.elapsed().as_secs_f64() * 1e3);
    row("its size", "MiB", f64::from(u32::try_from(list.len()).expect("fits")) / 1_048_576.0);

    let begun = Instant::now();
    let path = format!("{EXAMPLES}?watch=true&resourceVersion=0");
    let mut events = 0_u32;
    for _ in 0..WATCHERS {
        let request = Request::get(&path).body(Full::<Bytes>::default()).expect("a request");
        let response = server.call(request).await.expect("an answer");
        let mut body = response.into_body();
        for _ in 0..OBJECTS {
            body.frame().await.expect("an event").expect("a frame");
            events += 1;
        }
    }
    row("watch events of what exists", "/s", f64::from(events) / begun.elapsed().as_secs_f64());

    let version: Value = serde_json::from_str(&list).expect("a list");
    let version = version.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.expect("a version");
    let path = format!("{EXAMPLES}?watch=true&resourceVersion={version}");
    let request = Request::get(path).body(Full::<Bytes>::default()).expect("a request");
    let response = server.call(request).await.expect("an answer");
    let mut body = response.into_body();
    let begun = Instant::now();
    for number in 0..OBJECTS {
        let patch = json!({ "spec": { "round": number + 2 } });
        let path = format!("{EXAMPLES}/object-{number}");
        send(&mut server, "PATCH", &path, Some(patch)).await;
        body.frame().await.expect("an event").expect("a frame");
    }
    row("patches seen by a watch", "/s", f64::from(OBJECTS) / begun.elapsed().as_secs_f64());
}

async fn send(
    server: &mut ApiServer,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, String) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = body.map(|it| it.to_string()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.header("user-agent", "bench/1").body(Full::<Bytes>::from(body));
    let response = server.call(request.expect("a request")).await;
    let response = response.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.into()).expect("text"))
}

fn object(number: u32) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": { "name": format!("object-{number}"), "labels": { "app": "bench" } },
        "spec": { "round": 0, "text": "x".repeat(TEXT_BYTES), "list": [1, 2, 3] },
    })
}

fn definition() -> Value {
    let spec = json!({
        "type": "object",
        "properties": {
            "round": { "type": "integer" },
            "text": { "type": "string" },
            "list": { "type": "array", "items": { "type": "integer" } },
        },
    });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kopfexamples.kopf.dev" },
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": { "plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn row(what: &str, unit: &str, value: f64) {
    println!("{what:<32} {value:>12.1} {unit}");
}

fn resident_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
