//! Certificates from files, such as a mounted Secret: read again at an interval, and used when they have changed.

use std::sync::Arc;

use tokio::{sync::watch, time};

use super::{connection::TARGET, tls::ServerCertificate};
use crate::logic::admission::configuration::ClientConfig;
use crate::settings::WebhookServer;

/// The files of a server.
pub(super) struct CertificateFiles {
    pub(super) certificates: String,
    pub(super) key: String,
    pub(super) server: WebhookServer,
}

/// The content of the files.
#[derive(Clone, PartialEq)]
pub(super) struct CertificateContent {
    certificates: String,
    key: String,
    /// The published CA; without one, the certificates themselves.
    pub(super) ca: String,
}

impl CertificateFiles {
    /// Reads the files, and uses the certificate.
    pub(super) async fn read(
        &self,
        certificate: &ServerCertificate,
    ) -> Result<CertificateContent, String> {
        let certificates = read(&self.certificates).await?;
        let key = read(&self.key).await?;
        // Without another CA, clients trust the certificate itself.
        let ca = published(&self.server).await?.unwrap_or_else(|| certificates.clone());
        certificate
            .set(&certificates, &key)
            .map_err(|it| format!("{}: {it}", self.certificates))?;
        Ok(CertificateContent { certificates, key, ca })
    }

    /// Checks the files at the interval of the options; uses changed ones, and publishes their CA.
    pub(super) async fn follow(
        self,
        mut present: CertificateContent,
        certificate: ServerCertificate,
        client: Arc<watch::Sender<Option<ClientConfig>>>,
    ) {
        loop {
            time::sleep(self.server.file_check_interval).await;
            match self.read(&certificate).await {
                Ok(content) if content == present => {}
                Ok(content) => {
                    tracing::info!(target: TARGET, "The certificate files of the webhook server have changed: using them.");
                    client.send_if_modified(|it| {
                        let Some(it) = it else { return false };
                        let ca = Some(content.ca.clone());
                        std::mem::replace(&mut it.ca, ca.clone()) != ca
                    });
                    present = content;
                }
                Err(problem) => {
                    tracing::error!(
                        target: TARGET,
                        "Cannot use the changed certificate files of the webhook server, keeping the old ones: {problem}"
                    );
                }
            }
        }
    }
}

/// Returns the published CA of the options, if there is one.
pub(super) async fn published(server: &WebhookServer) -> Result<Option<String>, String> {
    match (&server.cadata, &server.cafile) {
        (Some(data), _) => Ok(Some(data.clone())),
        (None, Some(file)) => read(file).await.map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads a file in a separate thread, because it may be on a network.
pub(super) async fn read(path: &str) -> Result<String, String> {
    let owned = path.to_owned();
    let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(owned)).await;
    text.map_err(|it| it.to_string())?.map_err(|it| format!("cannot read {path}: {it}"))
}

/// Writes the published CA to a file.
pub(super) async fn dump(path: &str, ca: String) -> Result<(), String> {
    let owned = path.to_owned();
    let written = tokio::task::spawn_blocking(move || std::fs::write(owned, ca)).await;
    written.map_err(|it| it.to_string())?.map_err(|it| format!("cannot write {path}: {it}"))
}
