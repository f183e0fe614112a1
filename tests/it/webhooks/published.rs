//! The publication of the webhook server: for local clusters, and with tunnels.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kopf::cluster::{ConnectOptions, KubeCluster};
use kopf::logic::admission::configuration::{ClientConfig, WebhookEndpoint};
use kopf::logic::admission::server::Publishing;
use kopf::ports::{
    AskTunnel, BoxFuture, Clock, Cluster, ReviewRequest, Reviewer, WebhookParts, WebhookServer as _,
};
use kopf::settings::{AdmissionSettings, LocalCluster, Settings, WebhookServer};
use kopf::webhooks::HttpsWebhooks;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// A reviewer that responds with an empty body.
struct Silent;

impl Reviewer for Silent {
    fn review(
        &self,
        _: ReviewRequest,
    ) -> BoxFuture<'_, Result<Bytes, kopf::logic::admission::review::ReviewError>> {
        Box::pin(async { Ok(Bytes::new()) })
    }
}

/// The properties that an API server shows of itself.
#[derive(Clone, Copy, Default)]
struct Shown {
    /// The common name of its CA.
    ca: &'static str,
    /// The common name of its certificate.
    name: &'static str,
    /// Another host name in its certificate.
    host: &'static str,
    version: &'static str,
}

impl Shown {
    /// Starts such a server. Returns a client.
    async fn connect(self, tasks: &mut JoinSet<()>) -> KubeCluster {
        let ca_key = KeyPair::generate().expect("a key");
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, self.ca);
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = ca.self_signed(&ca_key).expect("a CA").pem();
        let key = KeyPair::generate().expect("a key");
        let names = ["127.0.0.1", self.host].map(str::to_owned);
        let names: Vec<_> = names.into_iter().filter(|it| !it.is_empty()).collect();
        let mut leaf = CertificateParams::new(names).expect("names");
        leaf.distinguished_name.push(DnType::CommonName, self.name);
        let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).expect("a certificate").pem();
        let certificate = CertificateDer::from_pem_slice(leaf.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().expect("versions");
        let tls = tls.with_no_client_auth().with_single_cert(vec![certificate], key).expect("TLS");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), self));
        let login = json!({ "server": format!("https://127.0.0.1:{port}"), "ca_data": authority });
        let ask = Arc::new(move |_| {
            let all = std::collections::BTreeMap::from([("login".into(), login.clone())]);
            Box::pin(async { Ok(all) }) as BoxFuture<'static, _>
        });
        let options = ConnectOptions { login: Some(ask), ..ConnectOptions::default() };
        KubeCluster::connect(options).await.expect("it connects")
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shown: Shown) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let tls = tls.clone();
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(|it: Request<Incoming>| {
                let body = if it.uri().path() == "/version" {
                    json!({ "gitVersion": shown.version })
                } else {
                    assert!(
                        it.uri().path().ends_with("/endpointslices/kubernetes"),
                        "{}",
                        it.uri()
                    );
                    json!({
                        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                        "metadata": { "namespace": "default", "name": "kubernetes" },
                        "endpoints": [{ "addresses": ["127.0.0.1"] }],
                    })
                };
                let response = Response::new(Full::new(Bytes::from(body.to_string())));
                async { Ok::<_, Infallible>(response) }
            });
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

/// Returns the client configuration under which a server is published for this cluster.
async fn published(cluster: KubeCluster, wanted: LocalCluster) -> (ClientConfig, Vec<u8>) {
    let server = WebhookServer {
        addr: Some("127.0.0.1".into()),
        cluster: Some(wanted),
        ..WebhookServer::default()
    };
    let admission = AdmissionSettings { server: Some(server), ..AdmissionSettings::default() };
    let stop = CancellationToken::new();
    let parts = WebhookParts {
        reviewer: Arc::new(Silent),
        settings: Arc::new(Settings { admission, ..Settings::default() }),
        tunnel: None,
        cluster: Arc::new(cluster) as Arc<dyn Cluster>,
        clock: Clock::system(),
        health: kopf::telemetry::Health::default(),
        stop: stop.clone(),
    };
    let running = HttpsWebhooks::default().start(parts).await.expect("it opens");
    let mut serving = JoinSet::new();
    serving.spawn(running.serving);
    let mut client = running.client;
    let found = client.wait_for(Option::is_some).await.expect("it is published").clone();
    let found = found.expect("it is published");
    let certificate = certificate(&found).await;
    stop.cancel();
    while serving.join_next().await.is_some() {}
    (found, certificate)
}

/// Connects as an API server that resolves all names to this machine. Returns the certificate, which is valid for the host.
async fn certificate(config: &ClientConfig) -> Vec<u8> {
    let (host, port) = host_and_port(config);
    let mut roots = rustls::RootCertStore::empty();
    let ca = config.ca.as_deref().expect("a CA");
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM")).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().expect("versions");
    let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
    let socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let name = rustls::pki_types::ServerName::try_from(host).expect("a name");
    let stream = tokio_rustls::TlsConnector::from(tls).connect(name, socket).await;
    let stream = stream.expect("the certificate is valid for the host");
    stream.get_ref().1.peer_certificates().expect("a certificate")[0].to_vec()
}

fn host_and_port(config: &ClientConfig) -> (String, u16) {
    let WebhookEndpoint::Url(url) = &config.endpoint else { panic!("{config:?}") };
    let (host, port) = url.strip_prefix("https://").and_then(|it| it.split_once(':')).expect(url);
    (host.to_owned(), port.parse().expect("a port"))
}

#[tokio::test]
async fn the_host_for_local_clusters_is_detected() {
    let plain = Shown { ca: "kubernetes", name: "kube-apiserver", version: "v1.36.3", host: "" };
    let cases = [
        (Shown { name: "k3s", ..plain }, "host.k3d.internal"),
        (Shown { ca: "k3s-server-ca", ..plain }, "host.k3d.internal"),
        (Shown { version: "v1.36.3+k3s1", ..plain }, "host.k3d.internal"),
        (Shown { name: "minikube", ..plain }, "host.minikube.internal"),
        (Shown { ca: "minikubeCA", ..plain }, "host.minikube.internal"),
        (Shown { host: "docker-for-desktop", ..plain }, "host.docker.internal"),
        // The address of this machine in the network of the node.
        (Shown { host: "kind-control-plane", ..plain }, "127.0.0.1"),
        // Unknown: as on the machine of the API server.
        (Shown { host: "kubernetes.default", ..plain }, "127.0.0.1"),
    ];
    let mut tasks = JoinSet::new();
    for (shown, expected) in cases {
        let cluster = shown.connect(&mut tasks).await;
        let (config, _) = published(cluster, LocalCluster::Auto).await;
        assert_eq!(host_and_port(&config).0, expected);
    }
    tasks.shutdown().await;
}

#[tokio::test]
async fn the_host_for_a_named_local_cluster_needs_no_detection() {
    let mut tasks = JoinSet::new();
    for (wanted, expected) in [
        (LocalCluster::K3d, "host.k3d.internal"),
        (LocalCluster::Minikube, "host.minikube.internal"),
        (LocalCluster::DockerDesktop, "host.docker.internal"),
        (LocalCluster::Kind, "127.0.0.1"),
    ] {
        let cluster = Shown::default().connect(&mut tasks).await;
        let (config, _) = published(cluster, wanted).await;
        assert_eq!(host_and_port(&config).0, expected);
    }
    tasks.shutdown().await;
}

/// Returns a function with the results of tunnel handlers, one after the other; the last one is repeated.
fn tunnel(results: Vec<Result<&'static str, &'static str>>) -> AskTunnel {
    let results = Mutex::new(VecDeque::from(results));
    Arc::new(move |server| {
        let mut results = results.lock();
        let next = if results.len() > 1 { results.pop_front() } else { results.front().copied() };
        let next = next.expect("a result").map(|url| ClientConfig {
            endpoint: WebhookEndpoint::Url(url.to_owned()),
            ca: server["ca"].as_str().map(str::to_owned),
        });
        Box::pin(async move { next.map_err(str::to_owned) })
    })
}

// The pauses between the calls take no time.
#[tokio::test(start_paused = true)]
async fn a_tunnel_is_published_under_its_url_and_asked_again() {
    let env = kopf::testing::Environment::new(kopf_apiserver::ApiServer::builder());
    let settings = Arc::new(Settings::default());
    let cluster = KubeCluster::over(kopf::testing::client(&env.server), Arc::clone(&settings));
    let (stop, health) = (CancellationToken::new(), kopf::telemetry::Health::default());
    let parts = WebhookParts {
        reviewer: Arc::new(Silent),
        settings: Arc::clone(&settings),
        tunnel: Some(tunnel(vec![
            Err("not yet"),
            Ok("https://one.example.com"),
            Ok("https://one.example.com"),
            Err("for a moment"),
            Ok("https://two.example.com"),
        ])),
        cluster: Arc::new(cluster) as Arc<dyn Cluster>,
        clock: env.clock,
        health: health.clone(),
        stop: stop.clone(),
    };
    let managed =
        HttpsWebhooks::default().setup(&settings, Publishing::Tunnel).expect("a tunnel is enough");
    assert_eq!(managed.managed.as_deref(), Some("auto.kopf.dev"));
    let running = HttpsWebhooks::default().start(parts).await.expect("it opens");
    let mut serving = JoinSet::new();
    serving.spawn(running.serving);
    let (mut client, begun) = (running.client, Instant::now());
    for (expected, seconds) in [("https://one.example.com", 10), ("https://two.example.com", 140)] {
        client.changed().await.expect("it is published");
        let config = client.borrow_and_update().clone().expect("it is published");
        assert_eq!(config.endpoint, WebhookEndpoint::Url(expected.to_owned()));
        assert!(
            config.ca.is_some_and(|it| it.contains("BEGIN CERTIFICATE")),
            "the handler sees it"
        );
        assert_eq!(begun.elapsed().as_secs(), seconds, "{expected}");
    }
    stop.cancel();
    while serving.join_next().await.is_some() {}
}
