//! The server as a service: HTTP in, HTTP out.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Body;
use tokio::time::Instant;
use tower::Service;

use crate::apiserver::{
    ApiServer, LoggedRequest, Refusal, Shared, lock,
    verbs::answer::{self, Answer, Ask},
};

/// What the real server accepts in one request.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The body of an answer: whole, or the endless lines of a watch.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

impl<B> Service<Request<B>> for ApiServer
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let header =
                |name| parts.headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
            let mut ask = Ask {
                method: parts.method.to_string(),
                path: parts.uri.path().into(),
                query: parts.uri.query().unwrap_or_default().into(),
                content_type: header(CONTENT_TYPE).unwrap_or_default().into(),
                body: Bytes::new(),
            };
            let answer = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => {
                    ask.body = body.to_bytes();
                    respond(&shared, &ask)
                }
                // The other reason is a client that has gone, which does not read the answer.
                Err(_too_large) => Refusal::too_large().into(),
            };
            shared.announce();
            log(&shared, ask, &answer);
            Ok(render(answer))
        })
    }
}

fn respond(shared: &Arc<Shared>, ask: &Ask) -> Answer {
    let injected = (ask.method == "PATCH").then(|| lock(&shared.injected).pop_front()).flatten();
    match injected.filter(|it| *it != 200) {
        Some(code) => Refusal::injected(code).into(),
        None => answer::answer(shared, ask),
    }
}

fn log(shared: &Shared, ask: Ask, answer: &Answer) {
    let (status, version) = match answer {
        Answer::Json(status, body) => {
            let version = body.pointer("/metadata/resourceVersion").and_then(|it| it.as_str());
            (*status, version.map(String::from))
        }
        Answer::UnknownPath => (404, None),
        Answer::Line(_) | Answer::Stream(_) => (200, None),
    };
    lock(&shared.requests).push(LoggedRequest {
        at: Instant::now(),
        method: ask.method,
        path: ask.path,
        query: ask.query,
        content_type: ask.content_type,
        body: ask.body,
        status,
        version,
    });
}

fn render(answer: Answer) -> Response<ResponseBody> {
    let whole = |body: Bytes| Full::new(body).boxed_unsync();
    let (status, kind, body) = match answer {
        Answer::Json(status, body) => (status, "application/json", whole(body.to_string().into())),
        Answer::UnknownPath => {
            (404, "text/plain; charset=utf-8", whole("404 page not found\n".into()))
        }
        Answer::Line(line) => (200, "application/json", whole(line)),
        Answer::Stream(watch) => {
            (200, "application/json", StreamBody::new(watch.frames()).boxed_unsync())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
