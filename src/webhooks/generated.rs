//! Generates certificates: a CA and the certificate of the server, with keys on the curve P-256.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::logic::admission::certificates::BACKDATED;

/// A certificate with its key, PEM.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The start and the end of the validity of a certificate.
pub(super) type Life = (Timestamp, Timestamp);

/// Creates a CA with this name.
pub(super) fn ca(name: &str, life: Life) -> Result<Generated, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = ca_params(name, life).self_signed(&key)?;
    Ok(pem(&certificate, &key))
}

/// Creates the certificate of a server with these names, signed by a CA.
pub(super) fn leaf(
    names: &[String],
    life: Life,
    (ca_name, ca_key): (&str, &str),
) -> Result<Generated, rcgen::Error> {
    let issuer = Issuer::new(ca_params(ca_name, life), KeyPair::from_pem(ca_key)?);
    let key = KeyPair::generate()?;
    let mut params = with_life(life);
    params.distinguished_name = common_name(names.first().map_or("kopf", String::as_str));
    params.subject_alt_names = names.iter().map(|it| alternative(it)).collect::<Result<_, _>>()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(pem(&certificate, &key))
}

/// Returns the parameters of a CA certificate. They depend only on name and validity, so the issuer's name in a server certificate is that
/// of the CA.
fn ca_params(name: &str, life: Life) -> CertificateParams {
    let mut params = with_life(life);
    params.distinguished_name = common_name(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn with_life((from, until): Life) -> CertificateParams {
    let since_epoch = |it: Timestamp| {
        let epoch = Timestamp::UNIX_EPOCH;
        date_time_ymd(1970, 1, 1) + Duration::try_from(it.duration_since(epoch)).unwrap_or_default()
    };
    let mut params = CertificateParams::default();
    params.not_before = since_epoch(from.saturating_sub(BACKDATED).unwrap_or(from));
    params.not_after = since_epoch(until);
    params
}

fn common_name(name: &str) -> DistinguishedName {
    // The limit of X.509; clients check the alternative names.
    let end = name.floor_char_boundary(64);
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name.get(..end).unwrap_or_default());
    names
}

fn alternative(name: &str) -> Result<SanType, rcgen::Error> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into()?)),
    }
}

fn pem(certificate: &Certificate, key: &KeyPair) -> Generated {
    Generated { certificate: certificate.pem(), key: key.serialize_pem() }
}
