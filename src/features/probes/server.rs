//! Serves the probes over HTTP/1.1, with limits on the connections, the requests and their times.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::routes::{LOG, Routes};

/// Maximum number of concurrent connections; more wait in the queue of the operating system. A kubelet and a Prometheus need two.
const CONNECTIONS_MAX: usize = 64;

/// Maximum number of bytes in the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Time limit for the head of a request; also closes idle connections.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// Time limit for open connections when the operator stops; the same as in Kopf.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The pause before the next attempt when the system cannot accept a connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {host}:{port}: {source}")]
pub struct BindError {
    /// The host as given.
    pub host: String,
    /// The port as given.
    pub port: u16,
    /// The error of the operating system.
    source: io::Error,
}

/// A bound socket. Requests are served while [`Listener::serve`] runs.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

impl Listener {
    /// Binds an address. An empty host means all addresses of this machine; port 0 means any free port.
    ///
    /// # Errors
    /// If the address is in use, or does not belong to this machine.
    pub async fn bind(host: &str, port: u16) -> Result<Self, BindError> {
        let bound = if host.is_empty() {
            // The first address accepts IPv6 and IPv4, where both exist.
            let all = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
            TcpListener::bind(&all.map(|it| SocketAddr::new(it, port))[..]).await
        } else {
            TcpListener::bind((host, port)).await
        };
        let refused = |source| BindError { host: host.to_owned(), port, source };
        Ok(Listener { socket: bound.map_err(refused)? })
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// If the operating system cannot report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves requests until `stop`; then waits for responses in progress, for at most 1 s.
    pub async fn serve(self, routes: Arc<Routes>, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // the end first, then ended connections, which make room for new ones
                () = stop.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = self.socket.accept(), if has_room => match accepted {
                    Ok((stream, peer)) => {
                        let routes = Arc::clone(&routes);
                        connections.spawn(connection(stream, peer.ip(), routes, stop.clone()));
                    }
                    Err(_lost) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(self.socket);
        let all = async { while connections.join_next().await.is_some() {} };
        // Connections that are still open then are closed when the set is dropped.
        let _some_are_left = timeout(END_WITHIN, all).await.is_err();
    }
}

async fn connection(stream: TcpStream, peer: IpAddr, routes: Arc<Routes>, stop: CancellationToken) {
    let service = service_fn(|request: Request<Incoming>| {
        let routes = Arc::clone(&routes);
        async move {
            let answer = match request.uri().path() {
                LOG => routes.levels(
                    request.method(),
                    request.uri(),
                    peer.to_canonical().is_loopback(),
                ),
                _ => routes.answer(request.method(), request.uri()).await,
            };
            // At debug level, because kubelets send a request every few seconds.
            tracing::debug!(
                target: "kopf.access",
                "{peer} \"{} {} {:?}\" {}",
                request.method(), request.uri(), request.version(), answer.status().as_u16()
            );
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_BYTES_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // The way a connection ends is up to the client, so errors are ignored.
    tokio::select! {
        biased; // the order makes no difference: the next poll notices the end
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
        _ended = served.as_mut() => return,
    }
    let _ended = served.await.is_ok();
}
