//! `exec`, `attach`, `port-forward`, `cp` and logs: by WebSocket, and by the real kubectl.
//!
//! kubectl is the one in `KUBECTL` or `KUBEBUILDER_ASSETS`; without it, its tests are skipped. It must be 1.31 or later: older ones
//! do not use WebSocket.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, stream};
use http::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use kopf_apiserver::{
    ApiServer, User,
    serve::{Listener, ServeOptions},
    streaming::{Exit, LogRequest, PodProcess, PodStreams, PortConnection},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
    task::JoinSet,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use tokio_util::sync::CancellationToken;

use crate::{differential::variable, say};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a socket with one running Pod.
pub(crate) struct PodServer {
    pub(crate) server: ApiServer,
    address: SocketAddr,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Drop for PodServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) async fn served(pods: PodStreams, rbac: bool) -> PodServer {
    let server = ApiServer::builder().cluster(true).rbac(rbac).pods(pods).build();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(ServeOptions { address, beyond_loopback: false }).await;
    let listener = listener.expect("a free port");
    let address = listener.address();
    let pod = json!({
        "metadata": { "namespace": "default", "name": "p" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] },
        "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "c", "ready": true, "image": "i", "state": { "running": {} } }],
        },
    });
    server.create("pods", pod).expect("a new pod");
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(listener.serve(server.clone(), stop.clone()));
    PodServer { server, address, stop, _tasks: tasks }
}

/// Returns functions for a few programs: `cat`, `fail CODE`, `say WORDS`, and the two forms of tar that `kubectl cp` uses.
fn programs() -> PodStreams {
    let file: Arc<Mutex<Vec<u8>>> = Arc::default();
    let exec = move |mut process: PodProcess| {
        let file = Arc::clone(&file);
        async move {
            let words: Vec<&str> = process.command.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["cat"] => {
                    let copied = tokio::io::copy(&mut process.stdin, &mut process.stdout).await;
                    copied.map_or_else(|it| Exit::Failed(it.to_string()), |_| Exit::Code(0))
                }
                ["fail", code] => {
                    process.stderr.write_all(b"no\n").await.expect("an open channel");
                    Exit::Code(code.parse().expect("a number"))
                }
                ["say", rest @ ..] => {
                    let target = &process.target;
                    let line = format!("{}/{}: {}\n", target.pod, target.container, rest.join(" "));
                    process.stdout.write_all(line.as_bytes()).await.expect("an open channel");
                    Exit::Code(0)
                }
                ["tar", flags, ..] if flags.contains('x') => {
                    let mut sent = Vec::new();
                    process.stdin.read_to_end(&mut sent).await.expect("an archive");
                    *file.lock() = sent;
                    Exit::Code(0)
                }
                ["tar", ..] => {
                    let kept = file.lock().clone();
                    process.stdout.write_all(&kept).await.expect("an open channel");
                    Exit::Code(0)
                }
                ["test", ..] => Exit::Code(1),
                other => Exit::Failed(format!("no such program: {other:?}")),
            }
        }
    };
    PodStreams::default().exec(exec)
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Requests a WebSocket. The error is the response if there is none.
async fn connect(
    served: &PodServer,
    path: &str,
    (protocol, user): (&str, Option<&str>),
) -> Result<(Socket, String), (StatusCode, Value)> {
    let stream = TcpStream::connect(served.address).await.expect("the server listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let mut request = Request::get(format!("/api/v1/namespaces/default/pods/p/{path}"))
        .header(header::HOST, "localhost")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    if let Some(user) = user {
        request = request.header("impersonate-user", user);
    }
    let request = request.body(http_body_util::Empty::<Bytes>::new()).expect("a request");
    let asked = async move {
        let response = sender.send_request(request).await.expect("an answer");
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            let body = http_body_util::BodyExt::collect(response.into_body()).await;
            let body = body.expect("a whole body").to_bytes();
            return Err((status, serde_json::from_slice(&body).unwrap_or_default()));
        }
        let accept = response.headers()[header::SEC_WEBSOCKET_ACCEPT].clone();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "as in RFC 6455");
        let chosen = response.headers()[header::SEC_WEBSOCKET_PROTOCOL].clone();
        let upgraded = hyper::upgrade::on(response).await.expect("another protocol");
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None);
        Ok((socket.await, chosen.to_str().expect("a word").to_owned()))
    };
    let (answer, _connection) = tokio::join!(asked, connection.with_upgrades());
    answer
}

/// Returns the output of a server on its channels, and the status on the last one.
async fn heard(socket: &mut Socket) -> (String, String, Value) {
    let mut texts = [const { Vec::new() }; 4];
    while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.expect("an end") {
        if let Message::Binary(data) = message {
            let (channel, bytes) = data.split_first().expect("a channel");
            texts[usize::from(*channel)].extend_from_slice(bytes);
        }
    }
    let [_, out, err, status] = texts;
    let text = |it: Vec<u8>| String::from_utf8(it).expect("UTF-8");
    (text(out), text(err), serde_json::from_slice(&status).unwrap_or_default())
}

fn channel(channel: u8, text: &str) -> Message {
    Message::binary([&[channel], text.as_bytes()].concat())
}

#[tokio::test]
async fn commands_get_their_input_and_send_their_output_and_their_code() {
    let served = served(programs(), false).await;
    let path = "exec?command=cat&stdin=true&stdout=true&stderr=true&container=c";
    let (mut socket, protocol) =
        connect(&served, path, ("v4.channel.k8s.io, v5.channel.k8s.io", None))
            .await
            .expect("a socket");
    assert_eq!(protocol, "v4.channel.k8s.io", "the first one of the client");
    drop(socket.close(None).await);
    let (mut socket, protocol) =
        connect(&served, path, ("v5.channel.k8s.io", None)).await.expect("a socket");
    assert_eq!(protocol, "v5.channel.k8s.io");
    for message in [channel(0, "one "), channel(0, "two"), Message::binary(vec![255, 0])] {
        socket.send(message).await.expect("an open socket");
    }
    let success = json!({ "metadata": {}, "status": "Success" });
    assert_eq!(heard(&mut socket).await, ("one two".into(), String::new(), success));

    let path = "exec?command=fail&command=3&stdout=true&stderr=true";
    let (mut socket, _) =
        connect(&served, path, ("v5.channel.k8s.io", None)).await.expect("a socket");
    let (out, err, status) = heard(&mut socket).await;
    assert_eq!((out.as_str(), err.as_str()), ("", "no\n"));
    assert_eq!(status["reason"], "NonZeroExitCode");
    assert_eq!(status["details"]["causes"][0], json!({ "reason": "ExitCode", "message": "3" }));

    let path = "exec?command=rm&stdout=true";
    let (mut socket, _) =
        connect(&served, path, ("v5.channel.k8s.io", None)).await.expect("a socket");
    assert_eq!(heard(&mut socket).await.2["code"], 500);
}

#[tokio::test]
async fn unsupported_and_invalid_requests_are_refused() {
    let nothing = served(PodStreams::default(), false).await;
    let v5 = ("v5.channel.k8s.io", None);
    for path in ["exec?command=a&stdout=true", "attach?stdout=true", "portforward"] {
        let (status, body) = connect(&nothing, path, v5).await.expect_err("no function");
        let name = path.split('?').next().expect("a name");
        assert_eq!(status, 501, "{path}");
        assert_eq!(
            body["message"],
            format!("pods/{name} is not served here: nothing runs in this cluster")
        );
    }
    let served = served(programs(), false).await;
    for (path, protocol, message) in [
        (
            "exec?command=cat",
            "v5.channel.k8s.io",
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            "exec?stdout=true",
            "v5.channel.k8s.io",
            "you must specify at least 1 command for the container",
        ),
        (
            "exec?command=cat&stdout=true&container=d",
            "v5.channel.k8s.io",
            "container d is not valid for pod p",
        ),
        (
            "exec?command=cat&stdout=true",
            "v1.channel.k8s.io",
            "no protocol in common: the client offers [v1.channel.k8s.io], the server knows [v5.channel.k8s.io, v4.channel.k8s.io]",
        ),
    ] {
        let (status, body) = connect(&served, path, (protocol, None)).await.expect_err("a mistake");
        assert_eq!((status.as_u16(), body["message"].as_str()), (400, Some(message)), "{path}");
    }
    // Without a request for an upgrade.
    let client = crate::client(&served.server);
    let path = "/api/v1/namespaces/default/pods/p/exec?command=cat&stdout=true";
    let (status, body) = crate::send(&client, "GET", path, ("", String::new())).await;
    assert_eq!((status, body["message"].as_str()), (400, Some("Upgrade request required")));
}

#[tokio::test]
async fn running_a_command_needs_the_permission_to_create_even_with_get() {
    let served = served(programs(), true).await;
    let rule =
        |verbs: Value| json!([{ "apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs }]);
    let role = json!({ "metadata": { "namespace": "default", "name": "r" }, "rules": rule(json!(["get"])) });
    served.server.create("roles.rbac.authorization.k8s.io", role).expect("a role");
    let binding = json!({
        "metadata": { "namespace": "default", "name": "b" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
        "subjects": [{ "kind": "User", "name": "bob" }],
    });
    served.server.create("rolebindings.rbac.authorization.k8s.io", binding).expect("a binding");
    let path = "exec?command=say&command=hi&stdout=true";
    let bob = ("v5.channel.k8s.io", Some("bob"));
    let (status, body) = connect(&served, path, bob).await.expect_err("no permission");
    let why = "pods \"p\" is forbidden: ";
    assert_eq!((status.as_u16(), body["message"].as_str()), (403, Some(why)));
    let more = json!({ "rules": rule(json!(["get", "create"])) });
    served.server.merge("roles.rbac.authorization.k8s.io", "default", "r", more).expect("a role");
    let (mut socket, _) = connect(&served, path, bob).await.expect("a socket");
    assert_eq!(heard(&mut socket).await.0, "p/c: hi\n");
    let accesses = served.server.accesses().counts;
    let verbs = accesses
        .keys()
        .filter(|it| it.user == "bob")
        .map(|it| (it.attributes.verb.as_str(), it.allowed));
    assert_eq!(verbs.collect::<Vec<_>>(), [("create", false), ("create", true), ("get", true)]);
}

#[tokio::test]
async fn in_process_clients_have_their_identity_and_their_requests_are_recorded() {
    let served = served(PodStreams::default(), true).await;
    let user = User::service_account("default", "op");
    let client = kube::Client::new(served.server.client_of(user.clone()), "default");
    let (status, _) =
        crate::send(&client, "GET", "/api/v1/namespaces/default/pods/p", ("", String::new())).await;
    assert_eq!(status, 403);
    let admin = crate::client(&served.server);
    let (status, _) =
        crate::send(&admin, "GET", "/api/v1/namespaces/default/pods/p", ("", String::new())).await;
    assert_eq!(status, 200);
    let accesses = served.server.accesses();
    assert_eq!(accesses.dropped, 0);
    let found = accesses.counts.iter().find(|(it, _)| it.user == user.name).expect("an access");
    assert_eq!((found.0.allowed, *found.1), (false, 1));
    assert_eq!(found.0.attributes.resource, "pods");
}

/// kubectl with a kubeconfig for this server; `None` if it is skipped.
pub(crate) struct Kubectl {
    program: PathBuf,
    directory: PathBuf,
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.directory));
    }
}

impl Kubectl {
    pub(crate) async fn find(served: &PodServer, test: &str) -> Option<Self> {
        let assets = || Some(PathBuf::from(variable("KUBEBUILDER_ASSETS")?).join("kubectl"));
        let program = variable("KUBECTL").map(PathBuf::from).or_else(assets);
        let Some(program) = program.filter(|it| it.exists()) else {
            say("kubectl: skipped, set KUBECTL or KUBEBUILDER_ASSETS");
            return None;
        };
        let version = Command::new(&program).args(["version", "--client", "-o", "json"]).output();
        let version: Value =
            serde_json::from_slice(&version.await.expect("it runs").stdout).expect("JSON");
        let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
        if minor.trim_end_matches('+').parse::<u32>().is_ok_and(|it| it < 31) {
            say(&format!("kubectl: skipped, 1.{minor} does not use WebSocket"));
            return None;
        }
        let directory =
            std::env::temp_dir().join(format!("kopf-streams-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).expect("a writable directory");
        let kubeconfig = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}], \
             contexts: [{{name: c, context: {{cluster: c, user: c}}}}], users: [{{name: c, user: {{}}}}]}}",
            served.address
        );
        fs::write(directory.join("kubeconfig"), kubeconfig).expect("a writable file");
        Some(Self { program, directory })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.directory).kill_on_drop(true);
        command.env("KUBECONFIG", self.directory.join("kubeconfig")).env("HOME", &self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs kubectl. Returns the exit code, stdout and stderr.
    pub(crate) async fn run(&self, args: &[&str], input: &str) -> (Option<i32>, String, String) {
        let mut child = self.command(args).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        drop(stdin.write_all(input.as_bytes()).await);
        drop(stdin);
        let ended = timeout(PATIENCE, child.wait_with_output()).await.expect("an end");
        let ended = ended.expect("an output");
        let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
    }
}

#[tokio::test]
async fn kubectl_runs_commands_and_copies_files() {
    let served = served(programs(), false).await;
    let Some(kubectl) = Kubectl::find(&served, "exec").await else { return };
    let done = kubectl.run(&["exec", "p", "--", "say", "hello", "you"], "").await;
    assert_eq!(done, (Some(0), "p/c: hello you\n".into(), String::new()));
    let done = kubectl.run(&["exec", "-i", "p", "-c", "c", "--", "cat"], "some input").await;
    assert_eq!(done, (Some(0), "some input".into(), String::new()));
    let (code, _, err) = kubectl.run(&["exec", "p", "--", "fail", "3"], "").await;
    assert_eq!((code, err.as_str()), (Some(3), "no\ncommand terminated with exit code 3\n"));
    let large = "0123456789".repeat(100_000);
    fs::write(kubectl.directory.join("a"), &large).expect("a writable file");
    let (code, _, err) = kubectl.run(&["cp", "a", "p:a"], "").await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (code, _, err) = kubectl.run(&["cp", "p:a", "b"], "").await;
    assert_eq!(code, Some(0), "{err}");
    let copied = fs::read_to_string(kubectl.directory.join("b")).expect("a file");
    assert!(copied == large, "{} bytes", copied.len());
}

#[tokio::test]
async fn kubectl_shows_why_a_command_cannot_run() {
    let served = served(PodStreams::default(), false).await;
    let Some(kubectl) = Kubectl::find(&served, "refused").await else { return };
    let (code, out, err) = kubectl.run(&["exec", "p", "--", "ls"], "").await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("pods/exec is not served here: nothing runs in this cluster"), "{err}");
}

#[tokio::test]
async fn kubectl_attaches_and_reads_logs() {
    let log = |request: LogRequest| {
        let line = format!("{} {}\n", request.target.container, request.follow);
        Some(stream::iter([Bytes::from(line)]).boxed())
    };
    let attach = |mut process: PodProcess| async move {
        assert!(process.command.is_empty());
        process.stdout.write_all(b"attached\n").await.expect("an open channel");
        Exit::Code(0)
    };
    let served = served(PodStreams::default().logs(log).attach(attach), false).await;
    let Some(kubectl) = Kubectl::find(&served, "attach").await else { return };
    let done = kubectl.run(&["logs", "p"], "").await;
    assert_eq!(done, (Some(0), "c false\n".into(), String::new()));
    let done = kubectl.run(&["logs", "-f", "p"], "").await;
    assert_eq!(done, (Some(0), "c true\n".into(), String::new()));
    let (code, out, _) = kubectl.run(&["attach", "p"], "").await;
    assert_eq!((code, out.as_str()), (Some(0), "attached\n"));
}

#[tokio::test]
async fn kubectl_forwards_ports() {
    let forward = |mut it: PortConnection| async move {
        if it.port != 8080 {
            return Err(format!("nothing listens on {}", it.port));
        }
        let mut all = Vec::new();
        it.stream.read_to_end(&mut all).await.map_err(|it| it.to_string())?;
        all.reverse();
        it.stream.write_all(&all).await.map_err(|it| it.to_string())
    };
    let served = served(PodStreams::default().port_forward(forward), false).await;
    let Some(kubectl) = Kubectl::find(&served, "forward").await else { return };
    let mut child =
        kubectl.command(&["port-forward", "p", ":8080", ":9090"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut ports = Vec::new();
    while ports.len() < 2 {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a line");
        let line = line.expect("text").expect("not the end");
        if let Some(rest) = line.strip_prefix("Forwarding from 127.0.0.1:") {
            let (port, _) = rest.split_once(" -> ").expect("an arrow");
            ports.push(port.parse::<u16>().expect("a port"));
        }
    }
    let text = "abc".repeat(50_000);
    for _ in 0..3 {
        let mut stream =
            TcpStream::connect((Ipv4Addr::LOCALHOST, ports[0])).await.expect("it listens");
        let (mut from, mut into) = stream.split();
        let write = async {
            into.write_all(text.as_bytes()).await.expect("it reads");
            into.shutdown().await.expect("it is open");
        };
        let mut back = String::new();
        let ((), read) = tokio::join!(write, timeout(PATIENCE, from.read_to_string(&mut back)));
        read.expect("an end").expect("text");
        assert!(back == "cba".repeat(50_000), "{} bytes", back.len());
    }
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut refused =
        TcpStream::connect((Ipv4Addr::LOCALHOST, ports[1])).await.expect("it listens");
    let mut nothing = Vec::new();
    drop(timeout(PATIENCE, refused.read_to_end(&mut nothing)).await.expect("an end"));
    let line = timeout(PATIENCE, errors.next_line()).await.expect("a line");
    let line = line.expect("text").expect("not the end");
    assert!(line.contains("nothing listens on 9090"), "{line}");
    child.kill().await.expect("its own child");
}
