//! The server on a socket: HTTP/1.1 for clients outside of this process, such as `kubectl`.
//!
//! One task per connection, all of them owned here. Everything has a bound: connections, headers, the time for a request, and
//! the time that a client may leave a part of an answer unread. A watch that has nothing to say is not bounded in time.
//!
//! Without TLS there is no login: kubectl does not send a token over plain HTTP. Who can connect is let in, as by `kubectl proxy`,
//! except for browsers: a page of the internet could use this server behind the back of its reader.

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

use crate::{ApiServer, Refusal, ResponseBody, streaming::upgrade::Session};

/// Connections at a time; more wait in the queue of the system. A client of Kubernetes opens one per watch at most.
const CONNECTIONS_MAX: usize = 512;

/// The longest head of a request, and the piece of a body that is read at once.
const BUFFER_BYTES: usize = 128 << 10;

/// For the head of a request, also of the first one after a pause: idle connections are closed after this time.
const HEAD_WITHIN: Duration = Duration::from_mins(2);

/// For a request until its answer begins; the real server has the same. Webhooks that it calls get 30 seconds at most.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// For a client to take what was written. An answer is whole in memory until then.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// For the answers under way when the server ends.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Before the next try when the system has no connection to give, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where to listen, and for whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Port 0 is any free one.
    pub address: SocketAddr,
    /// Whether an address that others can reach is all right. There is neither TLS nor a login.
    pub beyond_loopback: bool,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Other machines could connect.
    #[error("{0} can be reached from other machines")]
    Exposed(SocketAddr),
    /// Another program listens there.
    #[error("{0} is taken: another program listens there")]
    Taken(SocketAddr),
    /// The system says no for another reason.
    #[error("cannot listen on {address}: {source}")]
    Refused {
        /// The wanted address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// A socket that clients can connect to. They are answered as soon as [`Listener::serve`] runs.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes the address.
    ///
    /// # Errors
    /// When it is not free, or further away than allowed.
    pub async fn bind(options: Options) -> Result<Self, BindError> {
        let Options { address, beyond_loopback } = options;
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

    /// Where it is; the port is a real one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As clients name it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers clients until `stop`. Then watches end, and answers under way get a moment.
    pub async fn serve(self, server: ApiServer, stop: CancellationToken) {
        let gate = Gate { server, is_local: self.address.ip().is_loopback() };
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // the end first, then room for new ones
                () = stop.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = self.socket.accept(), if has_room => match accepted {
                    Ok((stream, _peer)) => {
                        connections.spawn(connection(stream, gate.clone(), stop.clone()));
                    }
                    Err(_lost) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(self.socket);
        gate.server.close_watches();
        // Who has not ended by then is cut off when the set is dropped.
        let all = async { while connections.join_next().await.is_some() {} };
        let _some_are_left = timeout(END_WITHIN, all).await.is_err();
    }
}

async fn connection(stream: TcpStream, gate: Gate, stop: CancellationToken) {
    // Small answers must not wait for an acknowledgement; a socket that cannot be set so works as well.
    let _slower = stream.set_nodelay(true).is_err();
    let session: Arc<Mutex<Option<Session>>> = Arc::default();
    let service = service_fn(|request| {
        let (gate, session) = (gate.clone(), Arc::clone(&session));
        async move {
            let mut response = gate.answer(request).await;
            if let Some(accepted) = response.extensions_mut().remove::<Session>() {
                *session.lock() = Some(accepted);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(BUFFER_BYTES);
    let served = builder.serve_connection(TokioIo::new(Taken::new(stream)), service);
    let mut served = pin!(served.with_upgrades());
    // How a connection ends is the client's business: there is nobody to tell.
    tokio::select! {
        biased; // no order is needed: the end is noticed by the next turn
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

/// The server behind a check of who asks.
#[derive(Clone)]
struct Gate {
    server: ApiServer,
    /// Whether it is reached by names of this machine only.
    is_local: bool,
}

impl Gate {
    async fn answer(mut self, request: Request<Incoming>) -> Response<ResponseBody> {
        if !self.admits(request.headers()) {
            let message = "this server is not for web pages: use it as localhost or 127.0.0.1";
            return refuse(403, "Forbidden", message);
        }
        match timeout(ANSWER_WITHIN, self.server.call(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_elapsed) => {
                let message = "Timeout: request did not complete within the allotted timeout";
                refuse(504, "Timeout", message)
            }
        }
    }

    /// Browsers tell by `Origin` that a page asks. A page that reads its own site can be led here by its name server, which
    /// shows in `Host`.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|it| it.to_str().ok());
        let is_own = !self.is_local || host.is_none_or(is_this_machine);
        is_own && !headers.contains_key(ORIGIN)
    }
}

/// Whether a host, perhaps with a port, is a name of this machine that no name server can change.
fn is_this_machine(host: &str) -> bool {
    let is_port = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(it, _)| it);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// An answer of this file, not of the server. The rest of the request is not read.
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

/// A stream that fails when the other side does not take what is written to it.
struct Taken<S> {
    stream: S,
    /// Runs while something waits to be written.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<S> Taken<S> {
    fn new(stream: S) -> Self {
        Taken { stream, limit: None }
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
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(TAKEN_WITHIN)));
        limit.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
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
