//! Why there is no response, in messages that say what to do about it.

use std::{error::Error, io};

use ::url::Url;
use jiff::Timestamp;
use rustls::{CertificateError, Error as TlsError, pki_types::UnixTime};
use serde_json::Value;

use crate::scripting::{functions::outcome::Failure, values::refusal::ServerRefusal};

/// Returns an error value without a response: like those of servers, with a reason in one word.
pub(super) fn no_response(reason: &str, message: String) -> Failure {
    Failure::Answer(Box::new(ServerRefusal {
        class: "HTTPError",
        status: None,
        reason: reason.into(),
        message,
        details: Value::Null,
    }))
}

/// Returns the error of a connection that failed or ended too early.
pub(super) fn failed(url: &Url, error: &(dyn Error + 'static)) -> Failure {
    let host = url.host_str().unwrap_or_default();
    let found = causes(error).find_map(<dyn Error>::downcast_ref::<TlsError>);
    match found {
        Some(TlsError::InvalidCertificate(problem)) => {
            no_response("Untrusted", format!("{url}: {}", distrusted(host, problem)))
        }
        Some(TlsError::InvalidMessage(_)) => {
            let hint = "the server does not use TLS on this port; use http:// or another port";
            no_response("Unreachable", format!("{url}: {hint}"))
        }
        // Other errors of TLS or of the network have a message.
        Some(_) | None => no_response("Unreachable", format!("{url}: {}", innermost(error))),
    }
}

/// Returns why the certificate of a server is not trusted, and what would help.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a list of others that grows, and has its own words"
)]
fn distrusted(host: &str, problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => format!(
            "the certificate of {host} was issued by an unknown authority; pass the certificate of that authority in PEM as the \
             option `ca`"
        ),
        // The name is that of an authority in `ca`, but the key differs.
        CertificateError::BadSignature => format!(
            "the certificate of {host} was not signed with the key of the authority in `ca`; check whether one of them was \
             renewed"
        ),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<_> = presented.iter().map(|it| name(it)).collect();
            let names = if names.is_empty() { "no name at all".into() } else { names.join(", ") };
            format!(
                "the certificate of the server is not for {host} but for {names}; use one of these names, or correct the certificate"
            )
        }
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "the certificate of {host} has expired at {}; it must be renewed on the server",
            date(*not_after)
        ),
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the certificate of {host} is not valid before {}; check the clock of this machine",
            date(*not_before)
        ),
        other if other.to_string().contains("CaUsedAsEndEntity") => format!(
            "the certificate of {host} is that of a certificate authority; a server needs a separate one (basicConstraints CA:FALSE)"
        ),
        // Rare ones, of which there is a long and open list.
        other => format!("the certificate of {host} is not trusted: {other}"),
    }
}

/// Returns `a.example` for `DnsName("a.example")`.
fn name(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, it)| it.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"')
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map_or_else(|_out_of_range| "a far day".into(), |it| it.to_string())
}

/// Returns the message of the innermost cause, which says what has happened.
fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

/// Returns an error and its causes, the innermost one last.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&it| {
        // An IO error hides the error that it was made from: its own source skips that one.
        let inside = it.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inside.map(|it| it as &(dyn Error + 'static)).or_else(|| it.source())
    })
}
