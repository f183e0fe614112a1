//! The HTTPS server: certificates, statuses and limits. Uses sockets, and therefore the real clock.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use kopf::cluster::KubeCluster;
use kopf::logic::admission::configuration::{ClientConfig, WebhookEndpoint};
use kopf::logic::admission::review::ReviewError;
use kopf::ports::{
    BoxFuture, Clock, Cluster, ReviewRequest, Reviewer, WebhookParts, WebhookServer as _,
};
use kopf::settings::{AdmissionSettings, Settings, VerifyMode, WebhookServer, WebhookService};
use kopf::telemetry::RefusedLabels;
use kopf::testing::{Environment, client, namespace};
use kopf::webhooks::HttpsWebhooks;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ports::free_port;

/// A reviewer that responds with properties of its request.
struct Echo;

impl Reviewer for Echo {
    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<Bytes, ReviewError>> {
        Box::pin(async move {
            if request.body.is_empty() {
                return Err(ReviewError::Malformed("it is empty".to_owned()));
            }
            let answer = json!({
                "handler": request.handler, "bytes": request.body.len(),
                "agent": request.client.headers()["user-agent"], "peer": *request.client.certificate,
                "timed": request.deadline.is_some(),
            });
            Ok(answer.to_string().into())
        })
    }
}

struct Server {
    stop: CancellationToken,
    client: watch::Receiver<Option<ClientConfig>>,
    serving: JoinSet<()>,
    health: kopf::telemetry::Health,
}

impl Server {
    async fn start(env: &Environment, admission: AdmissionSettings) -> Self {
        let (stop, health) = (CancellationToken::new(), kopf::telemetry::Health::default());
        let settings = Arc::new(Settings { admission, ..Settings::default() });
        let cluster = KubeCluster::over(client(&env.server), Arc::clone(&settings));
        let parts = WebhookParts {
            reviewer: Arc::new(Echo),
            settings,
            tunnel: None,
            cluster: Arc::new(cluster) as Arc<dyn Cluster>,
            clock: env.clock,
            health: health.clone(),
            stop: stop.clone(),
        };
        let running = HttpsWebhooks::default().start(parts).await.expect("it opens");
        let mut serving = JoinSet::new();
        serving.spawn(running.serving);
        let mut client = running.client;
        client.wait_for(Option::is_some).await.expect("it has a certificate");
        Server { stop, client, serving, health }
    }

    fn config(&self) -> ClientConfig {
        self.client.borrow().clone().expect("it is published")
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}

fn environment() -> Environment {
    let env = Environment::with_clock(kopf_apiserver::ApiServer::builder(), Clock::system());
    env.create(namespace("ops"));
    env
}

fn server(options: WebhookServer) -> AdmissionSettings {
    let addr = Some("127.0.0.1".to_owned());
    AdmissionSettings {
        server: Some(WebhookServer { addr, ..options }),
        ..AdmissionSettings::default()
    }
}

/// Sends a request to the server at a URL. The error is that of the connection.
async fn request(
    config: &ClientConfig,
    (method, path): (&str, &str),
    body: Vec<u8>,
    identity: Option<(&str, &str)>,
) -> Result<(StatusCode, String), String> {
    let WebhookEndpoint::Url(url) = &config.endpoint else { panic!("a URL is expected") };
    let mut roots = rustls::RootCertStore::empty();
    let ca = config.ca.as_deref().unwrap_or_default();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().expect("versions");
    let tls = tls.with_root_certificates(roots);
    let tls = match identity {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let chain = chain.collect::<Result<Vec<_>, _>>().expect("PEM");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            tls.with_client_auth_cert(chain, key).expect("an identity")
        }
        None => tls.with_no_client_auth(),
    };
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::builder().method(method).uri(format!("{url}{path}"));
    let request = request.header("user-agent", "test").body(Full::new(Bytes::from(body)));
    let response = client.request(request.expect("a request")).await;
    let response = response.map_err(|it| it.to_string())?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|it| it.to_string())?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test]
async fn reviews_come_over_https_and_name_their_handler() {
    let env = environment();
    let options = WebhookServer { path: Some("/hooks".into()), ..WebhookServer::default() };
    let server = Server::start(&env, server(options)).await;
    let config = server.config();
    let asked = ("POST", "/a/b%20c?timeout=5s");
    let (status, body) = request(&config, asked, b"{}".to_vec(), None).await.expect("TLS");
    assert_eq!(status, StatusCode::OK);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let expected =
        json!({"handler": "a/b c", "bytes": 2, "agent": "test", "peer": {}, "timed": true});
    assert_eq!(body, expected);
    server.end().await;
}

#[tokio::test]
async fn wrong_requests_get_the_status_that_says_so() {
    let env = environment();
    let server = Server::start(&env, server(WebhookServer::default())).await;
    let config = server.config();
    for (method, path, body, expected) in [
        ("GET", "/x", Vec::new(), 405),
        ("POST", "/x", Vec::new(), 400),
        ("POST", "/x", vec![b' '; (8 << 20) + 1], 413),
    ] {
        let (status, text) = request(&config, (method, path), body, None).await.expect("TLS");
        assert_eq!(status.as_u16(), expected, "{method}: {text}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_insecure_server_speaks_http() {
    let env = environment();
    let options = WebhookServer { insecure: true, ..WebhookServer::default() };
    let server = Server::start(&env, server(options)).await;
    let config = server.config();
    assert_eq!(config.ca, None);
    let (status, _) = request(&config, ("POST", "/x"), b"{}".to_vec(), None).await.expect("HTTP");
    assert_eq!(status, StatusCode::OK);
    server.end().await;
}

/// Returns a CA, and the certificate and the key of a client.
fn clients() -> (String, String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut ca = rcgen::CertificateParams::default();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = rcgen::CertifiedIssuer::self_signed(ca, key).expect("a CA");
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(["api.example.com".to_owned()]).expect("a name");
    params.distinguished_name.push(rcgen::DnType::CommonName, "apiserver");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &ca).expect("a certificate");
    (ca.pem(), certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn clients_are_verified_and_described() {
    let env = environment();
    let (ca, certificate, key) = clients();
    let options = WebhookServer {
        verify_mode: Some(VerifyMode::Required),
        verify_cadata: Some(ca),
        ..WebhookServer::default()
    };
    let server = Server::start(&env, server(options)).await;
    let config = server.config();
    let asked = ("POST", "/x");
    let identity = Some((certificate.as_str(), key.as_str()));
    let (_, body) = request(&config, asked, b"{}".to_vec(), identity).await.expect("TLS");
    let peer = serde_json::from_str::<Value>(&body).expect("JSON")["peer"].clone();
    assert_eq!(peer["subject"], json!([[["commonName", "apiserver"]]]));
    assert_eq!(peer["subjectAltName"], json!([["DNS", "api.example.com"]]));
    assert_eq!(peer["version"], 3);
    assert!(peer["notAfter"].as_str().is_some_and(|it| it.ends_with(" GMT")), "{peer}");
    assert!(request(&config, asked, b"{}".to_vec(), None).await.is_err(), "without a certificate");
    let (_, stranger, key) = clients();
    let identity = Some((stranger.as_str(), key.as_str()));
    assert!(request(&config, asked, b"{}".to_vec(), identity).await.is_err(), "of another CA");
    let refused = RefusedLabels { reason: "certificate" };
    let refused = server.health.metrics().refused_connections.get_or_create(&refused).get();
    assert_eq!(refused, 2, "both are counted");
    server.end().await;
}

#[tokio::test]
async fn replicas_share_the_certificates_of_a_secret() {
    let env = environment();
    let service = WebhookService { namespace: "ops".into(), name: "hooks".into(), port: None };
    let admission = |port| AdmissionSettings {
        service: Some(service.clone()),
        server: Some(WebhookServer {
            addr: Some("127.0.0.1".into()),
            port: Some(port),
            extra_sans: vec!["127.0.0.1".into()],
            ..WebhookServer::default()
        }),
        ..AdmissionSettings::default()
    };
    let (one_port, other_port) = (free_port(), free_port());
    let (one, other) = tokio::join!(
        Server::start(&env, admission(one_port)),
        Server::start(&env, admission(other_port))
    );
    assert_eq!(one.config(), other.config(), "the CA is the same");
    for port in [one_port, other_port] {
        let endpoint = WebhookEndpoint::Url(format!("https://127.0.0.1:{port}"));
        let config = ClientConfig { endpoint, ..one.config() };
        let (status, _) =
            request(&config, ("POST", "/x"), b"{}".to_vec(), None).await.expect("TLS");
        assert_eq!(status, StatusCode::OK);
    }
    let secret = env.get("secrets", "ops/hooks-webhook");
    assert!(secret["data"]["tls.key"].is_string());
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn changed_certificate_files_are_used_and_published() {
    let env = environment();
    let directory = std::env::temp_dir().join(format!("kopf-webhooks-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let place = |name: &str| directory.join(name).display().to_string();
    let write = || {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        std::fs::write(place("tls.key"), key.serialize_pem()).expect("it is written");
        std::fs::write(place("tls.crt"), &certificate).expect("it is written");
        certificate
    };
    let before = write();
    let options = WebhookServer {
        certfile: Some(place("tls.crt")),
        pkeyfile: Some(place("tls.key")),
        cadump: Some(place("ca.crt")),
        file_check_interval: Duration::from_secs(1),
        ..WebhookServer::default()
    };
    let mut server = Server::start(&env, server(options)).await;
    assert_eq!(server.config().ca.as_deref(), Some(&*before));
    let after = write();
    let is_new =
        |it: &Option<ClientConfig>| it.as_ref().is_some_and(|it| it.ca.as_deref() == Some(&*after));
    server.client.wait_for(is_new).await.expect("it serves");
    let (status, _) =
        request(&server.config(), ("POST", "/x"), b"{}".to_vec(), None).await.expect("TLS");
    assert_eq!(status, StatusCode::OK);
    server.end().await;
    std::fs::remove_dir_all(&directory).expect("it is removed");
}
