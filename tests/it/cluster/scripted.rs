//! A cluster with scripted responses.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;

/// One scripted response.
pub(crate) enum Reply {
    /// No response: the connection fails with this message.
    Refuse(&'static str),
    /// The request is not sent: there is no connection.
    Unreachable,
    /// No response, and the connection stays open.
    Never,
    /// A status, headers and a complete body.
    Whole(u16, Vec<(&'static str, String)>, Value),
    /// A success whose body arrives in pieces.
    Pieces(Vec<(Duration, Chunk)>),
}

/// A piece of a body.
pub(crate) enum Chunk {
    /// Some bytes.
    Data(String),
    /// The connection breaks.
    Break,
    /// Nothing more arrives, and the connection stays open.
    Hang,
}

impl Reply {
    /// Returns a success with this body.
    pub(crate) fn ok(body: Value) -> Self {
        Reply::Whole(200, Vec::new(), body)
    }

    /// Returns a refusal in Kubernetes' format.
    pub(crate) fn status(code: u16) -> Self {
        Reply::Whole(code, Vec::new(), serde_json::json!({"kind": "Status", "code": code}))
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Returns a client whose requests get these responses.
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
        Reply::Unreachable => return Err(io::ErrorKind::ConnectionRefused.into()),
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
