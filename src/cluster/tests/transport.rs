//! Credentials that expire, and bursts of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, Request as HttpRequest, Response};
use http_body_util::Full;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cluster::{
    failure::Action,
    in_flight::MutatingRequests,
    limits::RESOURCE_REQUESTS_MAX,
    request::KubeRequest,
    sessions::{ClientSession, LogIn, Sessions},
    transport::Transport,
};
use crate::logic::{
    access::vault::LoginResult,
    object::resource::Resource,
    replicas::leadership::{ReplicaRole, leases},
};
use crate::ports::{ApiError, Clock, ErrorClass, Leadership};
use crate::telemetry::{Health, Metrics};

/// Returns a client with this number, whose server accepts this number or a later one.
fn client(number: u32, accepted: u32) -> kube::Client {
    let service = tower::service_fn(move |_request: HttpRequest<Body>| async move {
        let status = if number >= accepted { 200 } else { 401 };
        Response::builder().status(status).body(Full::new(Bytes::from_static(b"{}")))
    });
    kube::Client::new(service, "default")
}

/// Sends concurrent requests. Returns their results, the number of logins, and the time they took.
async fn send(requests: usize, accepted: u32) -> (Vec<Result<Bytes, ApiError>>, u32, Duration) {
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let log_in: LogIn = Box::new(move || {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        let session = ClientSession::new(client(number, accepted), None, String::new());
        let found = LoginResult {
            handler: "login_fn".into(),
            priority: 0,
            expiration: None,
            returned: Some("the same".into()),
            content: Arc::new(session),
        };
        Box::pin(async move { Ok(vec![found]) })
    });
    let start = Instant::now();
    let sessions = Sessions::start(log_in, Clock::system(), &Health::default()).await.unwrap();
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let request = KubeRequest::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    let sent = (0..requests).map(|_| transport.fetch(&request, &networking));
    let results = futures::future::join_all(sent).await;
    (results, made.load(Ordering::Relaxed), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn rejected_requests_share_one_login_and_then_succeed_at_once() {
    let (results, logins, took) = send(5, 2).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((logins, took), (2, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_tried_until_the_server_accepts_them() {
    let (results, logins, took) = send(40, 20).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((logins, took.as_secs()), (20, 1 + 2 + 4 + 8 + 16 + 32 + 12 * 60));
}

#[tokio::test(start_paused = true)]
async fn an_external_client_cannot_log_in_again() {
    let sessions = Sessions::only(client(0, 1));
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let request = KubeRequest::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    let error = transport.fetch(&request, &networking).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Denied);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_requests_takes_a_bounded_number_of_connections() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, highest) = (Arc::clone(&now), Arc::clone(&most));
    let service = tower::service_fn(move |_request: HttpRequest<Body>| {
        let (now, most) = (Arc::clone(&inside), Arc::clone(&highest));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            Response::builder().body(Full::new(Bytes::from_static(b"{}")))
        }
    });
    let client = kube::Client::new(service, "default");
    let transport = Transport::new(Sessions::only(client), Arc::default(), Metrics::default());
    let resource = Resource::default();
    let action = Action::Use {
        verb: "get",
        resource: &resource,
        namespace: None,
        name: None,
        subresource: None,
    };
    let request = KubeRequest::get("/api".into(), action);
    let networking = transport.settings().networking.clone();
    let sent = (0..10 * RESOURCE_REQUESTS_MAX).map(|_| transport.fetch(&request, &networking));
    assert!(futures::future::join_all(sent).await.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::Relaxed), RESOURCE_REQUESTS_MAX);
}

/// Logs in with the current certificate authority; the server changes its own with `authority`.
async fn with_authority(authority: &Arc<AtomicU32>) -> Transport {
    let current = Arc::clone(authority);
    let log_in: LogIn = Box::new(move || {
        let (known, current) = (current.load(Ordering::Relaxed), Arc::clone(&current));
        let service = tower::service_fn(move |_request: HttpRequest<Body>| {
            let is_trusted = current.load(Ordering::Relaxed) == known;
            async move {
                if is_trusted {
                    let body = Full::new(Bytes::from_static(b"{}"));
                    return Ok(Response::new(body));
                }
                let error = rustls::CertificateError::UnknownIssuer;
                Err(std::io::Error::other(rustls::Error::InvalidCertificate(error)))
            }
        });
        let client = kube::Client::new(service, "default");
        let found = LoginResult {
            handler: "login_fn".into(),
            priority: 0,
            expiration: None,
            returned: None,
            content: Arc::new(ClientSession::new(client, None, String::new())),
        };
        Box::pin(async move { Ok(vec![found]) })
    });
    let sessions = Sessions::start(log_in, Clock::system(), &Health::default()).await.unwrap();
    Transport::new(sessions, Arc::default(), Metrics::default())
}

#[tokio::test(start_paused = true)]
async fn a_certificate_authority_that_rotates_means_a_new_login() {
    let authority = Arc::new(AtomicU32::new(1));
    let transport = with_authority(&authority).await;
    let request = KubeRequest::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    transport.fetch(&request, &networking).await.unwrap();
    authority.store(2, Ordering::Relaxed);
    let start = Instant::now();
    for _ in 0..3 {
        transport.fetch(&request, &networking).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// Simulates a server that is trusted once, and then never again.
#[tokio::test(start_paused = true)]
async fn an_untrusted_server_is_tried_again_after_growing_pauses() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let (seen, start) = (Arc::clone(&made), Instant::now());
    let log_in: LogIn = Box::new(move || {
        seen.lock().push(start.elapsed().as_secs());
        let requests = AtomicU32::new(u32::from(seen.lock().len() > 1));
        let service = tower::service_fn(move |_request: HttpRequest<Body>| {
            let is_trusted = requests.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                let error =
                    rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
                let response = || Response::new(Full::new(Bytes::from_static(b"{}")));
                is_trusted.then(response).ok_or_else(|| std::io::Error::other(error))
            }
        });
        let found = LoginResult {
            handler: "login_fn".into(),
            priority: 0,
            expiration: None,
            returned: None,
            content: Arc::new(ClientSession::new(
                kube::Client::new(service, "default"),
                None,
                String::new(),
            )),
        };
        Box::pin(async move { Ok(vec![found]) })
    });
    let sessions = Sessions::start(log_in, Clock::system(), &Health::default()).await.unwrap();
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let request = KubeRequest::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    transport.fetch(&request, &networking).await.unwrap();
    let asked = transport.fetch(&request, &networking);
    assert!(tokio::time::timeout(Duration::from_secs(20), asked).await.is_err());
    assert_eq!(*made.lock(), [0, 0, 0, 1, 3, 7, 15]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_writes_is_not_sent_when_the_lease_has_expired() {
    let sent = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&sent);
    let service = tower::service_fn(move |_request: HttpRequest<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Response::builder().body(Full::new(Bytes::from_static(b"{}"))) }
    });
    let sessions = Sessions::only(kube::Client::new(service, "default"));
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let leadership = Leadership::new(clock);
    leadership.publish(&ReplicaRole::Leader, Some(clock.uptime() + Duration::from_secs(10)));
    transport.fence(leadership.clone());
    let networking = transport.settings().networking.clone();
    let (other, lease) = (Resource::default(), leases());
    let limit = Duration::from_millis(1);
    let send = async |method: Method, resource: &Resource| {
        let (namespace, name, subresource) = (None, None, None);
        let action = Action::Use { verb: "patch", resource, namespace, name, subresource };
        let request = KubeRequest { method, ..KubeRequest::get("/api".into(), action) };
        let fetched = tokio::time::timeout(limit, transport.fetch(&request, &networking)).await;
        fetched.is_ok()
    };
    assert!(send(Method::PATCH, &other).await);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!send(Method::PATCH, &other).await && !send(Method::POST, &other).await);
    assert!(send(Method::GET, &other).await && send(Method::PUT, &lease).await);
    assert_eq!(sent.load(Ordering::Relaxed), 3);
    leadership.publish(&ReplicaRole::Leader, Some(clock.uptime() + Duration::from_secs(10)));
    assert!(send(Method::PATCH, &other).await, "renewed");
}

#[tokio::test(start_paused = true)]
async fn mutating_requests_are_in_flight_until_their_response_or_their_end() {
    let service = tower::service_fn(|_request: HttpRequest<Body>| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Response::builder().status(200).body(Full::new(Bytes::from_static(b"{}")))
    });
    let sessions = Sessions::only(kube::Client::new(service, "default"));
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let mutating = MutatingRequests::default();
    let transport = transport.counting(mutating.clone());
    let networking = transport.settings().networking.clone();
    let request = || KubeRequest::get("/api".into(), Action::Discover("/api"));
    let (read, write) = (request(), KubeRequest { method: Method::PATCH, ..request() });
    let fetch = |request| Box::pin(transport.fetch(request, &networking));

    let (mut reading, mut writing, mut abandoned) = (fetch(&read), fetch(&write), fetch(&write));
    for it in [&mut reading, &mut writing, &mut abandoned] {
        assert!(it.now_or_never().is_none());
    }
    assert_eq!(mutating.in_flight(), 2);
    drop(abandoned);
    assert_eq!(mutating.in_flight(), 1);
    writing.await.unwrap();
    assert_eq!(mutating.in_flight(), 0);
    reading.await.unwrap();
    assert_eq!(mutating.in_flight(), 0);
}
