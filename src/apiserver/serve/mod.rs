//! The server on a socket: HTTP/1.1 for clients outside of this process, such as `kubectl`.
//!
//! One task per connection, all of them owned here. Everything is bounded: connections, headers, the time for a request, and the
//! time in which a client must read a part of a response. An idle watch has no limit in time.
//!
//! Without TLS there is no authentication, because kubectl does not send a token over plain HTTP. Every client that can connect is
//! accepted, as by `kubectl proxy`, except browsers: a web page could use this server without its reader's knowledge.

#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    io::{self, IoSlice},
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, HOST, ORIGIN},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{ApiServer, Refusal, ResponseBody, streaming::upgrade::UpgradedSession};

/// Limit of open connections; more wait in the queue of the system. A client of Kubernetes opens at most one per watch.
const CONNECTIONS_MAX: usize = 512;

/// The maximum size of the head of a request, and the size of the pieces in which a body is read.
const BUFFER_BYTES: usize = 128 << 10;

/// Time limit for the head of a request. It includes the time before it, so idle connections are closed after this time.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);

/// Time limit until the response begins, the same as on the real server. Webhooks get at most 30 seconds of it.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for a client to read what was written. A response is kept in memory until then.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for unfinished responses when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause before the next attempt if the system refuses a connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address to listen on, and whether other machines may connect.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address; port 0 means any free port.
    pub address: SocketAddr,
    /// Allows an address that other machines can reach, although there is neither TLS nor authentication.
    pub beyond_loopback: bool,
}

/// The reasons for which the address cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Other machines could connect.
    #[error("{0} can be reached from other machines")]
    Exposed(SocketAddr),
    /// Another program listens there.
    #[error("{0} is in use: another program listens there")]
    Taken(SocketAddr),
    /// The system refuses it for another reason.
    #[error("cannot listen on {address}: {source}")]
    Refused {
        /// The address that was requested.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

/// A socket that clients can connect to. Their requests are processed as soon as [`Listener::serve`] runs.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// Fails if the address is in use, or reachable from other machines without [`ServeOptions::beyond_loopback`].
    pub async fn bind(options: ServeOptions) -> Result<Self, BindError> {
        let ServeOptions { address, beyond_loopback } = options;
        if !address.ip().is_loopback() && !beyond_loopback {
            return Err(BindError::Exposed(address));
        }
        let refused = |source: io::Error| {
            if source.kind() == io::ErrorKind::AddrInUse {
                BindError::Taken(address)
            } else {
                BindError::Refused { address, source }
            }
        };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Listener { socket, address })
    }

    /// Returns the bound address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves clients until `stop` is cancelled. Then watches end, and unfinished responses get two seconds.
    pub async fn serve(self, server: ApiServer, stop: CancellationToken) {
        let check = OriginCheck { server, is_local: self.address.ip().is_loopback() };
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // the end first, then room for new ones
                () = stop.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = self.socket.accept(), if has_room => match accepted {
                    Ok((stream, _peer)) => {
                        connections.spawn(connection(stream, check.clone(), stop.clone()));
                    }
                    Err(_lost) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(self.socket);
        check.server.close_watches();
        // Connections that are still open by then are closed when the set is dropped.
        let all = async { while connections.join_next().await.is_some() {} };
        let _some_are_left = timeout(SHUTDOWN_TIMEOUT, all).await.is_err();
    }
}

async fn connection(stream: TcpStream, check: OriginCheck, stop: CancellationToken) {
    // Small responses must not wait for an acknowledgement. A socket that does not support this works as well.
    let _slower = stream.set_nodelay(true).is_err();
    let session: Arc<Mutex<Option<UpgradedSession>>> = Arc::default();
    let service = service_fn(|request| {
        let (check, session) = (check.clone(), Arc::clone(&session));
        async move {
            let mut response = check.answer(request).await;
            if let Some(accepted) = response.extensions_mut().remove::<UpgradedSession>() {
                *session.lock() = Some(accepted);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(BUFFER_BYTES);
    let served = builder.serve_connection(TokioIo::new(WriteTimeout::new(stream)), service);
    let mut served = pin!(served.with_upgrades());
    // The end of a connection is not reported here, because the client detects it.
    tokio::select! {
        biased; // no order is needed: the next turn detects the end
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
        _ended = served.as_mut() => {
            let accepted = session.lock().take();
            if let Some(work) = accepted.and_then(|it| it.take()) {
                tokio::select! {
                    biased; // the end first
                    () = stop.cancelled() => {}
                    () = work => {}
                }
            }
            return;
        }
    }
    let _ended = served.await.is_ok();
}

/// The server behind a check of the client's origin.
#[derive(Clone)]
struct OriginCheck {
    server: ApiServer,
    /// The server listens on the loopback interface: only names of this machine lead to it.
    is_local: bool,
}

impl OriginCheck {
    async fn answer(mut self, request: Request<Incoming>) -> Response<ResponseBody> {
        if !self.admits(request.headers()) {
            let message = "this server is not for web pages: use it as localhost or 127.0.0.1";
            return refuse(403, "Forbidden", message);
        }
        match timeout(RESPONSE_TIMEOUT, self.server.call(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_elapsed) => {
                let message = "Timeout: request did not complete within the allotted timeout";
                refuse(504, "Timeout", message)
            }
        }
    }

    /// Returns whether a request does not come from a web page. Browsers send `Origin` for requests across sites. The name server of a web
    /// page may resolve its name to this machine (DNS rebinding), which shows in `Host`.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|it| it.to_str().ok());
        let is_own = !self.is_local || host.is_none_or(is_this_machine);
        is_own && !headers.contains_key(ORIGIN)
    }
}

/// Returns whether a host, with or without a port, is a name of this machine that no name server can change.
fn is_this_machine(host: &str) -> bool {
    let is_port = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(it, _)| it);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// Makes a response of the socket itself, not of the API. The rest of the request is not read.
fn refuse(code: u16, reason: &'static str, message: &str) -> Response<ResponseBody> {
    let refusal = Refusal { code, reason: reason.into(), message: message.into(), details: None };
    let body = Full::new(Bytes::from(refusal.to_json().to_string())).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A stream that fails if the other side does not read what is written to it.
struct WriteTimeout<S> {
    stream: S,
    /// Runs while a write is pending.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    fn new(stream: S) -> Self {
        WriteTimeout { stream, limit: None }
    }

    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.limit = None;
            return written;
        }
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        limit.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.limited(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.limited(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
