//! The rules for names, with the words the real server uses when they are broken.

/// A part of a host name: `[a-z]([-a-z0-9]*[a-z0-9])?`, at most 63 characters. What is wrong, if anything is.
pub(crate) fn dns1035_label(name: &str) -> Vec<String> {
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase()) && is_label(name);
    let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
                and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                '[a-z]([-a-z0-9]*[a-z0-9])?')";
    problems(name, 63, fits, rule)
}

/// Like [`dns1035_label`], but it may start with a digit.
pub(crate) fn dns1123_label(name: &str) -> Vec<String> {
    let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
                with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    problems(name, 63, is_label(name), rule)
}

/// Labels with dots between them, at most 253 characters.
pub(crate) fn dns1123_subdomain(name: &str) -> Vec<String> {
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
                and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    problems(name, 253, name.split('.').all(is_label), rule)
}

/// The key of a label or annotation: a name of at most 63 characters, with a DNS prefix before a slash or without.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    const EXAMPLES: &str = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                            '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    let mut found = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                let wrong = dns1123_subdomain(prefix);
                found.extend(wrong.iter().map(|it| format!("prefix part {it}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {RULE} {EXAMPLES} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_word(name) {
        found.push(format!("name part {RULE} {EXAMPLES}"));
    }
    found
}

/// The value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
                and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
                is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    problems(value, 63, value.is_empty() || is_word(value), rule)
}

fn problems(name: &str, longest: usize, fits: bool, rule: &str) -> Vec<String> {
    let long = (name.len() > longest).then(|| format!("must be no more than {longest} characters"));
    long.into_iter().chain((!fits).then(|| rule.to_owned())).collect()
}

fn is_label(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge) && name.ends_with(edge) && name.chars().all(|c| edge(c) || c == '-')
}

fn is_word(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| edge(c) || matches!(c, '-' | '_' | '.');
    name.starts_with(edge) && name.ends_with(edge) && name.chars().all(inner)
}
