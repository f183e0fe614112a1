//! Formats of names, and the messages about violations.

/// Maximum length of a DNS label, and of the name of a label or an annotation.
const LABEL_MAX: usize = 63;
/// Maximum length of a DNS subdomain.
const SUBDOMAIN_MAX: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
    is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
    is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The format of the names of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NameFormat {
    /// A DNS subdomain: most kinds.
    #[default]
    Subdomain,
    /// A DNS label: namespaces and services.
    Label,
    /// Any segment of a path: roles and their bindings.
    PathSegment,
}

impl NameFormat {
    /// Returns the format for the objects of a resource.
    pub(crate) fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "namespaces" | "services") => Self::Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// Returns the messages about a name; with `prefix`, about the start of a generated one.
    pub(crate) fn faults(self, name: &str, prefix: bool) -> Vec<String> {
        // A prefix may end with a dash, because a suffix follows.
        let masked = match name.strip_suffix('-') {
            Some(start) if prefix && name.len() > 1 => format!("{start}a"),
            _ => name.to_owned(),
        };
        match self {
            Self::Subdomain => dns_subdomain(&masked),
            Self::Label => dns_label(&masked),
            Self::PathSegment => path_segment(name),
        }
    }
}

/// Validates a DNS subdomain.
pub(crate) fn dns_subdomain(name: &str) -> Vec<String> {
    let good = name.split('.').all(is_label);
    faults(name, SUBDOMAIN_MAX, good, SUBDOMAIN)
}

/// Validates a DNS label.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    faults(name, LABEL_MAX, is_label(name), without_dots(name, LABEL))
}

/// Validates a DNS label that starts with a letter.
pub(crate) fn dns_1035_label(name: &str) -> Vec<String> {
    let good = is_label(name) && name.starts_with(|it: char| it.is_ascii_lowercase());
    faults(name, LABEL_MAX, good, without_dots(name, LABEL_1035))
}

/// Returns the message about a label that would be a valid subdomain.
fn without_dots<'a>(name: &str, rule: &'a str) -> &'a str {
    if name.split('.').all(is_label) && name.contains('.') { "must not contain dots" } else { rule }
}

/// Validates a segment of a path.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let bad = ['/', '%'].into_iter().filter(|it| name.contains(*it));
    bad.map(|it| format!("may not contain '{it}'")).collect()
}

/// Validates the key of a label, an annotation or a finalizer: a name, optionally with a DNS subdomain as its prefix.
pub(crate) fn qualified_name(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let mut found = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                found.extend(
                    dns_subdomain(prefix).into_iter().map(|it| format!("prefix part {it}")),
                );
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        found.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_word(name) {
        found.push(format!("name part {QUALIFIED}"));
    }
    found
}

/// Validates the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let long = (value.len() > LABEL_MAX).then(|| format!("must be no more than {LABEL_MAX} bytes"));
    let good = value.is_empty() || is_word(value);
    long.into_iter().chain((!good).then(|| VALUE.to_owned())).collect()
}

/// Returns the message `must be no more than 63 characters`.
pub(crate) fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

fn faults(text: &str, most: usize, good: bool, rule: &str) -> Vec<String> {
    let long = (text.len() > most).then(|| too_long(most));
    long.into_iter().chain((!good).then(|| rule.to_owned())).collect()
}

/// Returns whether a name is a DNS label of any length.
pub(crate) fn is_label(part: &str) -> bool {
    let inside = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !part.is_empty() && part.bytes().all(inside) && !part.starts_with('-') && !part.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let edge = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let inside = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    edge(text.bytes().next()) && edge(text.bytes().next_back()) && text.bytes().all(inside)
}
