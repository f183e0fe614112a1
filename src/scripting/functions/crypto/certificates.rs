//! Certificates and certificate requests.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use serde_json::{Map, Value, json};
use x509_parser::prelude::X509Certificate;

use super::{
    keys::{self, KeyKind, Public, SigningKey},
    parsed,
};
use crate::scripting::functions::{
    Call,
    outcome::{Failure, Outcome},
};

/// How much earlier certificates begin: clocks of others may be slow.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
const DAYS: i64 = 365;
const DAYS_OF_CA: i64 = 3650;
/// A hundred years; the formats end with the year 9999.
const DAYS_MAX: i64 = 36_500;
const NAMES_MAX: usize = 1000;
/// The limit of X.509 for a common name and for an organization.
const NAME_CHARACTERS_MAX: usize = 64;

/// A CA that can sign.
struct Ca {
    /// The certificate in PEM format.
    cert: String,
    issuer: Issuer<'static, KeyPair>,
    until: Timestamp,
}

/// Implements `crypto.ca`: returns a self-signed certificate authority.
pub(super) fn ca(call: &Call) -> Outcome {
    let key = key(call)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(call, call.some_text("name").unwrap_or("kopf"))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    set_life(&mut params, life(call, DAYS_OF_CA)?);
    let made = params.self_signed(&key.pair).map_err(|it| failed(&it))?;
    Ok(json!({ "cert": made.pem(), "key": key.pem() }).into())
}

/// Implements `crypto.certificate`: returns a certificate that a CA has signed.
pub(super) fn certificate(call: &Call) -> Outcome {
    let ca = call.map("ca").map(issuer).transpose()?;
    let mut life = life(call, DAYS)?;
    if let Some(ca) = &ca {
        life.1 = life.1.min(ca.until);
    }
    if let Some(request) = call.some_text("csr") {
        let Some(ca) = ca else {
            return Err("`csr` needs `ca`, the CA that signs the request".into());
        };
        if ["key", "kind", "name", "organization"].iter().any(|it| call.has(it)) {
            return Err("`csr` already contains the key and the name: remove `key`, `kind`, `name` and `organization`".into());
        }
        return signed(call, request, (&ca, life));
    }
    let key = key(call)?;
    let mut params = CertificateParams::default();
    params.subject_alt_names = names(call)?;
    let name = call.some_text("name").or_else(|| call.list("names").first()?.as_str());
    params.distinguished_name = subject(call, name.unwrap_or("kopf"))?;
    set_usage(&mut params, key.public.kind);
    set_life(&mut params, life);
    let made = match &ca {
        Some(ca) => params.signed_by(&key.pair, &ca.issuer),
        None => params.self_signed(&key.pair),
    };
    let cert = made.map_err(|it| failed(&it))?.pem();
    let of_ca = ca.map_or_else(|| cert.clone(), |it| it.cert);
    Ok(json!({ "cert": cert, "key": key.pem(), "ca": of_ca }).into())
}

/// Signs a certificate request, whose key is known only to its author.
fn signed(call: &Call, request: &str, (ca, life): (&Ca, (Timestamp, Timestamp))) -> Outcome {
    let blocks = keys::blocks(request);
    let block = blocks.iter().find(|it| it.tag().ends_with("CERTIFICATE REQUEST"));
    let Some(block) = block else {
        let got = keys::shown(&blocks);
        return Err(format!("`csr`: expected a certificate request in PEM, got {got}").into());
    };
    let read = CertificateSigningRequestParams::from_der(&block.contents().into());
    let mut request = read.map_err(|problem| {
        Failure::Plain(format!("`csr`: the request cannot be signed: {problem}"))
    })?;
    let public = parsed::requested(block.contents())?;
    let params = &mut request.params;
    if call.has("names") {
        params.subject_alt_names = names(call)?;
    }
    // Only the names of the request are granted.
    params.is_ca = IsCa::NoCa;
    set_usage(params, public.kind);
    set_life(params, life);
    let made = params.signed_by(&public, &ca.issuer).map_err(|it| failed(&it))?;
    Ok(json!({ "cert": made.pem(), "ca": ca.cert }).into())
}

/// Implements `crypto.csr`: returns a certificate request.
pub(super) fn csr(call: &Call) -> Outcome {
    let key = key(call)?;
    let mut params = CertificateParams::default();
    params.subject_alt_names = names(call)?;
    let name = call.some_text("name").or_else(|| call.list("names").first()?.as_str());
    params.distinguished_name = subject(call, name.unwrap_or("kopf"))?;
    let request = params.serialize_request(&key.pair).map_err(|it| failed(&it))?;
    let pem = request.pem().map_err(|it| failed(&it))?;
    Ok(json!({ "csr": pem, "key": key.pem() }).into())
}

/// Returns the key that is passed, or a new one.
fn key(call: &Call) -> Result<SigningKey, Failure> {
    match (call.some_text("key"), call.some_text("kind")) {
        (Some(_), Some(_)) => Err("`key`, `kind`: expected one of them, got both".into()),
        (Some(pem), None) => SigningKey::read("key", pem),
        (None, kind) => SigningKey::generate(KeyKind::named("kind", kind.unwrap_or("p256"))?),
    }
}

/// Reads a CA: its certificate and the matching key.
fn issuer(given: &Map<String, Value>) -> Result<Ca, Failure> {
    let part = |name: &str| {
        let text = given.get(name).and_then(Value::as_str);
        text.ok_or_else(|| {
            Failure::Plain(format!("`ca`: expected a map with `cert` and `key`, as crypto.ca returns it; `{name}` is missing or not a string"))
        })
    };
    let (cert, key) = (part("cert")?, SigningKey::read("ca.key", part("key")?)?);
    parsed::with_certificate("ca.cert", cert, |parsed, der| {
        if !parsed.is_ca() {
            return Err("`ca`: the certificate is not that of a CA".into());
        }
        if Public::of_info(parsed.public_key()).as_ref() != Some(&key.public) {
            return Err("`ca`: the key does not belong to the certificate".into());
        }
        let until = until(parsed)?;
        let issuer = Issuer::from_ca_cert_der(&der.into(), key.pair).map_err(|it| failed(&it))?;
        Ok(Ca { cert: cert.to_owned(), issuer, until })
    })
}

fn until(certificate: &X509Certificate<'_>) -> Result<Timestamp, Failure> {
    let until = Timestamp::from_second(certificate.validity().not_after.timestamp());
    until.map_err(|it| Failure::Plain(format!("`ca`: {it}")))
}

/// Returns when a certificate begins and ends.
fn life(call: &Call, default: i64) -> Result<(Timestamp, Timestamp), Failure> {
    let days = call.integer("days").unwrap_or(default);
    if !(1..=DAYS_MAX).contains(&days) {
        return Err(format!("`days`: expected 1 to {DAYS_MAX}, got {days}").into());
    }
    let now = call.surroundings.clock.now();
    let life = SignedDuration::from_hours(days.saturating_mul(24));
    let out_of_range = |it: jiff::Error| Failure::Plain(format!("`days`: {it}"));
    Ok((
        now.checked_sub(BACKDATED).map_err(out_of_range)?,
        now.checked_add(life).map_err(out_of_range)?,
    ))
}

fn set_life(params: &mut CertificateParams, (from, until): (Timestamp, Timestamp)) {
    let moment = |it: Timestamp| {
        let seconds = u64::try_from(it.as_second()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    params.not_before = moment(from);
    params.not_after = moment(until);
}

fn set_usage(params: &mut CertificateParams, kind: KeyKind) {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if matches!(kind, KeyKind::Rsa(_)) {
        params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
}

fn subject(call: &Call, name: &str) -> Result<DistinguishedName, Failure> {
    let mut names = DistinguishedName::new();
    if let Some(organization) = call.some_text("organization") {
        if organization.chars().count() > NAME_CHARACTERS_MAX {
            return Err(format!(
                "`organization`: expected at most {NAME_CHARACTERS_MAX} characters"
            )
            .into());
        }
        names.push(DnType::OrganizationName, organization);
    }
    if call.has("name") && name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(format!("`name`: expected at most {NAME_CHARACTERS_MAX} characters").into());
    }
    // A long host name is in the alternative names, which clients check.
    let end = name.char_indices().nth(NAME_CHARACTERS_MAX).map_or(name.len(), |(it, _)| it);
    names.push(DnType::CommonName, name.get(..end).unwrap_or_default());
    Ok(names)
}

/// Reads the names of a certificate: hosts, addresses, URIs, mail addresses.
fn names(call: &Call) -> Result<Vec<SanType>, Failure> {
    let given = call.list("names");
    if given.len() > NAMES_MAX {
        return Err(format!("`names`: expected at most {NAMES_MAX}, got {}", given.len()).into());
    }
    given.iter().enumerate().map(|(place, it)| alternative(place + 1, it)).collect()
}

fn alternative(place: usize, given: &Value) -> Result<SanType, Failure> {
    let misfit = || {
        Failure::Plain(format!(
            "`names`: item {place}: expected a host name, an IP address, a URI or a mail address, in ASCII, got {given}"
        ))
    };
    let name = given.as_str().filter(|it| !it.is_empty()).ok_or_else(misfit)?;
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let text = name.try_into().map_err(|_problem| misfit())?;
    Ok(if name.contains("://") {
        SanType::URI(text)
    } else if name.contains('@') {
        SanType::Rfc822Name(text)
    } else if name
        .contains(|it: char| it.is_ascii_whitespace() || it == '/' || it.is_ascii_control())
    {
        return Err(misfit());
    } else {
        SanType::DnsName(text)
    })
}

fn failed(error: &rcgen::Error) -> Failure {
    format!("cannot create the certificate: {error}").into()
}
