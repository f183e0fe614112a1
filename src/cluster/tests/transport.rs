//! Credentials that expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use http_body_util::Full;
use kube::client::Body;

use crate::cluster::failure::Action;
use crate::cluster::transport::{Renew, Request, Transport};
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
