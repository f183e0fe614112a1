//! Formats errors of libraries for users: in one line, without wrappers and debug output.

use std::{error::Error, io, iter};

use hyper_util::client::legacy;
use kube::client::AuthError;

/// Maximum number of characters of one cause.
const CAUSE_CHARS: usize = 1024;

/// Maximum number of characters of the output of a plugin.
const PLUGIN_CHARS: usize = 256;

/// The beginnings of wrapper errors, which only name the part of the client.
const WRAPPERS: &[&str] = &[
    "ServiceError: ",
    "HyperError: ",
    "client error (",
    "error writing a body",
    "error reading a body",
];

/// Returns an error with its causes, outermost first, without wrappers.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(current) = next {
        next = current.source();
        let text = one_line(&current.to_string(), CAUSE_CHARS);
        let wrapper = WRAPPERS.iter().any(|it| text.starts_with(it)) && next.is_some();
        // Some texts already contain their cause.
        let told = parts.last().is_some_and(|it| it.ends_with(&text));
        if !wrapper && !told {
            parts.push(text);
        }
    }
    parts.join(": ")
}

/// Returns why there are no credentials; `kube` formats some errors as debug output.
pub(super) fn reason_of_auth(error: &AuthError) -> String {
    if let AuthError::AuthExecStart(error) = error {
        return format!("the exec plugin does not start: {error}");
    }
    if let AuthError::AuthExecRun { out, .. } = error {
        let said = one_line(&String::from_utf8_lossy(&out.stderr), PLUGIN_CHARS);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        return format!("the exec plugin failed ({}){said}", out.status);
    }
    if let AuthError::ReadTokenFile(error, path) = error {
        return format!("the token file {} cannot be read: {error}", path.display());
    }
    reason(error)
}

/// Returns whether a certificate is the reason.
pub(super) fn is_about_certificates(error: &(dyn Error + 'static)) -> bool {
    causes(error).find_map(|it| it.downcast_ref::<rustls::Error>()).is_some_and(|found| {
        matches!(
            found,
            rustls::Error::InvalidCertificate(_)
                | rustls::Error::NoCertificatesPresented
                | rustls::Error::UnsupportedNameType
        )
    })
}

/// Returns whether the error occurred before the request was written: there was no connection, or it was closed before its turn.
pub(super) fn is_before_the_request(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|it| {
        let refused = |it: &io::Error| it.kind() == io::ErrorKind::ConnectionRefused;
        it.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
            || it.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
            || it.downcast_ref::<io::Error>().is_some_and(refused)
    })
}

/// Returns the error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |current| {
        let current: &'a (dyn Error + 'static) = *current;
        // An `io::Error` hides its inner error: its `source` is that of the inner one.
        match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => current.source(),
        }
    })
}

/// Returns the text with white space collapsed to single spaces, truncated to this number of characters.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    let mut short: String = line.chars().take(chars_max.saturating_sub(3)).collect();
    short.push_str("...");
    short
}
