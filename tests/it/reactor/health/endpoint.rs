//! The probes on a socket.

use std::sync::Arc;

use kopf::{
    features::probes::{Listener, ProbeEndpoint, Routes},
    telemetry::{Health, HealthState},
    testing::LogCapture,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, in_both};

/// Sends some bytes; returns the first line of the response and its body.
pub(super) async fn ask(port: u16, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    // A server that refuses a request may reset the connection after its response.
    drop(stream.read_to_string(&mut answer).await);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

pub(super) fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn strangers_get_what_is_there_and_no_more() {
    let log = LogCapture::of("kopf.access");
    let health = Health::default();
    health.note("login", HealthState::Unready, "not yet");
    let listener = Listener::bind("127.0.0.1", 0).await.expect("a free port");
    let port = listener.address().expect("an address").port();
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(listener.serve(Arc::new(Routes::new(health)), stop.clone()));
    let answers = [
        ask(port, &request("GET", "/livez")).await,
        ask(port, &request("HEAD", "/livez")).await,
        ask(port, &request("GET", "/readyz")).await,
        ask(port, &request("GET", "/other")).await,
        ask(port, &request("POST", "/livez")).await,
        ask(port, &format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))).await,
    ];
    let told: Vec<_> =
        answers.iter().map(|(line, body)| format!("{line} | {}", body.trim_end())).collect();
    expect_test::expect![[r"
        HTTP/1.1 200 OK | ok
        HTTP/1.1 200 OK | 
        HTTP/1.1 503 Service Unavailable | [-]login failed: not yet
        readyz check failed
        HTTP/1.1 404 Not Found | not found; available: /healthz, /livez, /readyz, /metrics
        HTTP/1.1 405 Method Not Allowed | only GET and HEAD
        HTTP/1.1 431 Request Header Fields Too Large | "]]
    .assert_eq(&told.join("\n"));
    assert!(log.has(r#"127.0.0.1 "GET /other HTTP/1.1" 404"#), "{:?}", log.lines());
    let idle = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stop.cancel();
    serving.join_all().await;
    drop(idle);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[test]
fn a_liveness_address_that_is_taken_ends_the_operator_after_its_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port();
    let told = in_both(
        "kopf.on_startup(function(ctx) kopf.sleep(7) end)",
        "kopf::on_startup(|ctx| kopf::sleep(7));",
        async |mut cluster: Cluster, source| {
            cluster.liveness =
                Some(ProbeEndpoint { host: "127.0.0.1".into(), port, path: "/".into() });
            let ((), ended) = cluster.run(source, cluster.until(60)).await;
            ended.map_err(|it| it.to_string().replace(&port.to_string(), "PORT"))
        },
    );
    let expected = "the liveness endpoint: cannot listen on 127.0.0.1:PORT: Address already in use (os error 98)";
    assert_eq!(told, Err(expected.to_owned()));
}
