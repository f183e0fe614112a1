//! Reads the certificate of the API server: it shows which kind of local cluster it belongs to.

use std::{sync::Arc, time::Duration};

use http::Uri;
use kube::{Config, client::ConfigExt as _};
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

/// Time limit of the connection.
const WITHIN: Duration = Duration::from_secs(10);

/// The address of a server, and the certificate authorities that it is checked with.
pub(super) struct ServerAddress {
    url: Uri,
    authorities: Option<Vec<Vec<u8>>>,
    accept_invalid: bool,
    name: Option<String>,
}

impl ServerAddress {
    /// Returns the address of the server of a configuration; `None` if requests pass a proxy, or without TLS.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let is_direct =
            config.proxy_url.is_none() && config.cluster_url.scheme_str() == Some("https");
        is_direct.then(|| ServerAddress {
            url: config.cluster_url.clone(),
            authorities: config.root_cert.clone(),
            accept_invalid: config.accept_invalid_certs,
            name: config.tls_server_name.clone(),
        })
    }

    /// Connects to the server, and returns its certificate as DER.
    pub(super) async fn certificate(&self) -> Result<Vec<u8>, String> {
        let read = timeout(WITHIN, self.read()).await;
        read.unwrap_or_else(|_elapsed| Err(format!("no connection within {} s", WITHIN.as_secs())))
    }

    async fn read(&self) -> Result<Vec<u8>, String> {
        let mut config = Config::new(self.url.clone());
        config.root_cert.clone_from(&self.authorities);
        config.accept_invalid_certs = self.accept_invalid;
        config.tls_server_name.clone_from(&self.name);
        let tls = config.rustls_client_config().map_err(|it| it.to_string())?;
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = self.name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(|it| it.to_string())?;
        let port = self.url.port_u16().unwrap_or(443);
        let socket = TcpStream::connect((host, port)).await.map_err(|it| it.to_string())?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, socket).await;
        let stream = stream.map_err(|it| it.to_string())?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        chain.first().map(|it| it.to_vec()).ok_or_else(|| "the server has none".to_owned())
    }
}
