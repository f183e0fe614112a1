//! Which certificates a connection trusts, and which one it presents: the options `ca`, `cert`, `key` and `insecure`.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

use crate::scripting::functions::outcome::Failure;

/// Which certificates a connection trusts, and which one it presents.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Trust {
    pub(super) ca: Option<String>,
    /// Any certificate is accepted.
    pub(super) is_insecure: bool,
    /// A certificate and its key.
    pub(super) identity: Option<(String, String)>,
}

pub(super) fn tls(trust: &Trust) -> Result<ClientConfig, Failure> {
    let ca = trust.ca.as_deref().unwrap_or_default();
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let added = certificate.map_err(|it| it.to_string());
        let added = added.and_then(|it| roots.add(it).map_err(|it| it.to_string()));
        added.map_err(|it| format!("`ca`: {it}"))?;
    }
    if !ca.is_empty() && roots.len() == before {
        return Err("`ca`: contains no certificate".into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions();
    let builder = builder.map_err(|it| Failure::Plain(it.to_string()))?;
    let builder = if trust.is_insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
    } else {
        builder.with_root_certificates(roots)
    };
    let Some((cert, key)) = &trust.identity else { return Ok(builder.with_no_client_auth()) };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(cert.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|it| format!("`cert`: {it}"))?;
    if chain.is_empty() {
        return Err("`cert`: contains no certificate".into());
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|it| format!("`key`: {it}"))?;
    let config = builder.with_client_auth_cert(chain, key);
    Ok(config.map_err(|it| format!("`cert` and `key`: {it}"))?)
}

/// Accepts any certificate; the server must have its key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
