//! Describes the certificate of a client as Python's `getpeercert` does: the kwarg `sslpeer`.

use jiff::{Timestamp, fmt::strtime, tz::TimeZone};
use rustls::pki_types::CertificateDer;
use serde_json::{Map, Value, json};
use x509_parser::{
    certificate::X509Certificate,
    extensions::GeneralName,
    objects::{oid_registry, oid2sn},
    parse_x509_certificate,
    time::ASN1Time,
    x509::{AttributeTypeAndValue, X509Name},
};

use crate::logic::admission::local_cluster::ServerFacts;

/// Returns the description of a verified certificate; an empty map if it cannot be read.
pub(super) fn described(certificate: &CertificateDer<'_>) -> Value {
    match parse_x509_certificate(certificate) {
        Ok((_rest, parsed)) => describe(&parsed),
        Err(_) => Value::Object(Map::new()),
    }
}

/// Returns the names in the certificate of an API server.
pub(super) fn facts(certificate: &CertificateDer<'_>) -> ServerFacts {
    let Ok((_rest, parsed)) = parse_x509_certificate(certificate) else {
        return ServerFacts::default();
    };
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.map(|it| it.value.general_names.as_slice()).unwrap_or_default();
    let hosts = alternatives.iter().filter_map(|it| {
        let GeneralName::DNSName(host) = it else { return None };
        Some((*host).to_owned())
    });
    ServerFacts {
        names: texts(parsed.subject().iter_common_name()),
        organizations: texts(parsed.subject().iter_organization()),
        issuers: texts(parsed.issuer().iter_common_name()),
        hosts: hosts.collect(),
        version: None,
    }
}

fn texts<'a>(attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>) -> Vec<String> {
    attributes.filter_map(|it| it.as_str().ok().map(str::to_owned)).collect()
}

fn describe(certificate: &X509Certificate<'_>) -> Value {
    let validity = certificate.validity();
    let mut described = Map::from_iter([
        ("subject".to_owned(), names(certificate.subject())),
        ("issuer".to_owned(), names(certificate.issuer())),
        ("version".to_owned(), (certificate.version().0 + 1).into()),
        ("serialNumber".to_owned(), format!("{:X}", certificate.serial).into()),
        ("notBefore".to_owned(), time(validity.not_before).into()),
        ("notAfter".to_owned(), time(validity.not_after).into()),
    ]);
    if let Ok(Some(alternatives)) = certificate.subject_alternative_name() {
        let all = alternatives.value.general_names.iter().filter_map(alternative);
        described.insert("subjectAltName".to_owned(), all.collect());
    }
    Value::Object(described)
}

/// Converts a name into a list of lists of pairs, as in Python.
fn names(name: &X509Name<'_>) -> Value {
    let part = |part: &x509_parser::x509::RelativeDistinguishedName<'_>| -> Value {
        let attributes = part.iter().map(|it| {
            let key = oid2sn(it.attr_type(), oid_registry());
            let key = match key {
                Ok("CN") => "commonName",
                Ok("O") => "organizationName",
                Ok("OU") => "organizationalUnitName",
                Ok("C") => "countryName",
                Ok("ST") => "stateOrProvinceName",
                Ok("L") => "localityName",
                Ok(other) => other,
                Err(_) => "unknown",
            };
            json!([key, it.as_str().unwrap_or_default()])
        });
        attributes.collect()
    };
    name.iter().map(part).collect()
}

fn alternative(name: &GeneralName<'_>) -> Option<Value> {
    match name {
        GeneralName::DNSName(it) => Some(json!(["DNS", it])),
        GeneralName::RFC822Name(it) => Some(json!(["email", it])),
        GeneralName::URI(it) => Some(json!(["URI", it])),
        GeneralName::IPAddress(bytes) => {
            let address = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
            let address =
                address.or_else(|_| <[u8; 16]>::try_from(*bytes).map(std::net::IpAddr::from));
            Some(json!(["IP Address", address.ok()?.to_string()]))
        }
        GeneralName::OtherName(..)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => None,
    }
}

/// Formats a time as OpenSSL does.
fn time(time: ASN1Time) -> String {
    let moment = Timestamp::from_second(time.timestamp()).unwrap_or_default();
    let zoned = moment.to_zoned(TimeZone::UTC);
    strtime::format("%b %e %H:%M:%S %Y GMT", &zoned).unwrap_or_default()
}
