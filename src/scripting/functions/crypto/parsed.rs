//! The content of certificates.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::{
    certification_request::X509CertificationRequest,
    prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate},
};

use super::keys::{self, Public};
use crate::scripting::functions::{
    Call,
    hash::hex,
    outcome::{Failure, Outcome},
};

/// More names than any certificate has.
const NAMES_MAX: usize = 10_000;

/// Implements `crypto.parse`: describes a certificate.
pub(super) fn parse(call: &Call) -> Outcome {
    with_certificate("pem", call.text("pem"), |it, der| {
        Ok(json!({
            "subject": it.subject().to_string(),
            "issuer": it.issuer().to_string(),
            "names": names(it),
            "not_before": stamp(it.validity().not_before.timestamp())?,
            "not_after": stamp(it.validity().not_after.timestamp())?,
            "serial": hex(&it.serial.to_bytes_be()),
            "is_ca": it.is_ca(),
            "kind": Public::of_info(it.public_key()).map(|it| it.kind.to_string()),
            "fingerprint": hex(&Sha256::digest(der)),
        })
        .into())
    })
}

/// Calls a function with the first certificate of a PEM.
pub(super) fn with_certificate<T>(
    parameter: &str,
    text: &str,
    work: impl FnOnce(&X509Certificate<'_>, &[u8]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let expected = "expected a certificate in PEM (`-----BEGIN CERTIFICATE-----`)";
    let blocks = keys::blocks(text);
    let Some(block) = blocks.iter().find(|it| it.tag() == "CERTIFICATE") else {
        let got = keys::shown(&blocks);
        return Err(format!("`{parameter}`: {expected}, got {got}").into());
    };
    let parsed = x509_parser::parse_x509_certificate(block.contents());
    let (_, certificate) = parsed.map_err(|_problem| {
        Failure::Plain(format!("`{parameter}`: {expected}, got one that cannot be read"))
    })?;
    work(&certificate, block.contents())
}

/// Reads the public key of a request. Not with `rcgen`, which derives the key's kind from the signature: OpenSSL signs with SHA-256
/// on P-384, too.
pub(super) fn requested(request: &[u8]) -> Result<Public, Failure> {
    let parsed = X509CertificationRequest::from_der(request).ok();
    let public =
        parsed.and_then(|(_, it)| Public::of_info(&it.certification_request_info.subject_pki));
    public.ok_or_else(|| "`csr`: has a key of an unsupported kind".into())
}

/// Formats a time as RFC 3339, like all times of Kubernetes.
fn stamp(seconds: i64) -> Result<String, Failure> {
    let moment = Timestamp::from_second(seconds);
    let moment = moment.map_err(|it| Failure::Plain(format!("`pem`: {it}")))?;
    Ok(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn names(certificate: &X509Certificate<'_>) -> Vec<Value> {
    let names = certificate.extensions().iter().filter_map(|it| {
        let ParsedExtension::SubjectAlternativeName(names) = it.parsed_extension() else {
            return None;
        };
        Some(&names.general_names)
    });
    names.flatten().filter_map(name).take(NAMES_MAX).collect()
}

fn name(name: &GeneralName<'_>) -> Option<Value> {
    match name {
        GeneralName::DNSName(it) | GeneralName::RFC822Name(it) | GeneralName::URI(it) => {
            Some((*it).into())
        }
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|it| std::net::IpAddr::from(it).to_string());
            let v6 =
                || <[u8; 16]>::try_from(*bytes).map(|it| std::net::IpAddr::from(it).to_string());
            v4.or_else(|_| v6()).ok().map(Value::from)
        }
        GeneralName::OtherName(..)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => None,
    }
}
