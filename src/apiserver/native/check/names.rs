//! Formats of names, labels and keys. Each rule gives what is wrong; nothing if all is well.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Whether the name of an object obeys the rule of its kind.
pub(crate) type NameRule = fn(&str) -> Vec<String>;

/// `must be no more than 63 characters`
pub(crate) fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// The text of a broken format: what it is, examples, and the expression.
fn format_text(text: &str, expression: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|it| format!("'{it}'")).collect();
    let examples = examples.join(",  or ");
    format!("{text} (e.g. {examples}, regex used for validation is '{expression}')")
}

fn letters(text: &str, allowed: impl Fn(u8) -> bool, ends: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|it| allowed(*it))
        && bytes.first().is_some_and(|it| ends(*it))
        && bytes.last().is_some_and(|it| ends(*it))
}

fn lower(it: u8) -> bool {
    it.is_ascii_lowercase() || it.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    letters(text, |it| lower(it) || it == b'-', lower)
}

fn is_qualified_part(text: &str) -> bool {
    letters(
        text,
        |it| it.is_ascii_alphanumeric() || b"-_.".contains(&it),
        |it| it.is_ascii_alphanumeric(),
    )
}

/// A part of a domain name, as names of namespaces and containers are.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push(too_long(63));
    }
    if !is_label(text) {
        let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        found.push(format_text(what, LABEL, &["my-name", "123-abc"]));
    }
    found
}

/// A domain name, as names of most objects are.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push(too_long(253));
    }
    if !text.split('.').all(is_label) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        let expression = format!("{LABEL}(\\.{LABEL})*");
        found.push(format_text(what, &expression, &["example.com"]));
    }
    found
}

/// `*.example.com`
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push(too_long(253));
    }
    if !text.strip_prefix("*.").is_some_and(|it| it.split('.').all(is_label)) {
        let what = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        let expression = format!("\\*\\.{LABEL}(\\.{LABEL})*");
        found.push(format_text(what, &expression, &["*.example.com"]));
    }
    found
}

/// A label that starts with a letter, as names of services do.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push(too_long(63));
    }
    if !is_label(text) || !text.starts_with(|it: char| it.is_ascii_lowercase()) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        found.push(format_text(what, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    found
}

/// A name that can stand in a path, as names of roles must.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    let found = ["/", "%"].into_iter().filter(|it| text.contains(it));
    found.map(|it| format!("may not contain '{it}'")).collect()
}

/// A key of a label: a name with an optional domain before it.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let wrong = || format_text(QUALIFIED_TEXT, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".into());
            } else {
                found.extend(dns_subdomain(prefix).iter().map(|it| format!("prefix part {it}")));
            }
            *name
        }
        _ => {
            found.push(format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                wrong()
            ));
            return found;
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        found.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified_part(name) {
        found.push(format!("name part {}", wrong()));
    }
    found
}

/// A value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push(too_long(63));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        let expression = format!("({QUALIFIED})?");
        found.push(format_text(what, &expression, &["MyValue", "my_value", "12345"]));
    }
    found
}

/// The name of an environment variable.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let allowed = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
    let digit = text.starts_with(|it: char| it.is_ascii_digit());
    if text.is_empty() || digit || !text.bytes().all(allowed) {
        let what = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit";
        let examples = ["my.env-name", "MY_ENV.NAME", "MyEnvName1"];
        found.push(format_text(what, "[-._a-zA-Z][-._a-zA-Z0-9]*", &examples));
    }
    found.extend(dots(text));
    found
}

/// A key of a config map or a secret.
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

/// Names that mean directories.
fn dots(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ if text.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// The name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    if text.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    if text.is_empty() || !text.bytes().all(|it| lower(it) || it == b'-') {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|it| it.is_ascii_lowercase()) {
        found.push("must contain at least one letter or number (a-z, 0-9)");
    }
    if text.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    found.into_iter().map(String::from).collect()
}

/// An address.
pub(crate) fn ip(text: &str) -> Vec<String> {
    match text.parse::<std::net::IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()],
    }
}

/// An address of the fourth version.
pub(crate) fn ip_v4(text: &str) -> Vec<String> {
    let good = text.parse::<std::net::Ipv4Addr>().is_ok();
    if good { Vec::new() } else { vec!["must be a valid IPv4 address".into()] }
}

/// An address of the sixth version.
pub(crate) fn ip_v6(text: &str) -> Vec<String> {
    let good = text.parse::<std::net::Ipv6Addr>().is_ok();
    if good { Vec::new() } else { vec!["must be a valid IPv6 address".into()] }
}

/// A header of HTTP.
pub(crate) fn header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
        return Vec::new();
    }
    let what = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![format_text(what, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// `25%`
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()) {
        return Vec::new();
    }
    let what = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![format_text(what, "[0-9]+%", &["1%", "93%"])]
}
