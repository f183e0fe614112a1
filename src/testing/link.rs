//! A connection to the embedded API server that fails on demand.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kopf_apiserver::{ApiServer, ResponseBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::Notify, time};
use tower::Service as _;

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// The request passes, and the server responds.
    Pass,
    /// The server receives the request after this time.
    Delay(Duration),
    /// The connection responds with this status; the server does not receive the request.
    Refuse(u16),
    /// The server does not receive the request, and no response arrives.
    Hang,
    /// The server handles the request, but no response arrives.
    LoseResponse,
}

/// Changes a part of a response.
type ResponseEdit = Arc<dyn Fn(Bytes) -> Bytes + Send + Sync>;
type FaultRule = Arc<dyn Fn(&Request<Body>) -> Fate + Send + Sync>;

/// A connection. Clones share it.
#[derive(Clone)]
pub struct Link {
    /// `None`: connections are refused.
    server: Arc<Mutex<Option<ApiServer>>>,
    rule: Arc<Mutex<FaultRule>>,
    /// Changes the responses that pass, if set.
    edit: Arc<Mutex<Option<ResponseEdit>>>,
    /// The delay of lines of watches.
    lag: Arc<Mutex<Duration>>,
    lost: Arc<Notify>,
}

impl Link {
    /// Connects to a server. All requests pass.
    pub fn new(server: &ApiServer) -> Self {
        let server = Arc::new(Mutex::new(Some(server.clone())));
        let rule: FaultRule = Arc::new(|_| Fate::Pass);
        Link {
            server,
            rule: Arc::new(Mutex::new(rule)),
            edit: Arc::default(),
            lag: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// Sets a function that decides the fate of later requests.
    pub fn set_rule(&self, rule: impl Fn(&Request<Body>) -> Fate + Send + Sync + 'static) {
        *self.rule.lock() = Arc::new(rule);
    }

    /// Sets the fate of all later requests.
    pub fn set(&self, fate: Fate) {
        self.set_rule(move |_| fate);
    }

    /// Sets a function that changes all later responses: whole bodies, and lines of watches.
    pub fn edit(&self, edit: impl Fn(Bytes) -> Bytes + Send + Sync + 'static) {
        *self.edit.lock() = Some(Arc::new(edit));
    }

    /// Delays each later line of a watch by this time.
    pub fn lag(&self, lag: Duration) {
        *self.lag.lock() = lag;
    }

    /// Replaces the server; without one, connections are refused. Returns the previous server.
    pub fn replace(&self, server: Option<ApiServer>) -> Option<ApiServer> {
        std::mem::replace(&mut self.server.lock(), server)
    }

    /// Returns the server. Panics if there is none.
    pub fn server(&self) -> ApiServer {
        self.server.lock().clone().expect("a server")
    }

    /// Waits until a request has received no response.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Returns a client over this connection, with this default namespace.
    pub fn client(&self, namespace: &str) -> kube::Client {
        let link = self.clone();
        let send = tower::service_fn(move |request| link.clone().send(request));
        kube::Client::new(send, namespace)
    }

    /// Sends a request, unless its fate is another one.
    pub async fn send(self, request: Request<Body>) -> Result<Response<ResponseBody>, io::Error> {
        let rule = Arc::clone(&self.rule.lock());
        let server = self.server.lock().clone();
        let mut server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
        let fate = rule(&request);
        match fate {
            Fate::Refuse(status) => return Ok(refusal(status)),
            Fate::Delay(time) => time::sleep(time).await,
            Fate::Pass | Fate::Hang | Fate::LoseResponse => {}
        }
        let is_watch = request.uri().query().is_some_and(|it| it.contains("watch=true"));
        if fate != Fate::Hang {
            let Ok(response) = server.call(request).await;
            if fate != Fate::LoseResponse {
                return Ok(response.map(|it| self.passed(it, is_watch)));
            }
        }
        self.lost.notify_one();
        std::future::pending().await
    }
}

impl Link {
    /// Returns the body as it arrives: changed, and delayed.
    fn passed(self, body: ResponseBody, is_watch: bool) -> ResponseBody {
        let frames = BodyStream::new(body).then(move |frame| {
            let (edit, lag) = (self.edit.lock().clone(), *self.lag.lock());
            async move {
                if is_watch && !lag.is_zero() {
                    time::sleep(lag).await;
                }
                frame.map(|it| {
                    it.map_data(|data| match edit {
                        Some(edit) => edit(data),
                        None => data,
                    })
                })
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// Returns a refusal, whose message is part of recorded expectations.
fn refusal(status: u16) -> Response<ResponseBody> {
    let body = json!({ "kind": "Status", "code": status, "message": "not through this gate" });
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Response::builder().status(status).body(body).expect("a valid response")
}
