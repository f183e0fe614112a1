//! What is sent, and what comes back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use expect_test::{Expect, expect};
use futures::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use kopf::{
    cluster::KubeCluster,
    logic::resource::Resource,
    ports::{Cluster as _, ErrorClass, NewObject, PatchKind, PatchRequest},
    settings::Settings,
};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;

use super::{Chunk, Reply, kopfexamples, scripted};

/// A cluster with these answers, and the requests it gets.
fn cluster(mut replies: Vec<Reply>) -> (KubeCluster, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let client = scripted(move |request| {
        seen.lock().push(told(request));
        replies.remove(0)
    });
    (KubeCluster::over(client, Arc::new(Settings::default())), requests)
}

fn told(request: &Request<Body>) -> String {
    let header =
        |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok()).unwrap_or("-");
    let (content, agent) = (header("content-type"), header("user-agent"));
    format!("{} {} {content} {agent}", request.method(), request.uri())
}

fn check(requests: &Mutex<Vec<String>>, expected: &Expect) {
    let version = concat!("kopf/", env!("CARGO_PKG_VERSION"));
    let text = requests.lock().join("\n").replace(version, "kopf/VERSION");
    expected.assert_eq(&text);
}

fn patch<'a>(
    resource: &'a Resource,
    kind: PatchKind,
    subresource: Option<&'a str>,
) -> PatchRequest<'a> {
    PatchRequest {
        resource,
        namespace: Some("ns 1"),
        name: "one/two",
        subresource,
        kind,
        payload: Bytes::from_static(b"{}"),
    }
}

#[tokio::test(start_paused = true)]
async fn patches_and_creations_are_sent_as_kubernetes_wants_them() {
    let answer = || Reply::ok(json!({"metadata": {"resourceVersion": "8", "name": "x"}}));
    let (cluster, requests) = cluster(vec![answer(), answer(), answer()]);
    let resource = kopfexamples();
    let object = cluster.patch(patch(&resource, PatchKind::Merge, None)).await.expect("an object");
    assert_eq!(object.header().resource_version.as_deref(), Some("8"));
    cluster.patch(patch(&resource, PatchKind::Json, Some("status"))).await.expect("an object");
    let new = NewObject {
        resource: &resource,
        namespace: None,
        payload: Bytes::from_static(b"{}"),
        backoffs: None,
    };
    cluster.create(new).await.expect("an object");
    check(
        &requests,
        &expect![[r"
        PATCH /apis/kopf.dev/v1/namespaces/ns%201/kopfexamples/one%2Ftwo application/merge-patch+json kopf/VERSION
        PATCH /apis/kopf.dev/v1/namespaces/ns%201/kopfexamples/one%2Ftwo/status application/json-patch+json kopf/VERSION
        POST /apis/kopf.dev/v1/kopfexamples application/json kopf/VERSION"]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_page_by_page() {
    let page = |token: &str, name: &str| {
        let items = json!([{"metadata": {"name": name}}]);
        Reply::ok(json!({"kind": "KopfExampleList", "apiVersion": "kopf.dev/v1",
            "metadata": {"continue": token}, "items": items}))
    };
    let (cluster, requests) = cluster(vec![page("t", "a"), page("", "b")]);
    let mut settings = Settings::default();
    settings.watching.chunk_size = Some(1);
    cluster.configure(Arc::new(settings));
    let objects = cluster.list(&kopfexamples(), Some("ns1")).await.expect("objects");
    let kinds: Vec<_> = objects.iter().map(|it| it.header().kind.as_str()).collect();
    assert_eq!(kinds, ["KopfExample", "KopfExample"]);
    check(
        &requests,
        &expect![[r"
        GET /apis/kopf.dev/v1/namespaces/ns1/kopfexamples?limit=1 - kopf/VERSION
        GET /apis/kopf.dev/v1/namespaces/ns1/kopfexamples?limit=1&continue=t - kopf/VERSION"]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_survives_the_repetition_of_its_request() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let client = scripted(move |request| {
        let body = request.body().try_clone().expect("a whole body");
        let body = body.collect().now_or_never().expect("at hand").expect("bytes").to_bytes();
        let mut seen = seen.lock();
        seen.push(body);
        if seen.len() < 3 { Reply::status(503) } else { Reply::ok(json!({})) }
    });
    let cluster = KubeCluster::over(client, Arc::new(Settings::default()));
    cluster.patch(patch(&kopfexamples(), PatchKind::Merge, None)).await.expect("an object");
    assert_eq!(*bodies.lock(), ["{}", "{}", "{}"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_what_the_caller_can_do() {
    let classes = [
        (401, ErrorClass::Denied),
        (403, ErrorClass::Denied),
        (404, ErrorClass::Missing),
        (409, ErrorClass::Conflict),
        (410, ErrorClass::Expired),
        (422, ErrorClass::Invalid),
        (400, ErrorClass::Fatal),
    ];
    for (status, class) in classes {
        let (cluster, _requests) = cluster(vec![Reply::status(status)]);
        let resource = kopfexamples();
        let error =
            cluster.patch(patch(&resource, PatchKind::Merge, None)).await.expect_err("refused");
        assert_eq!((error.status, error.class), (Some(status), class));
    }
}

/// As Kubernetes 1.20 answers, and the embedded server: see `apiserver/patch/tests.rs`.
#[tokio::test(start_paused = true)]
async fn an_outdated_patch_is_told_from_one_that_is_never_accepted() {
    let answers = [
        ("the server rejected our request due to an error in our request", ErrorClass::Outdated),
        ("KopfExample.kopf.dev \"x\" is invalid: spec.a: Required value", ErrorClass::Invalid),
        ("admission webhook \"w.example.com\" denied the request: no", ErrorClass::Invalid),
    ];
    for (message, class) in answers {
        let status = json!({
            "kind": "Status", "code": 422, "reason": "Invalid", "message": message, "details": {},
        });
        let (cluster, _requests) = cluster(vec![Reply::Whole(422, Vec::new(), status)]);
        let resource = kopfexamples();
        let error =
            cluster.patch(patch(&resource, PatchKind::Json, None)).await.expect_err("refused");
        assert_eq!((error.class, error.message.contains(message)), (class, true), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_object_is_an_error() {
    let (cluster, _requests) =
        cluster(vec![Reply::Pieces(vec![(Duration::ZERO, Chunk::Data("<html>".into()))])]);
    let resource = kopfexamples();
    let error =
        cluster.patch(patch(&resource, PatchKind::Merge, None)).await.expect_err("no object");
    assert_eq!(error.class, ErrorClass::Fatal);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_in_time_is_asked_again_and_then_given_up() {
    let silent = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::io::Error>>()
    });
    let mut settings = Settings::default();
    settings.networking.request_timeout = Duration::from_secs(7);
    settings.networking.error_backoffs = vec![Duration::from_secs(2)];
    let cluster = KubeCluster::over(kube::Client::new(silent, "default"), Arc::new(settings));
    let begin = tokio::time::Instant::now();
    let resource = kopfexamples();
    let error =
        cluster.patch(patch(&resource, PatchKind::Merge, None)).await.expect_err("no answer");
    assert_eq!(begin.elapsed(), Duration::from_secs(7 + 2 + 7));
    assert!(error.hint.expect("a hint").contains("settings.networking.request_timeout"));
}
