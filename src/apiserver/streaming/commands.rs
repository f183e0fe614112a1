//! `exec` and `attach`: the channels of a process as messages of a WebSocket.
//!
//! The first byte of each message is its channel. The last message of the server, on the error channel, has the status of the
//! command.

use std::time::Duration;

use futures::{SinkExt as _, Stream, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, empty, sink},
    sync::mpsc::{self, Sender},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{
    Exit, PodProcess, PodTarget, ProcessRunner,
    upgrade::{Handshake, Socket, farewell},
};
use crate::{object, refusal::Refusal, reply::Reply, verbs::ApiCall};

/// In the fourth version, clients cannot close stdin.
const PROTOCOLS: &[&str] = &["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Closes the channel that follows.
const CLOSE: u8 = 255;

/// The buffer of one direction of one channel; also the maximum size of a message.
const BUFFER_BYTES: usize = 32 << 10;
/// Limit of messages that wait to be sent.
const MESSAGES_MAX: usize = 16;
/// Limit of terminal sizes that wait to be read.
const SIZES_MAX: usize = 16;
/// Time limit for a client to confirm the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn answer(
    call: &ApiCall<'_>,
    target: PodTarget,
    run: ProcessRunner,
) -> Result<Reply, Refusal> {
    let query = &call.query;
    let command: Vec<String> = query.all("command").map(String::from).collect();
    let (stdin, stdout) = (query.flag("stdin"), query.flag("stdout"));
    let tty = query.flag("tty");
    let stderr = query.flag("stderr") && !tty;
    if !(stdin || stdout || stderr) {
        let message = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(Refusal::bad_request(message));
    }
    if command.is_empty() && call.target.subresource.as_deref() == Some("exec") {
        return Err(Refusal::bad_request("you must specify at least 1 command for the container"));
    }
    let handshake = Handshake::of(call.request, PROTOCOLS)?;
    let start = CommandRequest { target, command, tty, stdin, stdout, stderr };
    let upgrade = handshake.accept(move |socket, _protocol| serve(socket, start, run));
    Ok(Reply::Upgrade(Box::new(upgrade)))
}

/// The requested command and its channels.
struct CommandRequest {
    target: PodTarget,
    command: Vec<String>,
    tty: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

/// The server's ends of the channels of a process.
struct Ends {
    stdin: Option<DuplexStream>,
    sizes: Sender<(u16, u16)>,
    stdout: DuplexStream,
    stderr: DuplexStream,
}

impl CommandRequest {
    /// Creates the channels of a process. Channels that the client has not requested are not connected.
    fn connect(self) -> (PodProcess, Ends) {
        let pipe = || duplex(BUFFER_BYTES);
        let ((stdin, stdin_end), (stdout, stdout_end), (stderr, stderr_end)) =
            (pipe(), pipe(), pipe());
        let (sizes_end, sizes) = mpsc::channel(SIZES_MAX);
        let process = PodProcess {
            target: self.target,
            command: self.command,
            tty: self.tty,
            stdin: if self.stdin { Box::new(stdin) } else { Box::new(empty()) },
            stdout: if self.stdout { Box::new(stdout) } else { Box::new(sink()) },
            stderr: if self.stderr { Box::new(stderr) } else { Box::new(sink()) },
            sizes,
        };
        let stdin_end = self.stdin.then_some(stdin_end);
        let ends =
            Ends { stdin: stdin_end, sizes: sizes_end, stdout: stdout_end, stderr: stderr_end };
        (process, ends)
    }
}

/// Runs a process for a client, until either ends.
async fn serve(socket: Socket, start: CommandRequest, run: ProcessRunner) {
    let (process, ends) = start.connect();
    let (mut outgoing, incoming) = socket.split();
    let (messages, mut queue) = mpsc::channel(MESSAGES_MAX);
    let Ends { stdin, sizes, stdout, stderr } = ends;
    let work = async move {
        // Notifies the client that the process has started.
        let begun = messages.send(message(STDOUT, &[])).await;
        let outputs = async {
            tokio::join!(copy(STDOUT, stdout, &messages), copy(STDERR, stderr, &messages))
        };
        let (exit, _copied) = tokio::join!(run(process), outputs);
        let ended = messages.send(message(ERROR, status(&exit).to_string().as_bytes())).await;
        // The queue ends with the connection: then nobody reads the status.
        drop((begun, ended));
    };
    let send = async {
        while let Some(message) = queue.recv().await {
            if outgoing.send(message).await.is_err() {
                return;
            }
        }
        let _gone = outgoing.send(farewell()).await.is_err();
    };
    let mut receive = std::pin::pin!(receive(incoming, stdin, sizes));
    tokio::select! {
        biased; // the last messages are still sent
        _done = async { tokio::join!(work, send) } => {
            // Unread bytes would reset the connection, and drop the last messages.
            let _slow = timeout(CLOSE_TIMEOUT, receive).await.is_err();
        }
        () = &mut receive => {}
    }
}

/// Sends the output of a process.
async fn copy(channel: u8, mut from: DuplexStream, messages: &Sender<Message>) {
    let mut piece = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let bytes = piece.get(..count).unwrap_or_default();
        if messages.send(message(channel, bytes)).await.is_err() {
            return;
        }
    }
}

/// Receives the messages of the client, until it disconnects.
async fn receive(
    mut incoming: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut stdin: Option<DuplexStream>,
    sizes: Sender<(u16, u16)>,
) {
    while let Some(Ok(message)) = incoming.next().await {
        if matches!(message, Message::Close(_)) {
            return;
        }
        let data =
            if message.is_binary() || message.is_text() { message.into_data() } else { continue };
        match data.split_first() {
            Some((&STDIN, bytes)) => {
                if let Some(open) = &mut stdin
                    && open.write_all(bytes).await.is_err()
                {
                    // The process reads no more input; the client is not notified.
                    stdin = None;
                }
            }
            Some((&CLOSE, [STDIN])) => stdin = None,
            Some((&RESIZE, bytes)) => {
                // Sizes beyond the limit are dropped.
                let _full = size(bytes).is_some_and(|it| sizes.try_send(it).is_err());
            }
            Some(_) | None => {}
        }
    }
}

fn size(bytes: &[u8]) -> Option<(u16, u16)> {
    let size: Value = serde_json::from_slice(bytes).ok()?;
    let side = |field: &str| object::number(&size, field).and_then(|it| u16::try_from(it).ok());
    Some((side("/Width")?, side("/Height")?))
}

fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut data = Vec::with_capacity(bytes.len() + 1);
    data.push(channel);
    data.extend_from_slice(bytes);
    Message::binary(data)
}

/// Returns the `Status` of an ended command.
fn status(exit: &Exit) -> Value {
    match exit {
        Exit::Code(0) => json!({ "metadata": {}, "status": "Success" }),
        Exit::Code(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Exit::Failed(why) => Refusal::internal(why).to_json(),
    }
}
