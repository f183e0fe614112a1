//! What Kubernetes takes as a name.

/// The longest domain, by the rules of Kubernetes.
const DOMAIN_MAX: usize = 253;
/// The longest label, and the longest name after a slash.
const NAME_MAX: usize = 63;

/// A DNS subdomain: `kopf.zalando.org`.
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
            "expected a domain name such as \"my-operator.example.com\" (small letters, digits, dashes, dots; \
             at most {DOMAIN_MAX} characters), got {text:?}"
        ))
    }
}

/// A name, with a domain or without: `kopf.zalando.org/KopfFinalizerMarker`. Kubernetes accepts those without for custom resources.
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

/// The part of an annotation's name after the slash.
pub(super) fn name(text: &str) -> bool {
    let ends = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    text.len() <= NAME_MAX
        && text.chars().all(inner)
        && ends(text.chars().next())
        && ends(text.chars().next_back())
}
