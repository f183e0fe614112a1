//! The server on a socket, in this process: access, limits, shutdown.

use std::{net::SocketAddr, time::Duration};

use kopf::testing;
use kopf_apiserver::{
    ApiServer,
    serve::{BindError, Listener, ServeOptions},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Far longer than any response here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that is served on a socket.
struct Served {
    server: ApiServer,
    address: SocketAddr,
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Served {
    async fn start() -> Self {
        let resource = testing::examples();
        let server = ApiServer::builder().resource(resource).build();
        let listener = Listener::bind(local(0)).await.expect("a free port");
        let (address, stop) = (listener.address(), CancellationToken::new());
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(listener.serve(server.clone(), stop.clone()));
        let ended =
            tokio::task::spawn_local(async move { while tasks.join_next().await.is_some() {} });
        Served { server, address, stop, ended }
    }

    /// Sends a head, and returns everything until the server closes the connection.
    async fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(head.replace('\n', "\r\n").as_bytes()).await.expect("it is sent");
        let mut answer = Vec::new();
        // A refusal during the request may close the connection before everything is read.
        drop(timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the end comes"));
        String::from_utf8(answer).expect("text")
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.ended).await.expect("it ends in time").expect("no panic");
    }
}

fn local(port: u16) -> ServeOptions {
    ServeOptions { address: SocketAddr::from(([127, 0, 0, 1], port)), beyond_loopback: false }
}

/// Runs a test on one thread, as tasks of tests require.
async fn on_one_thread(test: impl AsyncFnOnce()) {
    tokio::task::LocalSet::new().run_until(Box::pin(test())).await;
}

#[tokio::test]
async fn only_this_machine_is_served_unless_asked_and_a_taken_port_is_told() {
    let address = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Listener::bind(ServeOptions { address, beyond_loopback: false }).await;
    assert!(matches!(refused, Err(BindError::Exposed(_))), "{refused:?}");
    Listener::bind(ServeOptions { address, beyond_loopback: true }).await.expect("as asked for");

    let first = Listener::bind(local(0)).await.expect("a free port");
    let second = Listener::bind(local(first.address().port())).await;
    assert!(matches!(second, Err(BindError::Taken(_))), "{second:?}");
}

#[tokio::test]
async fn web_pages_are_not_served_and_clients_are() {
    on_one_thread(async || {
        let served = Served::start().await;
        let cases = [
            ("Host: 127.0.0.1:80", "200 OK"),
            ("Host: localhost", "200 OK"),
            ("Host: LocalHost:1", "200 OK"),
            ("Host: [::1]:8080", "200 OK"),
            ("Host: kopf.example.com", "403 Forbidden"),
            ("Host: 127.0.0.1.example.com:80", "403 Forbidden"),
            ("Host: localhost\nOrigin: http://example.com", "403 Forbidden"),
            ("Host: localhost\nOrigin: null", "403 Forbidden"),
        ];
        for (headers, expected) in cases {
            let head = format!("GET /version HTTP/1.1\n{headers}\nConnection: close\n\n");
            let answer = served.ask(&head).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{headers}: {answer}");
        }
        served.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http_or_too_large_is_refused_and_the_next_client_is_served() {
    on_one_thread(async || {
        let served = Served::start().await;
        let long = "x".repeat(300_000);
        let many = "X-A: b\n".repeat(200);
        let cases = [
            ("\u{16}\u{3}\u{1}\n\n".to_owned(), "400 Bad Request"),
            (
                format!("GET /{} HTTP/1.1\nHost: localhost\n\n", "x".repeat(70_000)),
                "414 URI Too Long",
            ),
            (format!("GET /{long} HTTP/1.1\nHost: localhost\n\n"), "431 "),
            (format!("GET / HTTP/1.1\nHost: localhost\nX-Long: {long}\n\n"), "431 "),
            (format!("GET / HTTP/1.1\nHost: localhost\n{many}\n"), "431 "),
        ];
        for (head, expected) in cases {
            let answer = served.ask(&head).await;
            let shown = head.get(..20).unwrap_or(&head);
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{shown}: {answer}");
        }
        let answer =
            served.ask("GET /version HTTP/1.1\nHost: localhost\nConnection: close\n\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        served.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_watch_streams_until_the_server_ends() {
    on_one_thread(async || {
        let served = Served::start().await;
        let mut stream = TcpStream::connect(served.address).await.expect("a connection");
        let head = "GET /apis/kopf.dev/v1/kopfexamples?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        let mut seen = String::new();
        for name in ["one", "two"] {
            let object = json!({ "kind": "KopfExample", "metadata": { "name": name, "namespace": "default" } });
            served.server.create("kopfexamples.kopf.dev", object).expect("it is created");
            while !seen.contains(&format!("\"name\":\"{name}\"")) {
                let mut piece = [0; 4096];
                let read = timeout(PATIENCE, stream.read(&mut piece)).await;
                let count = read.expect("a change is seen at once").expect("it is open");
                assert!(count > 0, "the stream ended: {seen}");
                seen.push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        }
        served.end().await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("a proper end");
        assert!(rest.ends_with(b"0\r\n\r\n"), "the last chunk: {}", String::from_utf8_lossy(&rest));
    })
    .await;
}
