//! Whole requests to the server in process, separated by zero bytes: a method, a path with a query, a content type (with the
//! accepted type after a tab), and a body, one per line.
//!
//! The server has native kinds, two custom kinds with an open schema as in `src/apiserver/tests/exchanges/setup/`, and one with many
//! validation rules.
#![no_main]

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::{ApiServer, Post, WebhookTarget};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Maximum number of requests of one input.
const REQUESTS_MAX: usize = 16;
/// Maximum virtual time of a response: endless watches are closed then. Longer than the pause between bookmarks.
const PATIENCE: Duration = Duration::from_secs(90);
/// The first requests to the server: pairs of a path and a body to POST there.
const SETUP: &str = include_str!("setup.json");

fuzz_target!(|data: &[u8]| {
    // With a paused clock, waiting takes no real time.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let server = server(data).await;
        for request in data.split(|it| *it == 0).take(REQUESTS_MAX) {
            let mut lines = request.splitn(4, |it| *it == b'\n');
            let mut line = || lines.next().unwrap_or_default();
            let (method, uri, types, body) = (line(), line(), line(), line());
            let mut types = types.split(|it| *it == b'\t');
            let mut kind = || types.next().unwrap_or_default();
            send(&server, (method, uri), [kind(), kind()], body.to_vec()).await;
        }
    });
});

/// Sends a request and returns the status; zero if the request is invalid.
async fn send(
    server: &ApiServer,
    (method, uri): (&[u8], &[u8]),
    [kind, accept]: [&[u8]; 2],
    body: Vec<u8>,
) -> u16 {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header(header::CONTENT_TYPE, kind).header(header::ACCEPT, accept);
    let Ok(request) = request.body(Full::<bytes::Bytes>::new(body.into())) else { return 0 };
    let Ok(answer) = server.clone().oneshot(request).await;
    let status = answer.status().as_u16();
    let _late = tokio::time::timeout(PATIENCE, answer.into_body().collect()).await;
    status
}

/// Returns a new server with only the CRDs that occur in the input: CRDs take longer than requests.
async fn server(input: &[u8]) -> ApiServer {
    let server = ApiServer::builder().cluster(true).webhooks(Post::new(webhook)).build();
    let setup: Vec<(String, Value)> = serde_json::from_str(SETUP).expect("a list");
    for (path, body) in setup {
        let name = body.pointer("/spec/names/plural").and_then(Value::as_str).unwrap_or_default();
        if !input.windows(name.len().max(1)).any(|it| it == name.as_bytes()) && !name.is_empty() {
            continue;
        }
        let json = b"application/json";
        let body = body.to_string().into_bytes();
        let status = send(&server, (b"POST", path.as_bytes()), [json, b""], body).await;
        assert_eq!(status, 201, "{path}");
    }
    server
}

/// Responds as the URL of the webhook requests.
async fn webhook(target: WebhookTarget, review: bytes::Bytes) -> Result<bytes::Bytes, String> {
    let review: Value = serde_json::from_slice(&review).expect("a review");
    let url = target.url;
    let mut response = json!({ "uid": review["request"]["uid"], "allowed": !url.contains("deny") });
    if url.contains("patch") {
        let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = patch.into();
    }
    if url.contains("down") {
        return Err("connection refused".into());
    }
    if url.contains("garbage") {
        return Ok(url.into());
    }
    let answer = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
    Ok(answer.to_string().into())
}
