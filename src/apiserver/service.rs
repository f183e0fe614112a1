//! The server as a service: HTTP in, HTTP out.

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
    faults::Effect,
    rbac::{self, User},
    refusal::Refusal,
    reply::Reply,
    request::{
        Ask,
        accept::Form,
        log::LoggedRequest,
        route::{self, Route},
    },
    resource::kind::Kind,
    streaming::inside,
    verbs::{self, Warnings},
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
            if inside::is_wanted(&parts) {
                return Ok(inside::send(ApiServer(shared), parts).await);
            }
            let identified = rbac::authenticate(&shared, &parts);
            let mut ask = Ask {
                method: parts.method.to_string(),
                path: parts.uri.path().into(),
                query: parts.uri.query().unwrap_or_default().into(),
                headers: parts.headers,
                body: Bytes::new(),
                upgrade: parts.extensions.get::<OnUpgrade>().cloned(),
                user: User::default(),
            };
            let warnings = Warnings::default();
            let bodiless = ask.method == "HEAD";
            let admitted = identified.and_then(|user| {
                ask.user = user;
                rbac::authorize(&shared, &ask)
            });
            let is_forbidden = admitted.as_ref().is_err_and(|it| it.code != 401);
            let reply = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => {
                    ask.body = body.to_bytes();
                    match admitted {
                        Ok(()) => respond(&shared, &ask, &warnings).await,
                        Err(refusal) => refusal.into(),
                    }
                }
                // The other reason is a client that has gone, which does not read the answer.
                Err(_too_large) => Refusal::too_large().into(),
            };
            shared.announce();
            let form = Form::of(&ask, reply.status() >= 400);
            log(&shared, ask, &reply);
            let mut response = reply.render(form, &warnings.lock());
            if is_forbidden {
                let nosniff = HeaderValue::from_static("nosniff");
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
            }
            Ok(if bodiless { response.map(|_body| Empty::new().boxed_unsync()) } else { response })
        })
    }
}

/// The answer, if nothing goes wrong on demand.
async fn respond(shared: &Arc<Shared>, ask: &Ask, warnings: &Warnings) -> Reply {
    let fault = shared.faults.lock().of_request(&ask.method, &ask.target());
    match fault {
        Some(Effect::Refuse { code, retry_after_seconds }) => {
            let name = match route::parse(&ask.path) {
                Some(Route::Objects(target)) => target.name,
                Some(_) | None => None,
            };
            return Refusal::injected(code, retry_after_seconds, name.as_deref()).into();
        }
        Some(Effect::Latency(latency)) => tokio::time::sleep(latency).await,
        Some(Effect::TimeoutAfterwards) => {
            drop(answer(shared, ask, warnings).await);
            return Refusal::injected(504, None, None).into();
        }
        Some(Effect::StaleList(changes)) => {
            // Zero would be any version.
            let revision = shared.store().revision.saturating_sub(changes).max(1);
            let separator = if ask.query.is_empty() { "" } else { "&" };
            let stale = format!("resourceVersionMatch=Exact&resourceVersion={revision}");
            let query = format!("{stale}{separator}{}", ask.query);
            return answer(shared, &Ask { query, ..ask.clone() }, warnings).await;
        }
        Some(Effect::HiddenGroup(group))
            if !matches!(route::parse(&ask.path), Some(Route::Objects(_))) =>
        {
            let mut kinds = kinds(shared);
            kinds.retain(|it| it.def.group != group);
            let document = document(shared, &kinds, ask);
            return document.unwrap_or_else(Reply::unknown_path);
        }
        // The others happen to the events of a watch.
        Some(
            Effect::Pass
            | Effect::HiddenGroup(_)
            | Effect::LostEvent
            | Effect::LateEvent(_)
            | Effect::Stall
            | Effect::Close,
        )
        | None => {}
    }
    answer(shared, ask, warnings).await
}

async fn answer(shared: &Arc<Shared>, ask: &Ask, warnings: &Warnings) -> Reply {
    if let Some(Route::Objects(target)) = route::parse(&ask.path) {
        return verbs::answer(shared, ask, &target, warnings).await.unwrap_or_else(Reply::from);
    }
    let document = document(shared, &kinds(shared), ask);
    document.unwrap_or_else(|| unknown(shared, &ask.path))
}

/// Returns what is at a path that is no object's, with these kinds.
fn document(shared: &Shared, kinds: &[Arc<Kind>], ask: &Ask) -> Option<Reply> {
    let is_refused = |path: &str| shared.faults.lock().refuses("GET", path);
    discovery::routes::answer(kinds, &shared.openapi, ask, is_refused)
}

/// Groups of the server itself know what they do not have.
fn unknown(shared: &Shared, path: &str) -> Reply {
    let group = path.strip_prefix("/apis/").and_then(|it| it.split('/').next());
    let is_own = |it: &Arc<Kind>| it.def.native && Some(it.def.group.as_str()) == group;
    if kinds(shared).iter().any(is_own) {
        return Refusal::unknown_resource().into();
    }
    Reply::unknown_path()
}

/// All served kinds.
fn kinds(shared: &Shared) -> Vec<Arc<Kind>> {
    shared.store().tables.values().map(|it| Arc::clone(&it.kind)).collect()
}

fn log(shared: &Shared, ask: Ask, reply: &Reply) {
    let content_type = ask.header(http::header::CONTENT_TYPE).to_owned();
    shared.requests.lock().push(LoggedRequest {
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
