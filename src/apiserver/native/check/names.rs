//! Formats of names, labels and keys. Each rule returns its messages; an empty list means valid.

pub(crate) use crate::metadata::names::{
    dns_1035_label, dns_label, dns_subdomain, label_value, path_segment, qualified_name,
};
use crate::metadata::names::{is_label, too_long};

/// The rule for the names of the objects of a kind.
pub(crate) type NameRule = fn(&str) -> Vec<String>;

/// Returns the message for a violated format: its description, examples, and the regular expression.
fn format_text(text: &str, expression: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|it| format!("'{it}'")).collect();
    let examples = examples.join(",  or ");
    format!("{text} (e.g. {examples}, regex used for validation is '{expression}')")
}

/// Checks a DNS name with a wildcard, such as `*.example.com`.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push(too_long(253));
    }
    if !text.strip_prefix("*.").is_some_and(|it| it.split('.').all(is_label)) {
        let what = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        let expression = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
        found.push(format_text(what, expression, &["*.example.com"]));
    }
    found
}

/// Checks the name of a sysctl: `kernel.shm_rmid_forced`, or with slashes.
pub(crate) fn sysctl(text: &str) -> Vec<String> {
    let word = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let part = |it: &str| {
        let bytes = it.as_bytes();
        bytes.first().is_some_and(|it| word(*it))
            && bytes.last().is_some_and(|it| word(*it))
            && bytes.iter().all(|it| word(*it) || matches!(it, b'-' | b'_'))
    };
    if text.len() <= 253 && text.split(['.', '/']).all(part) {
        return Vec::new();
    }
    let expression = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    vec![format!("must have at most 253 characters and match regex ^{expression}$")]
}

/// Checks the name of an environment variable.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    let allowed = |it: u8| (b' '..=b'~').contains(&it) && it != b'=';
    if text.is_empty() || !text.bytes().all(allowed) {
        let what = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        return vec![what.to_owned()];
    }
    Vec::new()
}

/// Checks a key of a config map or a secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push(too_long(253));
    }
    let allowed = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
    if text.is_empty() || !text.bytes().all(allowed) {
        let what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        found.push(format_text(what, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    found.extend(dots(text));
    found
}

/// Returns the message for the names `.` and `..`, which mean directories.
fn dots(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ if text.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// Checks the name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    if text.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    if text.is_empty()
        || !text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
    {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|it| it.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    found.into_iter().map(String::from).collect()
}

/// Checks an IP address of either family.
pub(crate) fn ip(text: &str) -> Vec<String> {
    match text.parse::<std::net::IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()],
    }
}

/// Checks an IPv4 address.
pub(crate) fn ip_v4(text: &str) -> Vec<String> {
    let good = text.parse::<std::net::Ipv4Addr>().is_ok();
    if good { Vec::new() } else { vec!["must be a valid IPv4 address".into()] }
}

/// Checks an IPv6 address.
pub(crate) fn ip_v6(text: &str) -> Vec<String> {
    let good = text.parse::<std::net::Ipv6Addr>().is_ok();
    if good { Vec::new() } else { vec!["must be a valid IPv6 address".into()] }
}

/// Checks the name of an HTTP header.
pub(crate) fn header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
        return Vec::new();
    }
    let what = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![format_text(what, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// Checks a percentage, such as `25%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()) {
        return Vec::new();
    }
    let what = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![format_text(what, "[0-9]+%", &["1%", "93%"])]
}
