//! Credentials that expire, and bursts of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use http_body_util::Full;
use kube::client::Body;

use crate::cluster::failure::Action;
use crate::cluster::transport::{REQUESTS_MAX, Renew, Request, Transport};
use crate::ports::{ApiError, ErrorClass};
use crate::settings::Settings;

/// A server that accepts only the client with this number.
fn client(number: u32, accepted: u32) -> kube::Client {
    let service = tower::service_fn(move |_request: HttpRequest<Body>| async move {
        let status = if number == accepted { 200 } else { 401 };
        Response::builder().status(status).body(Full::new(Bytes::from_static(b"{}")))
    });
    kube::Client::new(service, "default")
}

/// Sends as many requests at once; gives their results and how often the credentials were made anew.
async fn send(requests: usize, accepted: u32) -> (Vec<Result<Bytes, ApiError>>, u32) {
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let renew: Renew = Box::new(move || {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move { Ok(client(number, accepted)) })
    });
    let settings = Arc::new(Settings::default());
    let transport = Transport::new(client(0, accepted), Some(renew), String::new(), settings);
    let request = Request::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    let sent = (0..requests).map(|_| transport.fetch(&request, &networking));
    let results = futures::future::join_all(sent).await;
    (results, made.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn rejected_requests_share_one_renewal_and_then_succeed() {
    let (results, made) = send(5, 1).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(made, 1);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_stay_wrong_are_given_up() {
    let (results, made) = send(1, 99).await;
    assert_eq!(results[0].as_ref().unwrap_err().class, ErrorClass::Denied);
    assert_eq!(made, 8);
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
    let settings = Arc::new(Settings::default());
    let transport = Transport::new(client, None, String::new(), settings);
    let request = Request::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    let sent = (0..10 * REQUESTS_MAX).map(|_| transport.fetch(&request, &networking));
    assert!(futures::future::join_all(sent).await.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::Relaxed), REQUESTS_MAX);
}
