//! Upgrades for clients in the same process. They have no connection that could be upgraded, so each gets one in memory.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{HOST, UPGRADE},
    request::Parts,
};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{body::Incoming, client, server::conn::http1, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::duplex;
use tower::Service as _;

use super::upgrade::UpgradedSession;
use crate::{ApiServer, ResponseBody, rbac::User};

/// The buffer of one direction.
const BUFFER_BYTES: usize = 64 << 10;

/// Returns whether a request is for an upgrade, and has no connection for it.
pub(crate) fn is_wanted(parts: &Parts) -> bool {
    parts.headers.contains_key(UPGRADE) && parts.extensions.get::<OnUpgrade>().is_none()
}

/// Sends a request over a new connection. Its body is not sent, because an upgrade has none.
pub(crate) async fn send(server: ApiServer, parts: Parts) -> Response<ResponseBody> {
    match exchange(server, parts).await {
        Ok(response) => response,
        Err(problem) => {
            let mut response = Response::new(Full::from(problem.to_string()).boxed_unsync());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

async fn exchange(
    server: ApiServer,
    mut parts: Parts,
) -> Result<Response<ResponseBody>, hyper::Error> {
    let user = parts.extensions.get::<User>().cloned();
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    parts.uri = path.parse().unwrap_or_default();
    parts.headers.entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    let (near, far) = duplex(BUFFER_BYTES);
    let (mut sender, connection) =
        client::conn::http1::handshake::<_, Empty<Bytes>>(TokioIo::new(near)).await?;
    let session: Arc<Mutex<Option<UpgradedSession>>> = Arc::default();
    let (accepted, inner) = (Arc::clone(&session), server.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (mut inner, accepted) = (inner.clone(), Arc::clone(&accepted));
        if let Some(user) = user.clone() {
            request.extensions_mut().insert(user);
        }
        async move {
            let Ok(mut response) = inner.call(request).await;
            *accepted.lock() = response.extensions_mut().remove::<UpgradedSession>();
            Ok::<_, Infallible>(response)
        }
    });
    let work = async move {
        let served = http1::Builder::new().serve_connection(TokioIo::new(far), service);
        let serve = async {
            // The client detects the end of the connection.
            let _ended = served.with_upgrades().await.is_ok();
            let work = session.lock().take().and_then(|it| it.take());
            if let Some(work) = work {
                work.await;
            }
        };
        let _ended = tokio::join!(serve, connection.with_upgrades());
    };
    server.0.inside.lock().spawn(work);
    let response = sender.send_request(Request::from_parts(parts, Empty::new())).await?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(parts, Full::new(body).boxed_unsync()))
}
