//! Runs a command in a container: `exec` of a pod, over a WebSocket with a channel in the first byte of each message.
//!
//! Does not use the client of `kube`, which hides the response of a server that refuses the upgrade: users must see the missing rule.

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Sink, SinkExt as _, Stream, StreamExt as _, future};
use http::{
    HeaderMap, HeaderName, Method,
    header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role, WebSocketConfig},
    },
};

use super::{
    failure::RequestFailure, reason::one_line, request::KubeRequest, script_requests,
    transport::Transport,
};
use crate::ports::{ApiError, ContainerCommand, Executed};

/// The fifth version of the protocol, the first one in which a client can end the input.
const V5: &str = "v5.channel.k8s.io";
const ANY: &str = "v5.channel.k8s.io, v4.channel.k8s.io";

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// The first byte of a message that closes the channel in its second byte.
const CLOSE: u8 = 255;

/// Maximum number of bytes of the input in one message; servers use the same size.
const PIECE_BYTES: usize = 32 << 10;
/// Maximum size of a message in bytes; servers send pieces of 32 KiB.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const REASON_CHARS: usize = 1024;

/// Runs a command. The error of a command that cannot be started is that of the container runtime.
pub(super) async fn exec(
    transport: &Transport,
    execution: ContainerCommand,
) -> Result<Executed, ApiError> {
    let ContainerCommand { demand, stdin, output_max } = execution;
    let settings = transport.settings();
    let key = generate_key();
    let protocols = if stdin.is_some() { V5 } else { ANY };
    let request = KubeRequest {
        method: Method::GET,
        websocket: Some((&key, protocols)),
        ..script_requests::request(&demand)
    };
    let response = transport.upgrade(&request, &settings.networking).await?;
    let fail = |it: RequestFailure| transport.fail(it, &request.action);
    if !is_accepted(response.headers(), &key, protocols) {
        let problem = "the server, or a proxy before it, speaks another protocol for commands";
        return Err(fail(RequestFailure::Malformed(problem.into())));
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|it| fail(RequestFailure::Disconnected(it.to_string())))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Client, Some(config)).await;
    let (outgoing, incoming) = socket.split();
    let sending = async {
        // A command may end before it has read its input.
        let _unread = send(outgoing, stdin).await.is_err();
        future::pending::<()>().await;
    };
    tokio::select! {
        biased; // the end first
        ended = receive(incoming, output_max) => ended.map_err(fail),
        () = sending => Err(fail(RequestFailure::Disconnected("the connection has ended".into()))),
    }
}

/// Returns whether the server has accepted this handshake.
fn is_accepted(headers: &HeaderMap, key: &str, protocols: &str) -> bool {
    let header = |name: HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    let accepted: Option<&str> = header(SEC_WEBSOCKET_ACCEPT);
    accepted == Some(&derive_accept_key(key.as_bytes()))
        && header(SEC_WEBSOCKET_PROTOCOL).is_some_and(|it| protocols.contains(it))
}

/// Sends the input and its end.
async fn send<S: Sink<Message> + Unpin>(
    mut outgoing: S,
    stdin: Option<Bytes>,
) -> Result<S, S::Error> {
    let Some(stdin) = stdin else { return Ok(outgoing) };
    for piece in stdin.chunks(PIECE_BYTES) {
        let mut message = BytesMut::with_capacity(piece.len() + 1);
        message.put_u8(STDIN);
        message.put_slice(piece);
        outgoing.send(Message::Binary(message.freeze())).await?;
    }
    outgoing.send(Message::Binary(Bytes::from_static(&[CLOSE, STDIN]))).await?;
    Ok(outgoing)
}

/// Collects the output of a command, until the server reports its exit status.
async fn receive<E: std::fmt::Display>(
    mut incoming: impl Stream<Item = Result<Message, E>> + Unpin,
    output_max: usize,
) -> Result<Executed, RequestFailure> {
    let mut executed = Executed::default();
    while let Some(message) = incoming.next().await {
        let message = message.map_err(|it| RequestFailure::Disconnected(it.to_string()))?;
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            Message::Close(_) => break,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        match data.split_first() {
            Some((&STDOUT, bytes)) => executed.stdout.extend_from_slice(bytes),
            Some((&STDERR, bytes)) => executed.stderr.extend_from_slice(bytes),
            Some((&ERROR, status)) => {
                executed.code = code(status)?;
                return Ok(executed);
            }
            Some(_) | None => {}
        }
        if executed.stdout.len() + executed.stderr.len() > output_max {
            let problem = format!(
                "the command writes more than {output_max} bytes (settings.sandbox.string_size)"
            );
            return Err(RequestFailure::Malformed(problem));
        }
    }
    Err(RequestFailure::Disconnected("the connection has ended before the command".into()))
}

/// Parses the exit status of a command.
fn code(status: &[u8]) -> Result<i32, RequestFailure> {
    let malformed = |it: &str| RequestFailure::Malformed(one_line(it, REASON_CHARS));
    let status: Value = serde_json::from_slice(status).map_err(|it| malformed(&it.to_string()))?;
    if status.get("status").and_then(Value::as_str) == Some("Success") {
        return Ok(0);
    }
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let cause = causes.into_iter().flatten().find(|it| it["reason"] == "ExitCode");
    let code = cause.and_then(|it| it.get("message")?.as_str()?.parse().ok());
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    code.ok_or_else(|| malformed(&format!("the command could not be run: {message}")))
}
