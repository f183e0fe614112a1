//! Derives the webhook server from the settings.

use super::configuration::{Service, WebhookEndpoint};
use crate::settings::{AdmissionSettings, VerifyMode, WebhookServer, WebhookService};

/// The port behind a service or a URL, as in Kubernetes' own webhooks.
const PORT: u16 = 9443;

/// The name of the configurations of a server with a URL, as in Kopf's documentation.
const NAME: &str = "auto.kopf.dev";

const MISSING: &str = "Admission handlers exist, but no admission server/tunnel is configured in \
    `settings.admission.server`: use --webhook-service or --webhook-url, or set the setting in a startup handler.";

const TWO_ADDRESSES: &str = "handlers of on_tunnel determine the URL of the webhooks: remove --webhook-service, \
    --webhook-url, and `url` and `cluster` of `settings.admission.server`, or the handlers";

/// The source of the address by which API servers reach the webhook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// The options of the webhook server in the settings.
    Settings,
    /// The handlers of `on_tunnel`, which return it.
    Tunnel,
}

/// A webhook server and how it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// The address to listen on; `None`: all addresses.
    pub address: Option<String>,
    /// The port to listen on; 0 is any free one.
    pub port: u16,
    /// The path above the handlers, such as `/hooks`; empty for none.
    pub path: String,
    /// Where the certificate comes from.
    pub certificate: CertificatePlan,
    /// Whether clients need a certificate.
    pub verify_mode: VerifyMode,
    /// All options of the server, as they were set.
    pub server: WebhookServer,
    service: Option<WebhookService>,
}

/// The source of the certificate of a webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificatePlan {
    /// There is none: the server speaks plain HTTP.
    Insecure,
    /// From these files: the certificates and the key.
    Files(String, String),
    /// Generated for this process, for these names.
    Generated(Vec<String>),
    /// Generated once for all replicas, for these names.
    Secret {
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        name: String,
        /// The names of the server.
        names: Vec<String>,
    },
}

impl ServerPlan {
    /// Returns the server that the settings describe.
    ///
    /// # Errors
    /// Fails if they describe none.
    pub fn of(settings: &AdmissionSettings, publishing: Publishing) -> Result<Self, String> {
        let has_none = settings.server.is_none() && settings.service.is_none();
        if has_none && publishing == Publishing::Settings {
            return Err(MISSING.to_owned());
        }
        let is_placed = |it: &WebhookServer| it.url.is_some() || it.cluster.is_some();
        let is_published =
            settings.service.is_some() || settings.server.as_ref().is_some_and(is_placed);
        if is_published && publishing == Publishing::Tunnel {
            return Err(TWO_ADDRESSES.to_owned());
        }
        let server = settings.server.clone().unwrap_or_default();
        let is_published = settings.service.is_some() || server.url.is_some();
        let path = server.path.as_deref().unwrap_or_default().trim_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        let has_clients = server.verify_cafile.is_some() || server.verify_cadata.is_some();
        let verify_mode = match server.verify_mode.unwrap_or(VerifyMode::None) {
            VerifyMode::None if has_clients => VerifyMode::Optional,
            mode @ (VerifyMode::None | VerifyMode::Optional | VerifyMode::Required) => mode,
        };
        Ok(ServerPlan {
            address: server.addr.clone(),
            port: server.port.unwrap_or(if is_published { PORT } else { 0 }),
            path,
            certificate: certificate(settings, &server),
            verify_mode,
            server,
            service: settings.service.clone(),
        })
    }

    /// Returns how API servers reach the server that listens on this port.
    pub fn endpoint(&self, port: u16) -> WebhookEndpoint {
        if let Some(WebhookService { namespace, name, port }) = self.service.clone() {
            return WebhookEndpoint::Service(Service {
                namespace,
                name,
                port,
                path: self.path.clone(),
            });
        }
        if let Some(url) = &self.server.url {
            return WebhookEndpoint::Url(url.clone());
        }
        let (scheme, usual) = if self.server.insecure { ("http", 80) } else { ("https", 443) };
        let host = host(&self.server);
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let port = if port == usual { String::new() } else { format!(":{port}") };
        WebhookEndpoint::Url(format!("{scheme}://{host}{port}{}", self.path))
    }
}

/// Returns the name of the webhook configurations; `None`: the operator writes none.
pub fn managed(settings: &AdmissionSettings, publishing: Publishing) -> Option<String> {
    let of_service = |it: &WebhookService| format!("{}.{}.svc", it.name, it.namespace);
    let is_found = |it: &WebhookServer| it.url.is_some() || it.cluster.is_some();
    let has_url =
        publishing == Publishing::Tunnel || settings.server.as_ref().is_some_and(is_found);
    let named = settings.managed.clone().or_else(|| settings.service.as_ref().map(of_service));
    named.or_else(|| has_url.then(|| NAME.to_owned()))
}

fn certificate(settings: &AdmissionSettings, server: &WebhookServer) -> CertificatePlan {
    if server.insecure {
        return CertificatePlan::Insecure;
    }
    if let (Some(certificates), Some(key)) = (&server.certfile, &server.pkeyfile) {
        return CertificatePlan::Files(certificates.clone(), key.clone());
    }
    let Some(WebhookService { namespace, name, .. }) = &settings.service else {
        return CertificatePlan::Generated(names(server));
    };
    let mut names = vec![
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
        format!("{name}.{namespace}"),
    ];
    names.extend(server.extra_sans.iter().cloned());
    let secret = settings.secret.clone().unwrap_or_else(|| format!("{name}-webhook"));
    CertificatePlan::Secret { namespace: namespace.clone(), name: secret, names }
}

/// Returns the names in the generated certificate: those by which clients may reach the server.
fn names(server: &WebhookServer) -> Vec<String> {
    let of_url = server.url.as_deref().map(host_of_url);
    let all = [of_url, Some(host(server)), server.addr.clone()];
    let all = all.into_iter().flatten().chain(server.extra_sans.iter().cloned());
    let is_unspecified = |it: &String| matches!(it.as_str(), "0.0.0.0" | "::");
    let mut names = Vec::new();
    for name in all.filter(|it| !is_unspecified(it)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the host in the URL of a server without a service.
fn host(server: &WebhookServer) -> String {
    let accessible = match server.addr.as_deref() {
        None => "localhost",
        Some("0.0.0.0") => "127.0.0.1",
        Some("::") => "::1",
        Some(address) => address,
    };
    server.host.clone().unwrap_or_else(|| accessible.to_owned())
}

fn host_of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((address, _)) => address.to_owned(),
        None => authority.split(':').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AdmissionSettings, CertificatePlan, Publishing, ServerPlan, WebhookEndpoint, WebhookServer,
        managed,
    };
    use crate::settings::{LocalCluster, WebhookService};

    fn with(server: WebhookServer) -> AdmissionSettings {
        AdmissionSettings { server: Some(server), ..AdmissionSettings::default() }
    }

    fn url(server: WebhookServer) -> String {
        let plan = ServerPlan::of(&with(server), Publishing::Settings).unwrap();
        match plan.endpoint(plan.port) {
            WebhookEndpoint::Url(url) => url,
            WebhookEndpoint::Service(service) => panic!("{service:?}"),
        }
    }

    #[test]
    fn the_published_url_leaves_out_usual_ports_and_brackets_addresses() {
        let port = |port, insecure| WebhookServer {
            port: Some(port),
            insecure,
            ..WebhookServer::default()
        };
        assert_eq!(url(port(443, false)), "https://localhost");
        assert_eq!(url(port(8443, false)), "https://localhost:8443");
        assert_eq!(url(port(80, true)), "http://localhost");
        let addr = |it: &str| WebhookServer { addr: Some(it.into()), ..port(443, false) };
        assert_eq!(url(addr("0.0.0.0")), "https://127.0.0.1");
        assert_eq!(url(addr("::")), "https://[::1]");
        let server = WebhookServer {
            host: Some("me".into()),
            path: Some("/a/b/".into()),
            ..addr("10.0.0.1")
        };
        assert_eq!(url(server), "https://me/a/b");
        let server = WebhookServer { url: Some("https://ops.example.com/x".into()), ..addr("::") };
        assert_eq!(url(server), "https://ops.example.com/x");
    }

    #[test]
    fn the_generated_certificate_has_all_names_by_which_clients_may_come() {
        let server = WebhookServer {
            addr: Some("0.0.0.0".into()),
            url: Some("https://[fd00::1]:9443/x".into()),
            extra_sans: vec!["ops.example.com".to_owned(), "127.0.0.1".to_owned()],
            ..WebhookServer::default()
        };
        let names = ["fd00::1", "127.0.0.1", "ops.example.com"].map(str::to_owned).to_vec();
        let plan = ServerPlan::of(&with(server), Publishing::Settings).unwrap();
        assert_eq!((plan.certificate, plan.port), (CertificatePlan::Generated(names), 9443));
    }

    #[test]
    fn configurations_are_managed_by_default_only_if_api_servers_can_reach_the_server() {
        let url = WebhookServer { url: Some("https://a".into()), ..WebhookServer::default() };
        let service = WebhookService { namespace: "ops".into(), name: "hooks".into(), port: None };
        let service = AdmissionSettings { service: Some(service), ..AdmissionSettings::default() };
        let cluster =
            WebhookServer { cluster: Some(LocalCluster::Auto), ..WebhookServer::default() };
        let named = AdmissionSettings { managed: Some("mine".into()), ..service.clone() };
        let of = |it: &AdmissionSettings| managed(it, Publishing::Settings);
        assert_eq!(of(&with(WebhookServer::default())), None);
        assert_eq!(of(&with(url.clone())).as_deref(), Some("auto.kopf.dev"));
        assert_eq!(of(&with(cluster.clone())).as_deref(), Some("auto.kopf.dev"));
        assert_eq!(of(&service).as_deref(), Some("hooks.ops.svc"));
        assert_eq!(of(&named).as_deref(), Some("mine"));
        let none = AdmissionSettings::default();
        assert_eq!(managed(&none, Publishing::Tunnel).as_deref(), Some("auto.kopf.dev"));
        let problem = ServerPlan::of(&none, Publishing::Settings).unwrap_err();
        assert!(problem.starts_with("Admission handlers exist, but no admission server/tunnel"));
        assert!(ServerPlan::of(&none, Publishing::Tunnel).is_ok());
        for settings in [&service, &with(url), &with(cluster)] {
            let problem = ServerPlan::of(settings, Publishing::Tunnel).unwrap_err();
            assert!(problem.starts_with("handlers of on_tunnel determine the URL"), "{problem}");
        }
    }
}
