//! Whole requests to the server in process: a method, a path with a query, a content type, and a body, one per line.
#![no_main]

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use kopf_fuzz::apiserver::{ApiServer, ResourceDef};
use libfuzzer_sys::fuzz_target;
use tower::ServiceExt as _;

/// How many requests of one input are sent.
const REQUESTS_MAX: usize = 16;

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let widgets = ResourceDef::new("fuzz.example.com", "v1", "widgets", "Widget");
        let server = ApiServer::builder().resource(widgets).build();
        for request in data.split(|it| *it == 0).take(REQUESTS_MAX) {
            let mut lines = request.splitn(4, |it| *it == b'\n');
            let mut line = || lines.next().unwrap_or_default();
            let built =
                Request::builder().method(line()).uri(line()).header("content-type", line());
            let Ok(request) = built.body(Full::<bytes::Bytes>::new(line().to_vec().into())) else {
                continue;
            };
            let Ok(answer) = server.clone().oneshot(request).await;
            // A watch has no end: what it has at once is enough.
            let _late =
                tokio::time::timeout(Duration::from_millis(1), answer.into_body().collect()).await;
        }
    });
});
