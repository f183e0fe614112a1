//! Opening and closing of connections.

use std::net::Ipv4Addr;

use http::Request;
use kube::Config;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::cluster::dial::{IDLE, dial};

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
        let request = Request::get("/version").body(Vec::new()).unwrap();
        assert_eq!(client.request_text(request).await.unwrap(), "{}");
        // No timeout is running any more that could expire.
        tokio::time::pause();
        tokio::time::sleep(IDLE * 3).await;
    };
    let (bytes_at_end, ()) = tokio::join!(server, asks);
    assert_eq!(bytes_at_end, 0);
}

/// The system shows the timer of a socket: 02 is keep-alive.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_silent_is_probed() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = dial(Config::new(url.parse().unwrap())).unwrap();
    let request = Request::get("/version").body(Vec::new()).unwrap();
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
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        false
    };
    tokio::select! {
        is_probed = server => assert!(is_probed),
        _ = client.request_text(request) => panic!("nobody has answered"),
    }
}
