//! Opens the webhook server, and publishes its address for API servers.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::{BoxFuture, pending};
use serde_json::{Map, Value};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
    time,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    connection::{self, Shared, TARGET},
    files::{self, CertificateFiles},
    generated,
    secret::{CertificateSecret, secrets},
    this_machine,
    tls::{self, ServerCertificate},
    tunnel::{self, Tunnel},
};
use crate::logic::admission::{
    certificates::CA_LIFE,
    configuration::{ClientConfig, WebhookEndpoint},
    own_objects::OwnObjects,
    server::{self, CertificatePlan, Publishing, ServerPlan},
};
use crate::ports::{RunningServer, ScriptGuard, WebhookParts, WebhookServer, WebhookSetup};
use crate::settings::Settings;

/// Maximum number of connections; more wait in the queue of the operating system. Each API server needs a few.
const CONNECTIONS_MAX: usize = 512;

/// Maximum number of reviews that are handled at once.
const REVIEWS_MAX: usize = 64;

/// Time limit for reviews in progress when the operator stops: as long as API servers wait.
const END_MAX: Duration = Duration::from_secs(30);

/// The validity of a certificate that is generated for one process: longer than any process runs.
const PROCESS_YEARS: u32 = 10;

/// The pause before the next attempt when the system cannot accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The error if scripts cannot be guarded.
const UNREACHABLE: &str = "--guard-configmaps needs webhooks that API servers can reach: use --webhook-service, --webhook-url or on_tunnel";

type Client = Arc<watch::Sender<Option<ClientConfig>>>;

/// The webhook server of `kopf run`.
#[derive(Clone, Debug, Default)]
pub struct HttpsWebhooks {
    /// The objects that its webhooks do not review.
    pub own: OwnObjects,
}

impl WebhookServer for HttpsWebhooks {
    fn own_objects(&self) -> OwnObjects {
        self.own.clone()
    }

    fn setup(&self, settings: &Settings, publishing: Publishing) -> Result<WebhookSetup, String> {
        ServerPlan::of(&settings.admission, publishing)?;
        Ok(WebhookSetup { managed: server::managed(&settings.admission, publishing) })
    }

    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>> {
        Box::pin(start(parts))
    }
}

/// The webhook server of `kopf run --guard-configmaps`.
pub struct GuardedWebhooks {
    /// The server that receives the reviews.
    pub server: HttpsWebhooks,
    /// Loads edited scripts before their `ConfigMap` is stored.
    pub guard: Arc<dyn ScriptGuard>,
}

impl WebhookServer for GuardedWebhooks {
    fn own_objects(&self) -> OwnObjects {
        self.server.own_objects()
    }

    fn guard(&self) -> Option<Arc<dyn ScriptGuard>> {
        Some(Arc::clone(&self.guard))
    }

    fn setup(&self, settings: &Settings, publishing: Publishing) -> Result<WebhookSetup, String> {
        let setup = self.server.setup(settings, publishing).ok().filter(|it| it.managed.is_some());
        setup.ok_or_else(|| UNREACHABLE.to_owned())
    }

    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>> {
        self.server.start(parts)
    }
}

async fn start(parts: WebhookParts) -> Result<RunningServer, String> {
    let tunnel = parts.tunnel.clone();
    let publishing = if tunnel.is_some() { Publishing::Tunnel } else { Publishing::Settings };
    let mut admission = parts.settings.admission.clone();
    if let Some(server) = &mut admission.server
        && let Some(wanted) = server.cluster
    {
        server.host = this_machine::host(wanted, &*parts.cluster).await;
    }
    let plan = ServerPlan::of(&admission, publishing)?;
    let socket = bind(plan.address.as_deref(), plan.port).await?;
    let port = socket.local_addr().map_err(|it| it.to_string())?.port();
    let endpoint = plan.endpoint(port);
    let (sender, client) = watch::channel(None);
    let client_config = Arc::new(sender);
    let certificate = ServerCertificate::default();
    let upkeep = upkeep(&plan, &parts, (&certificate, &client_config), endpoint.clone()).await?;
    let tls = acceptor(&plan, certificate).await?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let address = plan.address.as_deref().unwrap_or("*");
    tracing::debug!(target: TARGET, "Listening for webhooks at {scheme}://{address}:{port}{}", plan.path);
    if tunnel.is_none()
        && let WebhookEndpoint::Url(url) = &endpoint
    {
        tracing::debug!(target: TARGET, "Accessing the webhooks at {url}");
    }
    let shared = Shared {
        reviewer: Arc::clone(&parts.reviewer),
        path: plan.path.clone(),
        is_service: matches!(endpoint, WebhookEndpoint::Service(_)),
        metrics: parts.health.metrics().clone(),
        permits: Semaphore::new(REVIEWS_MAX),
    };
    let dump = dump(plan.server.cadump.clone(), client.clone());
    let (client, tunneling) = match tunnel {
        Some(ask) => {
            let (server, interval) = (described(&plan, port), plan.server.file_check_interval);
            tunnel::start(Tunnel { ask, server, interval, health: parts.health.clone() }, client)
        }
        None => (client, Box::pin(pending()) as BoxFuture<'static, ()>),
    };
    let serving = Box::pin(async move {
        tokio::select! {
            () = accept(socket, tls, Arc::new(shared), parts.stop) => {}
            () = upkeep => {}
            () = dump => {}
            () = tunneling => {}
        }
        drop(client_config);
    });
    Ok(RunningServer { serving, client })
}

/// Returns the kwarg `server` of tunnel handlers, without the CA.
fn described(plan: &ServerPlan, port: u16) -> Map<String, Value> {
    let path = if plan.path.is_empty() { "/" } else { &plan.path };
    let fields =
        [("port", port.into()), ("path", path.into()), ("insecure", plan.server.insecure.into())];
    fields.map(|(name, value): (&str, Value)| (name.to_owned(), value)).into_iter().collect()
}

async fn bind(address: Option<&str>, port: u16) -> Result<TcpListener, String> {
    let bound = match address {
        None => {
            // The first address accepts IPv6 and IPv4, where both exist.
            let all = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
            TcpListener::bind(&all.map(|it| SocketAddr::new(it, port))[..]).await
        }
        Some(address) => TcpListener::bind((address, port)).await,
    };
    let address = address.unwrap_or("*");
    bound.map_err(|it| format!("the webhook server cannot listen on {address}:{port}: {it}"))
}

async fn acceptor(
    plan: &ServerPlan,
    certificate: ServerCertificate,
) -> Result<Option<TlsAcceptor>, String> {
    if plan.certificate == CertificatePlan::Insecure {
        return Ok(None);
    }
    let clients = match (&plan.server.verify_cadata, &plan.server.verify_cafile) {
        (Some(data), _) => Some(data.clone()),
        (None, Some(file)) => Some(files::read(file).await?),
        (None, None) => None,
    };
    if clients.is_some() {
        tracing::debug!(target: TARGET, "Loading a CA for client certificate verification.");
    }
    let config = tls::config(certificate, plan.verify_mode, clients.as_deref())?;
    Ok(Some(TlsAcceptor::from(config)))
}

/// Prepares the certificate. Returns the future that keeps it up to date and never ends.
async fn upkeep(
    plan: &ServerPlan,
    parts: &WebhookParts,
    (certificate, client): (&ServerCertificate, &Client),
    endpoint: WebhookEndpoint,
) -> Result<BoxFuture<'static, ()>, String> {
    let publish = |ca| {
        client.send_replace(Some(ClientConfig { endpoint: endpoint.clone(), ca }));
    };
    match &plan.certificate {
        CertificatePlan::Insecure => {
            publish(files::published(&plan.server).await?);
            Ok(Box::pin(pending()))
        }
        CertificatePlan::Files(certificates, key) => {
            tracing::debug!(target: TARGET, "Using a provided certificate for HTTPS.");
            let (certificates, key) = (certificates.clone(), key.clone());
            let files = CertificateFiles { certificates, key, server: plan.server.clone() };
            let content = files.read(certificate).await?;
            publish(Some(content.ca.clone()));
            Ok(Box::pin(files.follow(content, certificate.clone(), Arc::clone(client))))
        }
        CertificatePlan::Generated(names) => {
            tracing::debug!(target: TARGET, "Generating a self-signed certificate for HTTPS.");
            let from = parts.clock.now();
            let life = (from, from.saturating_add(CA_LIFE * PROCESS_YEARS).unwrap_or(from));
            let name = format!("kopf-webhook-ca-{}", from.as_second());
            let made = generated::ca(&name, life).and_then(|ca| {
                let leaf = generated::leaf(names, life, (&name, &ca.key))?;
                Ok((ca, leaf))
            });
            let (ca, leaf) = made.map_err(|it| format!("cannot generate a certificate: {it}"))?;
            certificate.set(&leaf.certificate, &leaf.key)?;
            publish(Some(ca.certificate));
            Ok(Box::pin(pending()))
        }
        CertificatePlan::Secret { namespace, name, names } => {
            let secret = CertificateSecret {
                cluster: Arc::clone(&parts.cluster),
                clock: parts.clock,
                health: parts.health.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
                names: names.clone(),
                resource: secrets(),
            };
            Ok(Box::pin(secret.follow(certificate.clone(), Arc::clone(client), endpoint)))
        }
    }
}

/// Writes the published CA to the file of the option `cadump`, each time it changes; never ends.
async fn dump(path: Option<String>, mut client: watch::Receiver<Option<ClientConfig>>) {
    let Some(path) = path else { return pending().await };
    loop {
        let ca = client.borrow_and_update().clone().and_then(|it| it.ca);
        if let Some(ca) = ca
            && let Err(problem) = files::dump(&path, ca).await
        {
            tracing::error!(target: TARGET, "The CA of the webhook server is not saved: {problem}");
        }
        if client.changed().await.is_err() {
            return pending().await;
        }
    }
}

/// Serves connections until `stop`; then reviews in progress are finished.
async fn accept(
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        let has_room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            biased; // the end first, then ended connections, which make room for new ones
            () = stop.cancelled() => break,
            Some(_ended) = connections.join_next() => {}
            accepted = socket.accept(), if has_room => match accepted {
                Ok((stream, _peer)) => {
                    let (tls, shared) = (tls.clone(), Arc::clone(&shared));
                    connections.spawn(connection::serve(stream, tls, shared, stop.clone()));
                }
                Err(_lost) => time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(socket);
    let all = async { while connections.join_next().await.is_some() {} };
    // Connections that are still open then are closed when the set is dropped.
    let _some_are_left = time::timeout(END_MAX, all).await.is_err();
}
