//! Opening and closing of connections.

use std::{net::Ipv4Addr, time::Duration};

use http::Request;
use http_body_util::BodyExt as _;
use kube::{Config, client::Body};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::cluster::{
    dial::{IDLE, dial},
    fence::{Fence, FencedBody},
};
use crate::logic::replicas::leadership::ReplicaRole;
use crate::ports::{Clock, Leadership};

fn version() -> Request<FencedBody> {
    Request::get("/version").body(FencedBody::new(Body::empty(), None)).unwrap()
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    // Another test may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = dial(Config::new(url.parse().unwrap())).unwrap();
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert!(socket.read(&mut buffer).await.unwrap() > 0);
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        socket.read(&mut buffer).await.unwrap()
    };
    let asks = async {
        let response = client.send(version()).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{}");
        // No timeout is running any more that could expire.
        tokio::time::pause();
        tokio::time::sleep(IDLE * 3).await;
    };
    let (bytes_at_end, ()) = tokio::join!(server, asks);
    assert_eq!(bytes_at_end, 0);
}

/// Tests that a write is not sent if the lease expires between the attempt and its connection, as in a frozen process.
#[tokio::test]
async fn a_write_that_its_connection_gets_too_late_is_not_sent() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = dial(Config::new(url.parse().unwrap())).unwrap();
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let leadership = Leadership::new(clock);
    let send = async |end: Duration| {
        leadership.publish(&ReplicaRole::Leader, Some(end));
        let fence = Some(Fence(leadership.clone()));
        let body = FencedBody::new(Body::from(b"{}".to_vec()), fence);
        client.send(Request::patch("/x").body(body).unwrap()).await.map(|it| it.status().as_u16())
    };
    let end = clock.uptime() + Duration::from_mins(1);
    let server = async {
        let mut received = Vec::new();
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let length = socket.read(&mut buffer).await.unwrap();
            received.push(length);
            if length > 0 {
                socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
            }
        }
        received
    };
    let sends = async { (send(Duration::ZERO).await.is_err(), send(end).await) };
    let (received, (is_refused, sent)) = tokio::join!(server, sends);
    assert!(is_refused);
    assert_eq!(sent.unwrap(), 200);
    assert_eq!(received[0], 0, "not even the head is sent");
    assert!(received[1] > 0);
}

/// Reads the timer of a socket from the system: 02 is keep-alive.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_silent_is_probed() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = dial(Config::new(url.parse().unwrap())).unwrap();
    let server = async {
        let (mut socket, peer) = listener.accept().await.unwrap();
        assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
        // Until the request is acknowledged, the socket has another timer.
        for _ in 0..100 {
            let sockets = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
            let local = format!(":{:04X}", peer.port());
            let fields = sockets.lines().map(|it| it.split_whitespace().collect::<Vec<_>>());
            let mut timers = fields.filter(|it| it[1].ends_with(&local)).map(|it| it[5]);
            if timers.any(|it| it.starts_with("02:")) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    tokio::select! {
        is_probed = server => assert!(is_probed),
        _ = client.send(version()) => panic!("nobody has answered"),
    }
}
