//! Upgrades of connections from HTTP to WebSocket, and their sessions.
//!
//! The response to the request carries a session. The task of the connection takes it out, sends the response, and runs the session
//! after the upgrade: so the session ends with the connection, and with the server.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
        SEC_WEBSOCKET_PROTOCOL, UPGRADE,
    },
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{ResponseBody, refusal::Refusal, request::ApiRequest};

/// Limit of a message; clients send pieces of 32 KiB.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The connection after the upgrade.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The work after the upgrade, until the task of the connection takes it.
#[derive(Clone)]
pub(crate) struct UpgradedSession(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

impl UpgradedSession {
    /// Returns the work of the session; `None` after the first call.
    pub(crate) fn take(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.lock().take()
    }
}

impl fmt::Debug for UpgradedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Returns the last message. Clients treat an end without a reason as a failure.
pub(crate) fn farewell() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }))
}

/// A request for a WebSocket, with the protocol that both sides support.
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    protocol: &'static str,
}

impl Handshake {
    /// Parses the request. Chooses the first protocol of the client that is supported.
    pub(crate) fn of(
        request: &ApiRequest,
        known: &'static [&'static str],
    ) -> Result<Self, Refusal> {
        let missing = || Refusal::bad_request("Upgrade request required");
        let upgrade = request.upgrade.clone().ok_or_else(missing)?;
        let key = request.headers.get(SEC_WEBSOCKET_KEY).ok_or_else(missing)?;
        if !request.header(UPGRADE).eq_ignore_ascii_case("websocket") {
            return Err(missing());
        }
        let offered = offered(&request.headers);
        let chosen = offered.iter().find_map(|it| known.iter().find(|known| *known == it));
        let protocol = chosen.copied().ok_or_else(|| {
            let (offered, known) = (offered.join(", "), known.join(", "));
            let message = format!(
                "no protocol in common: the client offers [{offered}], the server knows [{known}]"
            );
            Refusal::bad_request(message)
        })?;
        let accept = derive_accept_key(key.as_bytes());
        let accept = HeaderValue::from_str(&accept).map_err(|_never| missing())?;
        Ok(Self { upgrade, accept, protocol })
    }

    /// Accepts the upgrade, and runs this session after it.
    pub(crate) fn accept<F>(
        self,
        session: impl FnOnce(Socket, &'static str) -> F + Send + 'static,
    ) -> Upgrade
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Self { upgrade, accept, protocol } = self;
        let work = async move {
            // The client has disconnected.
            let Ok(upgraded) = upgrade.await else { return };
            let config = WebSocketConfig::default()
                .max_message_size(Some(MESSAGE_BYTES_MAX))
                .max_frame_size(Some(MESSAGE_BYTES_MAX));
            let io = TokioIo::new(upgraded);
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
            session(socket, protocol).await;
        };
        let session = UpgradedSession(Arc::new(Mutex::new(Some(Box::pin(work)))));
        Upgrade { session, accept, protocol }
    }
}

fn offered(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|it| it.to_str().ok());
    values.flat_map(|it| it.split(',')).map(str::trim).collect()
}

/// An accepted upgrade, with its session.
pub(crate) struct Upgrade {
    session: UpgradedSession,
    accept: HeaderValue,
    protocol: &'static str,
}

impl Upgrade {
    /// Converts the response to the one that upgrades the connection.
    pub(crate) fn enter(self, response: &mut Response<ResponseBody>) {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.remove(CACHE_CONTROL);
        headers.remove(CONTENT_TYPE);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(self.protocol));
        response.extensions_mut().insert(self.session);
    }
}
