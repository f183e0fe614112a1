//! A cluster that answers by script, and a log that remembers.

use std::{
    fmt, io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Dispatch, Event, Level, Subscriber, field::Visit, subscriber::DefaultGuard};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _};

/// One scripted answer.
pub(crate) enum Reply {
    /// No answer: the connection fails with this text.
    Refuse(&'static str),
    /// No answer at all.
    Never,
    /// A status, headers and a whole body.
    Whole(u16, Vec<(&'static str, String)>, Value),
    /// A success whose body comes piece by piece.
    Pieces(Vec<(Duration, Chunk)>),
}

/// A piece of a body.
pub(crate) enum Chunk {
    /// Some bytes.
    Data(String),
    /// The connection breaks.
    Break,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

impl Reply {
    /// A success with this body.
    pub(crate) fn ok(body: Value) -> Self {
        Reply::Whole(200, Vec::new(), body)
    }

    /// A refusal as Kubernetes writes it.
    pub(crate) fn status(code: u16) -> Self {
        Reply::Whole(code, Vec::new(), serde_json::json!({"kind": "Status", "code": code}))
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A client whose requests are answered by this script.
pub(crate) fn scripted(
    script: impl FnMut(&Request<Body>) -> Reply + Send + 'static,
) -> kube::Client {
    let script = Arc::new(Mutex::new(script));
    let service = tower::service_fn(move |request: Request<Body>| {
        let script = Arc::clone(&script);
        async move {
            let reply = (script.lock())(&request);
            answer(reply).await
        }
    });
    kube::Client::new(service, "default")
}

async fn answer(reply: Reply) -> Result<Answer, io::Error> {
    let pieces = match reply {
        Reply::Refuse(text) => return Err(io::Error::other(text)),
        Reply::Never => return futures::future::pending().await,
        Reply::Whole(status, headers, body) => {
            let mut builder = Response::builder().status(status);
            for (name, value) in headers {
                builder = builder.header(name, value);
            }
            let body = http_body_util::Full::new(Bytes::from(body.to_string()));
            let body = body.map_err(|never| match never {}).boxed_unsync();
            return Ok(builder.body(body).expect("a scripted answer is valid"));
        }
        Reply::Pieces(pieces) => pieces,
    };
    let frames = stream::iter(pieces).then(|(pause, piece)| async move {
        tokio::time::sleep(pause).await;
        match piece {
            Chunk::Data(text) => Ok(Frame::data(Bytes::from(text))),
            Chunk::Break => Err(io::Error::other("the connection broke")),
            Chunk::Hang => futures::future::pending().await,
        }
    });
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

/// Log lines: seconds since the start, level, text.
#[derive(Clone)]
pub(crate) struct Log {
    target: &'static str,
    start: Instant,
    lines: Arc<Mutex<Vec<(f64, String, String)>>>,
}

impl Log {
    /// What was logged so far.
    pub(crate) fn lines(&self) -> Vec<(f64, String, String)> {
        self.lines.lock().clone()
    }
}

impl Log {
    /// Whether a line has this text in it.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.lines.lock().iter().any(|it| it.2.contains(text))
    }
}

/// Remembers what this thread logs for a target at debug level and above, while the guard lives.
pub(crate) fn record_logs(target: &'static str) -> (Log, DefaultGuard) {
    /// While there is only one subscriber, `tracing` asks that of the thread which comes to a line first whether anybody
    /// wants the line, for ever: with another test on another thread, that may be none. So there are always two.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    let log = Log { target, start: Instant::now(), lines: Arc::default() };
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(log.clone()));
    (log, guard)
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() != self.target || *metadata.level() == Level::TRACE {
            return;
        }
        let mut text = Message::default();
        event.record(&mut text);
        let level = match metadata.level().as_str() {
            "WARN" => "WARNING",
            other => other,
        };
        let line = (self.start.elapsed().as_secs_f64(), level.to_owned(), text.0);
        self.lines.lock().push(line);
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
