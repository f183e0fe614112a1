//! `port-forward`: any number of connections inside of one WebSocket.
//!
//! Each connection has two streams: one for its data, and one on which the server reports an error. Both have the number of the
//! connection in their headers.

use std::collections::BTreeMap;

use futures::{SinkExt as _, Stream, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    sync::mpsc::{self, Receiver, Sender},
};
use tokio_tungstenite::tungstenite::{self, Message};

use super::{
    Forward, PodTarget, PortConnection,
    spdy::{Error, FrameReader, FrameWriter, SpdyFrame, headers::Headers},
    upgrade::{Handshake, Socket, farewell},
};
use crate::{refusal::Refusal, reply::Reply, request::ApiRequest};

const PROTOCOLS: &[&str] = &["SPDY/3.1+portforward.k8s.io"];

/// The buffer of one direction of one connection; also the maximum size of a piece of data.
const BUFFER_BYTES: usize = 32 << 10;
/// Limit of messages that wait to be sent.
const MESSAGES_MAX: usize = 16;
/// Limit of simultaneous connections.
const CONNECTIONS_MAX: usize = 256;

type Work = BoxFuture<'static, ()>;

pub(super) fn answer(
    request: &ApiRequest,
    target: PodTarget,
    forward: Forward,
) -> Result<Reply, Refusal> {
    let handshake = Handshake::of(request, PROTOCOLS)?;
    let upgrade = handshake.accept(move |socket, _protocol| serve(socket, target, forward));
    Ok(Reply::Upgrade(Box::new(upgrade)))
}

/// Serves connections until the client disconnects.
async fn serve(socket: Socket, target: PodTarget, forward: Forward) {
    let (mut outgoing, incoming) = socket.split();
    let (messages, mut queue) = mpsc::channel::<Vec<u8>>(MESSAGES_MAX);
    let (starts, started) = mpsc::channel::<Work>(MESSAGES_MAX);
    let send = async move {
        while let Some(message) = queue.recv().await {
            if outgoing.send(Message::binary(message)).await.is_err() {
                return;
            }
        }
        let _gone = outgoing.send(farewell()).await.is_err();
    };
    let session = ForwardSession {
        target,
        forward,
        messages,
        starts,
        writer: FrameWriter::new(),
        streams: BTreeMap::new(),
    };
    // Connections end with the session, because their data is no longer read.
    tokio::select! {
        _ended = session.receive(incoming) => {}
        _closed = async { tokio::join!(send, run(started)) } => {}
    }
}

/// Runs all connections of a session concurrently.
async fn run(mut started: Receiver<Work>) {
    let mut running = FuturesUnordered::new();
    loop {
        let has_room = running.len() < CONNECTIONS_MAX;
        tokio::select! {
            Some(()) = running.next() => {}
            start = started.recv(), if has_room => match start {
                Some(work) => running.push(work),
                None => return,
            },
        }
    }
}

/// The state of the reader of a session.
struct ForwardSession {
    target: PodTarget,
    forward: Forward,
    /// Messages to the client.
    messages: Sender<Vec<u8>>,
    /// New connections to run.
    starts: Sender<Work>,
    writer: FrameWriter,
    /// Open streams of the client.
    streams: BTreeMap<u32, Side>,
}

/// One stream of a connection.
enum Side {
    /// The error stream of the connection with this number; the client sends nothing on it.
    Error { connection: String },
    /// The data stream: received bytes are written to the connection.
    Data(WriteHalf<DuplexStream>),
}

/// The reasons for which a session ends.
enum ForwardEnd {
    /// The client has disconnected.
    Gone,
    /// The client has violated the protocol.
    Protocol(Error),
}

impl From<Error> for ForwardEnd {
    fn from(error: Error) -> Self {
        ForwardEnd::Protocol(error)
    }
}

impl ForwardSession {
    async fn receive(
        mut self,
        mut incoming: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    ) {
        let mut frames = FrameReader::default();
        while let Some(Ok(message)) = incoming.next().await {
            if matches!(message, Message::Close(_)) {
                return;
            }
            if !message.is_binary() {
                continue;
            }
            frames.add(&message.into_data());
            loop {
                let taken = match frames.next() {
                    Ok(None) => break,
                    Ok(Some(frame)) => self.take(frame).await,
                    Err(error) => Err(error.into()),
                };
                match taken {
                    Ok(()) => {}
                    Err(ForwardEnd::Gone) => return,
                    Err(ForwardEnd::Protocol(error)) => {
                        tracing::debug!("port-forward: the client is disconnected: {error}");
                        return;
                    }
                }
            }
        }
    }

    async fn take(&mut self, frame: SpdyFrame) -> Result<(), ForwardEnd> {
        match frame {
            SpdyFrame::Open { stream, headers, last: _ } => self.open(stream, &headers).await,
            SpdyFrame::Data { stream, bytes, last } => {
                if let Some(Side::Data(open)) = self.streams.get_mut(&stream) {
                    // A closed connection accepts no more data.
                    let _over = open.write_all(&bytes).await.is_err();
                    if last {
                        let _over = open.shutdown().await.is_err();
                        self.streams.remove(&stream);
                    }
                }
                Ok(())
            }
            SpdyFrame::Reset { stream } => {
                if let Some(Side::Data(mut open)) = self.streams.remove(&stream) {
                    let _over = open.shutdown().await.is_err();
                }
                Ok(())
            }
            SpdyFrame::Ping { id } => self.send(FrameWriter::pong(id)).await,
            SpdyFrame::GoAway => Err(ForwardEnd::Gone),
            SpdyFrame::Other => Ok(()),
        }
    }

    async fn open(&mut self, stream: u32, headers: &Headers) -> Result<(), ForwardEnd> {
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let reply = self.writer.reply(stream)?;
        self.send(reply).await?;
        let connection = header("requestid");
        if header("streamtype") == "error" {
            self.streams.insert(stream, Side::Error { connection });
            return Ok(());
        }
        let is_pair =
            |side: &Side| matches!(side, Side::Error { connection: it } if *it == connection);
        let errors = self.streams.iter().find(|(_, side)| is_pair(side)).map(|(id, _)| *id);
        // Clients open the error stream first.
        let Some(errors) = errors else { return Err(ForwardEnd::Protocol(Error::Headers)) };
        self.streams.remove(&errors);
        let (ours, theirs) = duplex(BUFFER_BYTES);
        let (from, into) = split(ours);
        self.streams.insert(stream, Side::Data(into));
        let served = match header("port").parse() {
            Ok(port) => {
                let target = self.target.clone();
                (self.forward)(PortConnection { target, port, stream: theirs })
            }
            Err(_no_number) => {
                let why = format!("not a port: '{}'", header("port"));
                Box::pin(async move { Err(why) })
            }
        };
        let messages = self.messages.clone();
        let work = Box::pin(connect(served, from, (stream, errors), messages));
        self.starts.send(work).await.map_err(|_closed| ForwardEnd::Gone)
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), ForwardEnd> {
        self.messages.send(message).await.map_err(|_closed| ForwardEnd::Gone)
    }
}

/// Serves one connection, and reports its end to the client.
async fn connect(
    served: BoxFuture<'static, Result<(), String>>,
    mut from: ReadHalf<DuplexStream>,
    (data, errors): (u32, u32),
    messages: Sender<Vec<u8>>,
) {
    let copy = async {
        let mut piece = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            let bytes = piece.get(..count).unwrap_or_default();
            if messages.send(FrameWriter::data(data, bytes, false)).await.is_err() {
                return;
            }
        }
    };
    let (served, ()) = tokio::join!(served, copy);
    let why = served.err().unwrap_or_default();
    for (stream, bytes) in [(data, ""), (errors, why.as_str())] {
        let last = FrameWriter::data(stream, bytes.as_bytes(), true);
        // The client has disconnected.
        let _gone = messages.send(last).await.is_err();
    }
}
