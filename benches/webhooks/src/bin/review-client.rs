//! Sends one review repeatedly over HTTPS keep-alive connections, and measures the responses. Prints JSON.
//!
//! `certificates DIRECTORY` makes `ca.crt`, `tls.crt` and `tls.key` for 127.0.0.1. `send PORT PATH CA BODY CONNECTIONS SECONDS RATE` sends
//! the file BODY: RATE times per second, or as fast as the server responds if it is 0. With a rate, latencies count from the moment
//! at which the request was due.

use std::{env::args, fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, bail, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, StatusCode,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_rustls::TlsConnector;

fn main() -> anyhow::Result<()> {
    // An error means that a provider was already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let arguments = args().skip(1).collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    match arguments.as_slice() {
        ["certificates", directory] => certificates(Path::new(directory)),
        ["send", port, path, ca, body, connections, seconds, rate] => {
            let plan = Plan {
                port: port.parse()?,
                path: (*path).to_owned(),
                body: fs::read(body)?.into(),
                connections: connections.parse()?,
                duration: Duration::from_secs(seconds.parse()?),
                rate: rate.parse()?,
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            println!("{}", runtime.block_on(send(plan, &fs::read(ca)?))?);
            Ok(())
        }
        _ => bail!("unknown arguments: see the source"),
    }
}

fn certificates(directory: &Path) -> anyhow::Result<()> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    // Another name than that of the server, which would look like its own issuer.
    ca.distinguished_name.push(DnType::CommonName, "ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(directory.join("ca.crt"), ca.self_signed(&ca_key)?.pem())?;
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(["127.0.0.1".to_owned()])?;
    let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key))?;
    fs::write(directory.join("tls.crt"), leaf.pem())?;
    fs::write(directory.join("tls.key"), key.serialize_pem())?;
    Ok(())
}

struct Plan {
    port: u16,
    path: String,
    body: Bytes,
    connections: u32,
    duration: Duration,
    /// Requests per second of all connections; 0: as many as possible.
    rate: u32,
}

async fn send(plan: Plan, ca: &[u8]) -> anyhow::Result<Value> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate?)?;
    }
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(tls));
    let plan = Arc::new(plan);
    let mut open = Vec::new();
    for _ in 0..plan.connections {
        open.push(connect(&connector, plan.port).await?);
    }
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for (number, connection) in (0..).zip(open) {
        tasks.spawn(repeat(connection, Arc::clone(&plan), start, number));
    }
    let mut latencies = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        latencies.extend(ended??);
    }
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort();
    let quantile = |part: usize| {
        let index = (latencies.len() * part / 1000).min(latencies.len().saturating_sub(1));
        latencies.get(index).map(Duration::as_secs_f64)
    };
    Ok(json!({
        "responses": latencies.len(), "seconds": seconds,
        "p50": quantile(500), "p99": quantile(990), "max": quantile(1000),
    }))
}

async fn connect(connector: &TlsConnector, port: u16) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let socket = TcpStream::connect(("127.0.0.1", port)).await?;
    socket.set_nodelay(true)?;
    let stream = connector.connect(ServerName::try_from("127.0.0.1")?, socket).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The connection ends with its sender.
    drop(tokio::spawn(connection));
    Ok(sender)
}

/// Sends requests on one connection. Returns their latencies.
async fn repeat(
    mut sender: SendRequest<Full<Bytes>>,
    plan: Arc<Plan>,
    start: Instant,
    number: u32,
) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    for turn in 0.. {
        let mut due = Instant::now();
        if plan.rate > 0 {
            due = start + Duration::from_secs(1) * (turn * plan.connections + number) / plan.rate;
            sleep_until(due).await;
        }
        if due >= start + plan.duration {
            break;
        }
        let request = Request::post(&plan.path).header("host", "127.0.0.1");
        let request = request.header("content-type", "application/json");
        sender.ready().await?;
        let response = sender.send_request(request.body(Full::new(plan.body.clone()))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        latencies.push(due.elapsed());
        if turn == 0 {
            let review: Value = serde_json::from_slice(&body).context("the response is not JSON")?;
            let allowed = review.pointer("/response/allowed") == Some(&Value::Bool(true));
            ensure!(allowed, "not allowed: {review}");
        }
        ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(latencies)
}
