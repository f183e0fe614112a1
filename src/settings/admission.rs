//! `settings.admission`: the server of admission webhooks.

use std::time::Duration;

/// `settings.admission`: the server of admission webhooks and its configurations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionSettings {
    /// The server; `None`: the service or nothing determines it.
    pub server: Option<WebhookServer>,
    /// The name of the webhook configurations that the operator writes. `None`: none, unless the server has a URL or a service.
    pub managed: Option<String>,
    /// The service in the cluster that routes to the server.
    pub service: Option<WebhookService>,
    /// The name of the Secret with the certificates, in the namespace of the service. `None`: it is named after the service.
    pub secret: Option<String>,
}

/// A service in the cluster: `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookService {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The port of the service; `None`: 443.
    pub port: Option<u16>,
}

/// The options of the webhook server; the names are Kopf's.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookServer {
    /// The address to listen on; `None`: all addresses.
    pub addr: Option<String>,
    /// The port to listen on; `None`: 9443 with a service or a URL, otherwise any free one.
    pub port: Option<u16>,
    /// The path above the handlers.
    pub path: Option<String>,
    /// The host in the published URL.
    pub host: Option<String>,
    /// The local cluster whose API server calls this machine: determines the host.
    pub cluster: Option<LocalCluster>,
    /// The whole published URL.
    pub url: Option<String>,
    /// File with the certificates of the server, PEM.
    pub certfile: Option<String>,
    /// File with the key of the server, PEM.
    pub pkeyfile: Option<String>,
    /// The published CA, PEM.
    pub cadata: Option<String>,
    /// File with the published CA, PEM.
    pub cafile: Option<String>,
    /// File to write the published CA to.
    pub cadump: Option<String>,
    /// More names for the generated certificate.
    pub extra_sans: Vec<String>,
    /// Serve plain HTTP, without a certificate.
    pub insecure: bool,
    /// Whether clients need a certificate.
    pub verify_mode: Option<VerifyMode>,
    /// File with the CAs of clients, PEM.
    pub verify_cafile: Option<String>,
    /// The CAs of clients, PEM.
    pub verify_cadata: Option<String>,
    /// How often certificate files are checked for changes.
    pub file_check_interval: Duration,
}

/// A cluster on this machine, in a container or a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCluster {
    /// Whichever is detected.
    Auto,
    /// The cluster of Docker Desktop.
    DockerDesktop,
    /// A cluster that k3d has created.
    K3d,
    /// A cluster that kind has created.
    Kind,
    /// A cluster that minikube has created.
    Minikube,
}

/// The requirement of certificates for clients of the webhook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMode {
    /// Certificates of clients are not requested.
    None,
    /// Clients may have a certificate, which must be valid then.
    Optional,
    /// Clients must have a valid certificate.
    Required,
}

impl Default for WebhookServer {
    fn default() -> Self {
        WebhookServer {
            addr: None,
            port: None,
            path: None,
            host: None,
            cluster: None,
            url: None,
            certfile: None,
            pkeyfile: None,
            cadata: None,
            cafile: None,
            cadump: None,
            extra_sans: Vec::new(),
            insecure: false,
            verify_mode: None,
            verify_cafile: None,
            verify_cadata: None,
            file_check_interval: Duration::from_mins(1),
        }
    }
}
