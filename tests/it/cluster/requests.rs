//! Requests and their responses.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use expect_test::{Expect, expect};
use futures::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use kopf::{
    cluster::KubeCluster,
    logic::object::resource::Resource,
    ports::{Address, Cluster as _, ErrorClass, NewObject, PatchKind, PatchRequest},
    settings::Settings,
};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;

use super::{Chunk, Reply, kopfexamples, scripted};

/// Returns a cluster with these responses, and the requests that it receives.
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
        interrupt: None,
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

/// The responses are those of Kubernetes 1.20 and of the embedded server: see `apiserver/patch/tests.rs`.
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
async fn an_object_of_another_name_is_not_the_requested_one() {
    let resource = kopfexamples();
    let address = || Address { resource: &resource, namespace: Some("ns"), name: "x" };
    for page in
        [json!({}), json!({ "error": "maintenance" }), json!({ "metadata": { "name": "y" } })]
    {
        let (cluster, _requests) = cluster(vec![Reply::ok(page)]);
        let error = cluster.get(address()).await.expect_err("not the object");
        assert_eq!(error.class, ErrorClass::Fatal);
    }
    let (cluster, _requests) = cluster(vec![Reply::ok(json!({ "metadata": { "name": "x" } }))]);
    cluster.get(address()).await.expect("the object");
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

#[tokio::test(start_paused = true)]
async fn the_last_backoff_is_repeated_if_the_settings_say_so() {
    let seconds = Duration::from_secs;
    let mut settings = Settings::default();
    settings.networking.error_backoffs = vec![seconds(1), seconds(5)];
    settings.networking.repeat_last_backoff = true;
    let replies = || {
        let failures = [500, 503, 500, 502, 500, 500].map(Reply::status);
        failures.into_iter().chain([Reply::ok(json!({}))]).collect()
    };
    let (api, requests) = cluster(replies());
    api.configure(Arc::new(settings.clone()));
    let resource = kopfexamples();
    let begin = tokio::time::Instant::now();
    api.patch(patch(&resource, PatchKind::Merge, None)).await.expect("the seventh attempt");
    assert_eq!(requests.lock().len(), 7);
    assert_eq!(begin.elapsed(), seconds(1 + 5 + 5 + 5 + 5 + 5));
    // Without it, there is one more attempt than backoffs.
    settings.networking.repeat_last_backoff = false;
    let (api, requests) = cluster(replies());
    api.configure(Arc::new(settings));
    api.patch(patch(&resource, PatchKind::Merge, None)).await.expect_err("three attempts");
    assert_eq!(requests.lock().len(), 3);
}

fn retry_after(status: u16) -> Reply {
    let body = json!({ "kind": "Status", "code": status });
    Reply::Whole(status, vec![("Retry-After", "1".into())], body)
}

#[tokio::test(start_paused = true)]
async fn a_creation_is_repeated_only_if_the_server_has_surely_not_got_it() {
    let resource = kopfexamples();
    let cases = [
        (Reply::Refuse("the connection broke"), false),
        (Reply::status(500), false),
        (Reply::status(503), false),
        (Reply::status(504), false),
        (retry_after(503), true),
        (retry_after(429), true),
        (Reply::Unreachable, true),
    ];
    for (number, (reply, is_repeated)) in cases.into_iter().enumerate() {
        let (cluster, requests) = cluster(vec![reply, Reply::ok(json!({}))]);
        let payload = Bytes::from_static(b"{}");
        let new = NewObject { resource: &resource, namespace: None, payload, backoffs: None };
        let created = cluster.create(new).await;
        let sent = requests.lock().len();
        assert_eq!(
            (created.is_ok(), sent),
            (is_repeated, 1 + usize::from(is_repeated)),
            "{number}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_repeated_after_a_lost_response_only_if_it_tests_the_object() {
    let resource = kopfexamples();
    let cases = [
        (r#"[{"op":"add","path":"/spec/list/-","value":1}]"#, 1),
        (r#"[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]"#, 2),
    ];
    for (payload, sent) in cases {
        let (cluster, requests) = cluster(vec![Reply::Refuse("broke"), Reply::ok(json!({}))]);
        let request = PatchRequest {
            payload: Bytes::from_static(payload.as_bytes()),
            ..patch(&resource, PatchKind::Json, None)
        };
        drop(cluster.patch(request).await);
        assert_eq!(requests.lock().len(), sent, "{payload}");
    }
}

/// Returns a cluster where all requests but those of kopfexamples get a response at once.
fn partly_slow(pause: Duration) -> (KubeCluster, Arc<Mutex<(usize, usize)>>) {
    let count = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&count);
    let service = tower::service_fn(move |request: Request<Body>| {
        let count = Arc::clone(&counted);
        async move {
            if request.uri().path().contains("kopfexamples") {
                {
                    let mut count = count.lock();
                    count.0 += 1;
                    count.1 = count.1.max(count.0);
                }
                tokio::time::sleep(pause).await;
                count.lock().0 -= 1;
            }
            let body = http_body_util::Full::new(Bytes::from_static(br#"{"groups":[]}"#));
            http::Response::builder().body(body)
        }
    });
    let client = kube::Client::new(service, "default");
    (KubeCluster::over(client, Arc::new(Settings::default())), count)
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_slow_kind_hold_up_no_other_kind_and_are_bounded() {
    let (cluster, count) = partly_slow(Duration::from_secs(10));
    let slow = kopfexamples();
    let healthy = Resource { plural: "others".into(), ..kopfexamples() };
    let start = tokio::time::Instant::now();
    let all = (0..500).map(|_| cluster.patch(patch(&slow, PatchKind::Merge, None)));
    let all = futures::future::join_all(all);
    let others = async {
        for second in 0..20 {
            tokio::time::sleep_until(start + Duration::from_secs(second)).await;
            let before = tokio::time::Instant::now();
            cluster.patch(patch(&healthy, PatchKind::Merge, None)).await.expect("an object");
            assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
        }
    };
    let (_all, ()) = tokio::join!(all, others);
    let most = count.lock().1;
    assert!((100..=200).contains(&most), "{most} at once");
}

#[tokio::test(start_paused = true)]
async fn discovery_leases_and_peering_wait_for_no_other_request() {
    let (cluster, _count) = partly_slow(Duration::from_hours(1));
    let slow = kopfexamples();
    let kinds = ["a", "b", "c", "d"]
        .map(|it| Resource { plural: format!("kopfexamples-{it}"), ..kopfexamples() });
    let slow = kinds.iter().chain([&slow]);
    let all = slow.flat_map(|it| (0..100).map(move |_| it));
    let all =
        futures::future::join_all(all.map(|it| cluster.patch(patch(it, PatchKind::Merge, None))));
    let vital = async {
        let groups = kopf::ports::GroupFilter::Only(std::collections::BTreeSet::new());
        cluster.discover(&groups).await.expect("nothing");
        cluster.version().await.expect("a version");
        let of = |group: &str, plural: &str| Resource {
            group: group.into(),
            plural: plural.into(),
            ..kopfexamples()
        };
        let vital = [
            of("coordination.k8s.io", "leases"),
            of("kopf.dev", "clusterkopfpeerings"),
            of("zalando.org", "kopfpeerings"),
        ];
        for resource in vital {
            cluster.patch(patch(&resource, PatchKind::Merge, None)).await.expect("an object");
        }
    };
    tokio::select! {
        _all = all => panic!("they are slow"),
        done = tokio::time::timeout(Duration::from_millis(100), vital) => done.expect("at once"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_object_is_waited_for_30_seconds_and_a_list_for_the_request_timeout() {
    let timed = async |set: fn(&mut Settings), is_list: bool| {
        let client = scripted(|_request| Reply::Never);
        let mut settings = Settings::default();
        settings.networking.error_backoffs.clear();
        set(&mut settings);
        let cluster = KubeCluster::over(client, Arc::new(settings));
        let start = tokio::time::Instant::now();
        let resource = kopfexamples();
        if is_list {
            drop(cluster.list(&resource, None).await);
        } else {
            drop(cluster.patch(patch(&resource, PatchKind::Merge, None)).await);
        }
        start.elapsed().as_secs()
    };
    assert_eq!(timed(|_| {}, false).await, 30);
    assert_eq!(timed(|_| {}, true).await, 300);
    let longer: fn(&mut Settings) = |it| it.networking.request_timeout = Duration::from_secs(90);
    assert_eq!((timed(longer, false).await, timed(longer, true).await), (90, 90));
}
