//! A proxy between the operator and the embedded API server: a socket that delays, refuses and loses requests, and holds back lines
//! of watches.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kopf_apiserver::{ApiServer, ResponseBody};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

/// A request, and the status of its response.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) method: String,
    /// The path with the query.
    pub(super) path: String,
    /// The body; null if there is none.
    pub(super) body: Value,
    /// `None` as long as there is no response.
    pub(super) status: Option<u16>,
}

/// The fate of a request.
#[derive(Clone)]
pub(super) enum Fate {
    /// The server responds at once.
    Pass,
    /// The server receives it after this time.
    Delay(Duration),
    /// The server receives it when the gate opens.
    Hold(Gate),
    /// The server does not receive it, and no response arrives.
    Hang,
    /// The server handles it, and the connection closes without a response.
    LoseResponse,
    /// The server does not receive it; the response has this status and body.
    Refuse(u16, Value),
    /// The server does not receive it; the response has status 429 and a `Retry-After` of this many seconds.
    Later(u32),
}

/// The fate of a line of a watch.
pub(super) enum Line {
    /// It is delivered at once.
    Pass,
    /// It is delivered when the gate opens, and so are the lines after it.
    Hold(Gate),
    /// This line is delivered first.
    After(Value),
}

/// Opens once, for everything that waits.
#[derive(Clone)]
pub(super) struct Gate(Arc<watch::Sender<bool>>);

type Rule = Arc<dyn Fn(&Asked) -> Fate + Send + Sync>;
type LineRule = Arc<dyn Fn(&Asked, &Value) -> Line + Send + Sync>;

/// A socket in front of a server. Clones share it.
#[derive(Clone)]
pub(super) struct Front(Arc<Shared>);

struct Shared {
    server: ApiServer,
    address: SocketAddr,
    rule: Mutex<Rule>,
    lines: Mutex<LineRule>,
    asked: Mutex<Vec<Asked>>,
    tls: Mutex<Option<TlsAcceptor>>,
    /// The task that accepts connections.
    listener: Mutex<JoinSet<()>>,
    connections: Mutex<JoinSet<()>>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    pub(super) fn open(&self) {
        self.0.send_replace(true);
    }

    async fn opened(&self) {
        // The sender lives as long as this value.
        let _is_open = self.0.subscribe().wait_for(|it| *it).await.is_ok();
    }
}

impl Asked {
    /// Returns whether it has this method, and this part in its path or its query.
    pub(super) fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.path.contains(part)
    }

    /// Returns whether it starts a watch of this resource.
    pub(super) fn watches(&self, part: &str) -> bool {
        self.is("GET", part) && self.path.contains("watch=true")
    }

    /// Returns whether it lists this resource.
    pub(super) fn lists(&self, plural: &str) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        self.method == "GET" && path.ends_with(plural) && !self.path.contains("watch=true")
    }

    /// Returns whether the server has accepted it.
    pub(super) fn is_accepted(&self) -> bool {
        self.status.is_some_and(|it| it < 300)
    }
}

impl Front {
    /// Listens on a free port. The tasks end with the runtime of the test.
    pub(super) async fn new(server: &ApiServer) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let shared = Shared {
            server: server.clone(),
            address: socket.local_addr().expect("an address"),
            rule: Mutex::new(Arc::new(|_| Fate::Pass)),
            lines: Mutex::new(Arc::new(|_, _| Line::Pass)),
            asked: Mutex::default(),
            tls: Mutex::default(),
            listener: Mutex::default(),
            connections: Mutex::default(),
        };
        Front(Arc::new(shared)).listening(socket)
    }

    fn listening(self, socket: TcpListener) -> Self {
        let front = self.clone();
        self.0.listener.lock().spawn(async move {
            while let Ok((stream, _peer)) = socket.accept().await {
                let _slower = stream.set_nodelay(true).is_err();
                let (front, tls) = (front.clone(), front.0.tls.lock().clone());
                front.clone().0.connections.lock().spawn(async move {
                    match tls {
                        None => front.connection(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                front.connection(stream).await;
                            }
                        }
                    }
                });
            }
        });
        self
    }

    async fn connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let service = service_fn(|request| self.clone().respond(request));
        // The client detects the end of the connection.
        let _ended =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.is_ok();
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Sets a function that decides the fate of later requests.
    pub(super) fn set_rule(&self, rule: impl Fn(&Asked) -> Fate + Send + Sync + 'static) {
        *self.0.rule.lock() = Arc::new(rule);
    }

    /// Sets the fate of later requests that match; all others pass.
    pub(super) fn set_fate(
        &self,
        fate: Fate,
        fits: impl Fn(&Asked) -> bool + Send + Sync + 'static,
    ) {
        self.set_rule(move |it| if fits(it) { fate.clone() } else { Fate::Pass });
    }

    /// Lets all later requests pass.
    pub(super) fn pass(&self) {
        self.set_rule(|_| Fate::Pass);
    }

    /// Sets a function that decides the fate of later lines of watches.
    pub(super) fn set_lines(&self, rule: impl Fn(&Asked, &Value) -> Line + Send + Sync + 'static) {
        *self.0.lines.lock() = Arc::new(rule);
    }

    /// Makes later connections use TLS.
    pub(super) fn set_tls(&self, acceptor: TlsAcceptor) {
        *self.0.tls.lock() = Some(acceptor);
    }

    /// Ends all connections.
    pub(super) fn cut(&self) {
        self.0.connections.lock().abort_all();
    }

    /// Returns the requests so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().clone()
    }

    /// Returns how many of them match.
    pub(super) fn count(&self, fits: impl Fn(&Asked) -> bool) -> usize {
        self.0.asked.lock().iter().filter(|it| fits(it)).count()
    }

    async fn respond(self, request: Request<Incoming>) -> io::Result<Response<ResponseBody>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let asked = Asked {
            at: Instant::now(),
            method: parts.method.to_string(),
            path: parts.uri.to_string(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            status: None,
        };
        let number = {
            let mut log = self.0.asked.lock();
            log.push(asked.clone());
            log.len() - 1
        };
        let rule = Arc::clone(&self.0.rule.lock());
        let fate = rule(&asked);
        match &fate {
            Fate::Delay(time) => sleep(*time).await,
            Fate::Hold(gate) => gate.opened().await,
            Fate::Hang => std::future::pending().await,
            Fate::Pass | Fate::LoseResponse | Fate::Refuse(..) | Fate::Later(_) => {}
        }
        let response = match fate {
            Fate::Refuse(status, body) => refusal(status, &body),
            Fate::Later(seconds) => {
                let mut response =
                    refusal(429, &status(429, "TooManyRequests", "too many requests"));
                response.headers_mut().insert("retry-after", seconds.into());
                response
            }
            Fate::Pass | Fate::Delay(_) | Fate::Hold(_) | Fate::Hang | Fate::LoseResponse => {
                let Ok(response) =
                    self.0.server.clone().call(Request::from_parts(parts, Full::new(body))).await;
                if matches!(fate, Fate::LoseResponse) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                response
            }
        };
        if let Some(logged) = self.0.asked.lock().get_mut(number) {
            logged.status = Some(response.status().as_u16());
        }
        let is_watch = asked.path.contains("watch=true");
        Ok(if is_watch { response.map(|it| self.watched(asked, it)) } else { response })
    }

    /// Returns the lines of a watch as they pass.
    fn watched(self, asked: Asked, body: ResponseBody) -> ResponseBody {
        let asked = Arc::new(asked);
        let frames = BodyStream::new(body).then(move |frame| {
            let (rule, asked) = (Arc::clone(&self.0.lines.lock()), Arc::clone(&asked));
            async move {
                let Ok(frame) = frame;
                let Ok(data) = frame.into_data() else { return Ok(empty()) };
                let line = serde_json::from_slice(&data).unwrap_or_default();
                match rule(&asked, &line) {
                    Line::Pass => {}
                    Line::Hold(gate) => gate.opened().await,
                    Line::After(first) => {
                        let both = [format!("{first}\n").as_bytes(), &data].concat();
                        return Ok(hyper::body::Frame::data(Bytes::from(both)));
                    }
                }
                Ok::<_, Infallible>(hyper::body::Frame::data(data))
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

fn empty() -> hyper::body::Frame<Bytes> {
    hyper::body::Frame::data(Bytes::new())
}

/// Returns an error with the message of the real server.
pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

fn refusal(code: u16, body: &Value) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(body).expect("a valid response")
}
