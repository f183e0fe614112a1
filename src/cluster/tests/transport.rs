//! Credentials that expire, and bursts of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use http_body_util::Full;
use kube::client::Body;
use tokio::time::Instant;

use crate::cluster::failure::Action;
use crate::cluster::limits::RESOURCE_REQUESTS_MAX;
use crate::cluster::sessions::{LogIn, Session, Sessions};
use crate::cluster::transport::{Request, Transport};
use crate::logic::{resource::Resource, vault::Found};
use crate::ports::{ApiError, Clock, ErrorClass, Health, Metrics};

/// A server that accepts a client of this number or of a later one.
fn client(number: u32, accepted: u32) -> kube::Client {
    let service = tower::service_fn(move |_request: HttpRequest<Body>| async move {
        let status = if number >= accepted { 200 } else { 401 };
        Response::builder().status(status).body(Full::new(Bytes::from_static(b"{}")))
    });
    kube::Client::new(service, "default")
}

/// Sends as many requests at once; gives their results, the number of logins, and the time it took.
async fn send(requests: usize, accepted: u32) -> (Vec<Result<Bytes, ApiError>>, u32, Duration) {
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let log_in: LogIn = Box::new(move || {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Session::new(client(number, accepted), None, String::new());
        let found = Found {
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
    let request = Request::get("/api".into(), Action::Discover("/api"));
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
async fn credentials_that_stay_wrong_are_tried_until_the_server_accepts_them() {
    let (results, logins, took) = send(40, 20).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((logins, took.as_secs()), (20, 1 + 2 + 4 + 8 + 16 + 32 + 12 * 60));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_given_to_us_cannot_log_in_again() {
    let sessions = Sessions::only(client(0, 1));
    let transport = Transport::new(sessions, Arc::default(), Metrics::default());
    let request = Request::get("/api".into(), Action::Discover("/api"));
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
    let request = Request::get("/api".into(), action);
    let networking = transport.settings().networking.clone();
    let sent = (0..10 * RESOURCE_REQUESTS_MAX).map(|_| transport.fetch(&request, &networking));
    assert!(futures::future::join_all(sent).await.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::Relaxed), RESOURCE_REQUESTS_MAX);
}
