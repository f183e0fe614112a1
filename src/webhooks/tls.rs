//! The current certificate of the server, and the certificates that clients need.
//!
//! The certificate is replaced while the server runs: connections that are open keep the one that they began with.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};

use crate::settings::VerifyMode;

/// The current certificate. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerCertificate(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl ServerCertificate {
    /// Replaces the certificate by these certificates and this key, PEM.
    pub(super) fn set(&self, certificates: &str, key: &str) -> Result<(), String> {
        let chain = certificates_of(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|it| format!("the key is not valid PEM: {it}"))?;
        let certified = CertifiedKey::from_der(chain, key, &provider())
            .map_err(|it| format!("the certificate cannot be used: {it}"))?;
        *self.0.write() = Some(Arc::new(certified));
        Ok(())
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

/// Returns the certificates of a PEM text. There is at least one.
pub(super) fn certificates_of(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|it| format!("the certificates are not valid PEM: {it}"))?;
    if all.is_empty() { Err("it contains no certificate".to_owned()) } else { Ok(all) }
}

/// Returns the TLS options of the server. `clients` are the CAs of clients, PEM.
pub(super) fn config(
    certificate: ServerCertificate,
    mode: VerifyMode,
    clients: Option<&str>,
) -> Result<Arc<ServerConfig>, String> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|it| it.to_string())?;
    let builder = match (mode, clients) {
        (VerifyMode::None, _) | (_, None) => builder.with_no_client_auth(),
        (VerifyMode::Optional | VerifyMode::Required, Some(clients)) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates_of(clients)? {
                roots.add(authority).map_err(|it| format!("a client CA is invalid: {it}"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier = if mode == VerifyMode::Optional {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|it| it.to_string())?)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificate));
    // API servers call webhooks over HTTP/1.1 if nothing else is offered.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
