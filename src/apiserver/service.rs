//! The server as a service: HTTP in, HTTP out.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited, combinators::UnsyncBoxBody};
use hyper::body::Body;
use serde_json::Value;
use tokio::time::Instant;
use tower::Service;

use super::{
    ApiServer, Shared, discovery, lock,
    refusal::Refusal,
    reply::Reply,
    request::{
        Ask,
        log::LoggedRequest,
        route::{self, Route},
    },
    verbs,
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
            let mut ask = Ask {
                method: parts.method.to_string(),
                path: parts.uri.path().into(),
                query: parts.uri.query().unwrap_or_default().into(),
                headers: parts.headers,
                body: Bytes::new(),
            };
            let reply = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => {
                    ask.body = body.to_bytes();
                    respond(&shared, &ask).await
                }
                // The other reason is a client that has gone, which does not read the answer.
                Err(_too_large) => Refusal::too_large().into(),
            };
            shared.announce();
            log(&shared, ask, &reply);
            Ok(reply.render())
        })
    }
}

async fn respond(shared: &Arc<Shared>, ask: &Ask) -> Reply {
    let injected = (ask.method == "PATCH").then(|| lock(&shared.injected).pop_front()).flatten();
    match injected.filter(|it| *it != 200) {
        Some(code) => Refusal::injected(code).into(),
        None => answer(shared, ask).await,
    }
}

async fn answer(shared: &Arc<Shared>, ask: &Ask) -> Reply {
    let known = |document: Option<Value>| match document {
        Some(document) => Reply::Document(200, document),
        None => Reply::unknown_path(),
    };
    let Some(route) = route::parse(&ask.path) else { return Reply::unknown_path() };
    match route {
        Route::Objects(target) => {
            verbs::answer(shared, ask, &target).await.unwrap_or_else(Reply::from)
        }
        _ if ask.method != "GET" => Refusal::method_not_allowed().into(),
        Route::ServerVersion => Reply::Document(200, discovery::server_version()),
        Route::CoreVersions => Reply::Document(200, discovery::core_versions()),
        Route::Groups => Reply::Document(200, discovery::groups(&shared.store())),
        Route::Group(name) => known(discovery::group(&shared.store(), &name)),
        Route::Resources(group, version) => {
            known(discovery::resources(&shared.store(), &group, &version))
        }
    }
}

fn log(shared: &Shared, ask: Ask, reply: &Reply) {
    let content_type = ask.header(http::header::CONTENT_TYPE).to_owned();
    lock(&shared.requests).push(LoggedRequest {
        at: Instant::now(),
        method: ask.method,
        path: ask.path,
        query: ask.query,
        content_type,
        body: ask.body,
        status: reply.status(),
        version: reply.version(),
    });
}
