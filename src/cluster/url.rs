//! Paths and queries of the API. This module alone percent-encodes all external parts.

use std::fmt::Write as _;

use crate::logic::object::resource::Resource;

/// Returns the path of a collection: of one namespace, or of the whole cluster.
pub(super) fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, .. } = resource;
    let mut path = String::with_capacity(96);
    if group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push_segment(&mut path, group);
    }
    push_segment(&mut path, version);
    if let Some(namespace) = namespace {
        path.push_str("/namespaces");
        push_segment(&mut path, namespace);
    }
    push_segment(&mut path, &resource.plural);
    path
}

/// Returns the path of an object in its collection, or of a subresource of it.
pub(super) fn object(mut collection: String, name: &str, subresource: Option<&str>) -> String {
    push_segment(&mut collection, name);
    if let Some(subresource) = subresource {
        push_segment(&mut collection, subresource);
    }
    collection
}

/// Appends query parameters in the order given.
pub(super) fn with_query(path: &str, parameters: &[(&str, String)]) -> String {
    let mut url = path.to_owned();
    for (index, (key, value)) in parameters.iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        push_encoded(&mut url, key);
        url.push('=');
        push_encoded(&mut url, value);
    }
    url
}

/// Encodes a single part.
pub(super) fn encoded(part: &str) -> String {
    let mut text = String::new();
    push_encoded(&mut text, part);
    text
}

fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    match segment {
        // Clients and proxies resolve dot segments, encoded or not; an empty name would address the collection. No object can have
        // these names, so they are replaced by a name that no object has, which yields a 404.
        "" | "." | ".." => path.push_str("%00"),
        _ => push_encoded(path, segment),
    }
}

fn push_encoded(text: &mut String, part: &str) {
    for byte in part.bytes() {
        // The colon is kept: it is legal in both places, and frequent in the names of cluster roles.
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            write!(text, "%{byte:02X}").unwrap_or_default();
        }
    }
}
