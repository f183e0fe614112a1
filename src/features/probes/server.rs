//! The probes on a socket: HTTP/1.1, with a bound on everything that a stranger could make long or many.

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

use super::routes::Routes;

/// Connections at a time; more wait in the queue of the system. A kubelet and a Prometheus need two.
const CONNECTIONS_MAX: usize = 64;

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// For the head of a request; idle connections are closed after this time.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// For connections when the operator stops; Kopf gives the same.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Before the next try when the system has no connection to give, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {host}:{port}: {source}")]
pub struct BindError {
    /// As it was given.
    pub host: String,
    /// As it was given.
    pub port: u16,
    /// What the system says.
    source: io::Error,
}

/// A socket that is answered as soon as [`Listener::serve`] runs.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

impl Listener {
    /// Takes an address; without a host, all addresses of this machine; port 0 is any free one.
    ///
    /// # Errors
    /// When it is not free, or not of this machine.
    pub async fn bind(host: &str, port: u16) -> Result<Self, BindError> {
        let bound = if host.is_empty() {
            // The first takes both kinds of addresses, where there are both.
            let all = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
            TcpListener::bind(&all.map(|it| SocketAddr::new(it, port))[..]).await
        } else {
            TcpListener::bind((host, port)).await
        };
        let refused = |source| BindError { host: host.to_owned(), port, source };
        Ok(Listener { socket: bound.map_err(refused)? })
    }

    /// Where it is.
    ///
    /// # Errors
    /// When the system does not know.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers until `stop`; then answers under way get a moment.
    pub async fn serve(self, routes: Arc<Routes>, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // the end first, then room for new ones
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
        // Who has not ended by then is cut off when the set is dropped.
        let _some_are_left = timeout(END_WITHIN, all).await.is_err();
    }
}

async fn connection(stream: TcpStream, peer: IpAddr, routes: Arc<Routes>, stop: CancellationToken) {
    let service = service_fn(|request: Request<Incoming>| {
        let routes = Arc::clone(&routes);
        async move {
            let answer = routes.answer(request.method(), request.uri()).await;
            // Kubelets ask every few seconds: whoever wants to see that looks closer.
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
    // How a connection ends is the client's business: there is nobody to tell.
    tokio::select! {
        biased; // no order is needed: the end is noticed by the next turn
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
        _ended = served.as_mut() => return,
    }
    let _ended = served.await.is_ok();
}
