//! Checks names by the rules of Kubernetes.

/// Maximum length of a domain, by the rules of Kubernetes.
const DOMAIN_MAX: usize = 253;
/// Maximum length of a label, and of a name after a slash.
const NAME_MAX: usize = 63;

/// Checks a DNS subdomain, such as `kopf.zalando.org`.
pub(super) fn domain(text: &str) -> Result<(), String> {
    let is_label = |label: &str| {
        let inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        label.len() <= NAME_MAX
            && label.chars().all(inner)
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= DOMAIN_MAX && text.split('.').all(is_label) {
        Ok(())
    } else {
        Err(format!(
            "expected a domain name such as \"my-operator.example.com\" (lower-case letters, digits, dashes, dots; \
             at most {DOMAIN_MAX} characters), got {text:?}"
        ))
    }
}

/// Checks a finalizer: a name with or without a domain, such as `kopf.zalando.org/KopfFinalizerMarker`. Kubernetes accepts those
/// without a domain for custom resources.
pub(super) fn finalizer(text: &str) -> Result<(), String> {
    let fits = match text.split_once('/') {
        Some((prefix, rest)) => domain(prefix).is_ok() && name(rest),
        None => name(text),
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "expected a domain and a name such as \"my-operator.example.com/Finalizer\", got {text:?}"
        ))
    }
}

/// Returns whether this is valid as the part of an annotation name after the slash.
pub(super) fn name(text: &str) -> bool {
    let ends = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    text.len() <= NAME_MAX
        && text.chars().all(inner)
        && ends(text.chars().next())
        && ends(text.chars().next_back())
}
