//! The server as a [`tower::Service`]: HTTP in, HTTP out.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header::X_CONTENT_TYPE_OPTIONS};
use http_body_util::{BodyExt as _, Empty, Limited, combinators::UnsyncBoxBody};
use hyper::{body::Body, upgrade::OnUpgrade};
use tokio::time::Instant;
use tower::Service;

use super::{
    ApiServer, Shared, discovery,
    faults::FaultEffect,
    rbac::{self, User},
    refusal::Refusal,
    reply::Reply,
    request::{
        ApiRequest,
        accept::ResponseEncoding,
        log::LoggedRequest,
        route::{self, Route},
    },
    resource::kind::Kind,
    streaming::inside,
    verbs::{self, Warnings},
};

/// Limit of a request body, the same as on the real server.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The body of a response: complete, or the lines of a watch until it ends.
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
            if inside::is_wanted(&parts) {
                return Ok(inside::send(ApiServer(shared), parts).await);
            }
            let identified = rbac::authenticate(&shared, &parts);
            let mut request = ApiRequest {
                method: parts.method.to_string(),
                path: parts.uri.path().into(),
                query: parts.uri.query().unwrap_or_default().into(),
                headers: parts.headers,
                body: Bytes::new(),
                upgrade: parts.extensions.get::<OnUpgrade>().cloned(),
                user: User::default(),
            };
            let warnings = Warnings::default();
            let bodiless = request.method == "HEAD";
            let admitted = identified.and_then(|user| {
                request.user = user;
                rbac::authorize(&shared, &request)
            });
            let is_forbidden = admitted.as_ref().is_err_and(|it| it.code != 401);
            let reply = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => {
                    request.body = body.to_bytes();
                    match admitted {
                        Ok(()) => respond(&shared, &request, &warnings).await,
                        Err(refusal) => refusal.into(),
                    }
                }
                // The other possible reason is a closed connection, where nobody reads the response.
                Err(_too_large) => Refusal::too_large().into(),
            };
            shared.announce();
            let form = ResponseEncoding::of(&request, reply.status() >= 400);
            log(&shared, request, &reply);
            let mut response = reply.render(form, &warnings.lock());
            if is_forbidden {
                let nosniff = HeaderValue::from_static("nosniff");
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
            }
            Ok(if bodiless { response.map(|_body| Empty::new().boxed_unsync()) } else { response })
        })
    }
}

/// Applies the fault that a test has requested for this request, if any, and dispatches it.
async fn respond(shared: &Arc<Shared>, request: &ApiRequest, warnings: &Warnings) -> Reply {
    let fault = shared.faults.lock().of_request(&request.method, &request.target());
    match fault {
        Some(FaultEffect::Refuse { code, retry_after_seconds }) => {
            let name = match route::parse(&request.path) {
                Some(Route::Objects(target)) => target.name,
                Some(_) | None => None,
            };
            return Refusal::injected(code, retry_after_seconds, name.as_deref()).into();
        }
        Some(FaultEffect::Latency(latency)) => tokio::time::sleep(latency).await,
        Some(FaultEffect::TimeoutAfterwards) => {
            drop(dispatch(shared, request, warnings).await);
            return Refusal::injected(504, None, None).into();
        }
        Some(FaultEffect::StaleList(changes)) => {
            // Version 0 would mean any version.
            let revision = shared.store().revision.saturating_sub(changes).max(1);
            let separator = if request.query.is_empty() { "" } else { "&" };
            let stale = format!("resourceVersionMatch=Exact&resourceVersion={revision}");
            let query = format!("{stale}{separator}{}", request.query);
            return dispatch(shared, &ApiRequest { query, ..request.clone() }, warnings).await;
        }
        Some(FaultEffect::HiddenGroup(group))
            if !matches!(route::parse(&request.path), Some(Route::Objects(_))) =>
        {
            let mut kinds = kinds(shared);
            kinds.retain(|it| it.def.group != group);
            let document = document(shared, &kinds, request);
            return document.unwrap_or_else(Reply::unknown_path);
        }
        // The other effects concern the events of a watch.
        Some(
            FaultEffect::Pass
            | FaultEffect::HiddenGroup(_)
            | FaultEffect::LostEvent
            | FaultEffect::LateEvent(_)
            | FaultEffect::Stall
            | FaultEffect::Close,
        )
        | None => {}
    }
    dispatch(shared, request, warnings).await
}

async fn dispatch(shared: &Arc<Shared>, request: &ApiRequest, warnings: &Warnings) -> Reply {
    if let Some(Route::Objects(target)) = route::parse(&request.path) {
        if let Some(loading) = &shared.loading
            && let Err(refusal) = loading.prepare(shared, (request, &target)).await
        {
            return refusal.into();
        }
        return verbs::respond(shared, request, &target, warnings)
            .await
            .unwrap_or_else(Reply::from);
    }
    let document = document(shared, &kinds(shared), request);
    document.unwrap_or_else(|| unknown(shared, &request.path))
}

/// Returns the document at a path without an object (discovery, OpenAPI, health), for these kinds.
fn document(shared: &Shared, kinds: &[Arc<Kind>], request: &ApiRequest) -> Option<Reply> {
    let is_refused = |path: &str| shared.faults.lock().refuses("GET", path);
    discovery::routes::respond(kinds, &shared.openapi, request, is_refused)
}

/// Makes the response for an unknown path. Groups of the server itself reply with a `Status`, all others in plain text.
fn unknown(shared: &Shared, path: &str) -> Reply {
    let group = path.strip_prefix("/apis/").and_then(|it| it.split('/').next());
    let is_own = |it: &Arc<Kind>| it.def.native && Some(it.def.group.as_str()) == group;
    if kinds(shared).iter().any(is_own) {
        return Refusal::unknown_resource().into();
    }
    Reply::unknown_path()
}

/// Returns the kinds of all served resources.
fn kinds(shared: &Shared) -> Vec<Arc<Kind>> {
    shared.store().tables.values().map(|it| Arc::clone(&it.kind)).collect()
}

fn log(shared: &Shared, request: ApiRequest, reply: &Reply) {
    let content_type = request.header(http::header::CONTENT_TYPE).to_owned();
    shared.requests.lock().push(LoggedRequest {
        at: Instant::now(),
        method: request.method,
        path: request.path,
        query: request.query,
        content_type,
        body: request.body,
        status: reply.status(),
        version: reply.version(),
    });
}
