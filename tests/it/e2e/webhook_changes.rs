//! Webhooks over HTTPS while requests arrive: other certificates, other handlers, and the death of a replica.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::load::{CLIENTS, Load, client, create, send};
use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::until;
use crate::ports::free_port;

const SCRIPT: &str = r#"
    local here = { ["kubernetes.io/metadata.name"] = "NAMESPACE" }
    kopf.on_validate("configmaps", { id = "check", namespace_selector = here }, function(ctx)
        if ctx.body.data.size == "large" then error(kopf.AdmissionError("too large", 422)) end
    end)
    kopf.on_mutate("configmaps", { id = "MARK", namespace_selector = here }, function(ctx)
        ctx.patch.metadata.annotations.mark = "MARK"
    end)
"#;

/// A CA with the certificate of a server at 127.0.0.1, PEM.
struct Identity {
    ca: String,
    certificate: String,
    key: String,
}

impl Identity {
    fn new(name: &str) -> Self {
        let ca_key = KeyPair::generate().expect("a key");
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, name);
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let signed = ca.self_signed(&ca_key).expect("a CA").pem();
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).expect("a certificate");
        Identity { ca: signed, certificate: leaf.pem(), key: key.serialize_pem() }
    }
}

/// A namespace, and a directory with the script and the certificates of its operators.
struct Place {
    namespace: Namespace,
    directory: PathBuf,
    client: ::kube::Client,
}

impl Place {
    async fn new(test: &str) -> Option<Self> {
        let namespace = Namespace::for_test(test).await?;
        let directory = std::env::temp_dir().join(format!("kopf-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let client = client(&namespace).await;
        let place = Place { namespace, directory, client };
        place.edit("first");
        Some(place)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).expect("it is written");
    }

    /// Writes the script, whose mutating handler writes this mark.
    fn edit(&self, mark: &str) {
        let script = SCRIPT.replace("NAMESPACE", &self.namespace.name).replace("MARK", mark);
        self.write("handlers.lua", &script);
    }

    fn identity(&self, identity: &Identity) {
        self.write("tls.key", &identity.key);
        self.write("tls.crt", &identity.certificate);
    }

    fn managed(&self) -> String {
        format!("{}.kopf.dev", self.namespace.name)
    }

    /// Starts an operator on a port, which API servers reach at another one.
    fn start(&self, port: u16, published: u16, more: &[&str]) -> Operator {
        let path = |name: &str| self.file(name).display().to_string();
        let server = json!({
            "url": format!("https://127.0.0.1:{published}"), "port": port, "file_check_interval": 1,
            "certfile": path("tls.crt"), "pkeyfile": path("tls.key"), "cafile": path("ca.crt"),
        });
        let settings =
            [format!("admission.managed={}", self.managed()), format!("admission.server={server}")];
        let args =
            ["--verbose", "-n", &self.namespace.name, "--set", &settings[0], "--set", &settings[1]];
        let mut command = kopf(&self.namespace.kubeconfig(), &args);
        Operator::start(command.args(more).arg(self.file("handlers.lua")))
    }

    /// Waits until the configurations of the API server contain exactly these CA certificates.
    async fn until_published(&self, ca: &str) {
        until("the CA is published", async || {
            for kind in ["validating", "mutating"] {
                let path = format!(
                    "/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{}",
                    self.managed()
                );
                let found = send(&self.client, "GET", &path, &Value::Null).await?;
                let bundle = found["webhooks"][0]["clientConfig"]["caBundle"].as_str();
                let bundle = BASE64_STANDARD.decode(bundle.unwrap_or_default()).unwrap_or_default();
                if bundle != ca.as_bytes() {
                    return Err(format!("{kind}: {}", String::from_utf8_lossy(&bundle)));
                }
            }
            Ok(())
        })
        .await;
    }

    /// Returns the names of the webhooks that the API server calls.
    async fn webhooks(&self) -> String {
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let names = format!(
            "jsonpath={{.items[?(@.metadata.name=='{}')].webhooks[*].name}}",
            self.managed()
        );
        self.namespace.kubectl(&["get", kinds, "-o", &names]).await
    }

    /// Waits until requests are changed by the handler with this mark.
    async fn until_marked(&self, mark: &str) {
        until("the mark is there", async || {
            let made = create(&self.client, &self.namespace.name, "probe", "small").await?;
            let found = made["metadata"]["annotations"]["mark"].as_str().unwrap_or_default();
            if found == mark { Ok(()) } else { Err(made.to_string()) }
        })
        .await;
        until("large ones are denied", async || {
            match create(&self.client, &self.namespace.name, "probe", "large").await {
                Err(why) if why.contains("too large") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Edits the script, and waits until the API server uses the edit, and thus every earlier change of the webhooks.
    async fn settle(&self, mark: &str) {
        self.edit(mark);
        self.until_marked(mark).await;
    }

    fn load(&self) -> Load {
        Load::start(&self.client, &self.namespace.name)
    }

    fn remove(self) {
        remove(&self.directory);
    }
}

fn remove(directory: &Path) {
    std::fs::remove_dir_all(directory).expect("it is removed");
}

#[tokio::test]
async fn no_request_fails_while_the_script_is_edited_and_the_ca_is_replaced() {
    let Some(place) = Place::new("admission-rotation").await else { return };
    let (one, two) = (Identity::new("one"), Identity::new("two"));
    place.identity(&one);
    place.write("ca.crt", &one.ca);
    let port = free_port();
    let operator = place.start(port, port, &["--standalone"]);
    place.until_published(&one.ca).await;
    place.until_marked("first").await;
    let load = place.load();
    load.until_more(20).await;
    place.settle("edited").await;
    // The new CA is trusted before it signs any certificate.
    let both = format!("{}{}", one.ca, two.ca);
    place.write("ca.crt", &both);
    place.until_published(&both).await;
    place.settle("both").await;
    place.identity(&two);
    // The old one is trusted until the new certificate is in use.
    until("the new certificate is used", async || {
        let used = operator.output().matches("the webhook server have changed: using them").count();
        if used >= 2 { Ok(()) } else { Err(operator.output()) }
    })
    .await;
    place.write("ca.crt", &two.ca);
    place.until_published(&two.ca).await;
    place.settle("new").await;
    load.until_more(50).await;
    assert_eq!(load.end().await, [""; 0]);
    operator.stop().await.assert_code(0);
    place.remove();
}

/// The ports behind a balancer.
type Ports = Arc<Mutex<Vec<u16>>>;

/// Distributes connections over ports, and skips those without a listener.
async fn balance(listener: TcpListener, ports: Ports) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.expect("a connection");
        let (next, ports) = (Arc::clone(&next), ports.lock().clone());
        connections.spawn(async move {
            for _ in 0..ports.len() {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let Some(port) = ports.get(turn % ports.len()) else { return };
                let address = SocketAddr::from(([127, 0, 0, 1], *port));
                if let Ok(mut server) = TcpStream::connect(address).await {
                    // If either side ends, both end.
                    copy_bidirectional(&mut client, &mut server).await.ok();
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn requests_go_on_when_one_of_two_replicas_is_killed() {
    let Some(place) = Place::new("admission-replicas").await else { return };
    let identity = Identity::new("ca");
    place.identity(&identity);
    place.write("ca.crt", &identity.ca);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let published = listener.local_addr().expect("an address").port();
    let ports = [free_port(), free_port()];
    let mut tasks = JoinSet::new();
    tasks.spawn(balance(listener, Arc::new(Mutex::new(ports.to_vec()))));
    let replicas = ports.map(|port| {
        place.start(port, published, &["--leader-elect", "--lease", &place.namespace.name])
    });
    place.until_published(&identity.ca).await;
    place.until_marked("first").await;
    for port in ports {
        until("the replica serves", async || TcpStream::connect(("127.0.0.1", port)).await).await;
    }
    let load = place.load();
    load.until_more(50).await;
    let [one, other] = replicas;
    one.crash().await;
    load.until_more(100).await;
    let failures = load.end().await;
    // Only the requests that the replica was processing or was about to receive may fail.
    assert!(failures.len() <= 2 * CLIENTS, "{failures:?}");
    assert!(failures.iter().all(|it| it.contains("failed calling webhook")), "{failures:?}");
    other.stop().await.assert_code(0);
    tasks.shutdown().await;
    place.remove();
}

#[tokio::test]
async fn every_request_is_reviewed_while_two_replicas_are_replaced_one_after_another() {
    let Some(place) = Place::new("admission-update").await else { return };
    let identity = Identity::new("ca");
    place.identity(&identity);
    place.write("ca.crt", &identity.ca);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let published = listener.local_addr().expect("an address").port();
    let (ports, mut tasks) = (Ports::default(), JoinSet::new());
    tasks.spawn(balance(listener, Arc::clone(&ports)));
    let start = async || {
        let port = free_port();
        let replica =
            place.start(port, published, &["--leader-elect", "--lease", &place.namespace.name]);
        until("the replica serves", async || TcpStream::connect(("127.0.0.1", port)).await).await;
        ports.lock().push(port);
        replica
    };
    let mut replicas = VecDeque::from([start().await, start().await]);
    place.until_published(&identity.ca).await;
    place.until_marked("first").await;
    let load = place.load();
    load.until_more(20).await;
    for _ in 0..2 {
        replicas.push_back(start().await);
        // As in a cluster: new connections go to other replicas, then the process is stopped.
        ports.lock().remove(0);
        replicas.pop_front().expect("a replica").stop().await.assert_code(0);
        load.until_more(40).await;
    }
    // If a connection is closed just when a request is sent, the API server does not know whether it arrived: at most one failure for each
    // client and each of the two replicas that end.
    let failures = load.end().await;
    assert!(failures.len() <= 2 * CLIENTS, "{failures:?}");
    assert!(failures.iter().all(|it| it.contains("failed calling webhook")), "{failures:?}");
    let last = replicas.pop_back().expect("a replica");
    for replica in replicas {
        replica.stop().await.assert_code(0);
        assert_eq!(place.webhooks().await.split(' ').count(), 2, "another replica leads");
    }
    let last = last.stop().await;
    last.assert_code(0);
    assert_eq!(place.webhooks().await, "", "the last replica removes them: {}", last.output);
    tasks.shutdown().await;
    place.remove();
}
