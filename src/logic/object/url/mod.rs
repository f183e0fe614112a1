//! Paths and queries of the API. This module alone encodes all external parts.
//!
//! The contract is `tests/vectors/resource-urls.json`.

use std::fmt::{self, Write as _};

use super::resource::Resource;

#[cfg(test)]
mod tests;

/// A segment for names that no object can have.
const NO_NAME: &str = "/%00";

/// The target of a request within a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlTarget<'a> {
    /// `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<&'a str>,
    /// The name of the object; `None`: the collection.
    pub name: Option<&'a str>,
    /// The subresource, such as `status`.
    pub subresource: Option<&'a str>,
}

/// A target that has no URL: a mistake of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// A subresource without the name of its object.
    SubresourceOfCollection,
    /// A namespace for a cluster-scoped resource.
    NamespaceOfClusterScoped,
    /// An object of a namespaced resource without its namespace.
    NamespaceMissing,
}

/// Returns the path of a request.
///
/// # Errors
/// Fails if the resource has no such target.
pub fn path(resource: &Resource, target: UrlTarget<'_>) -> Result<String, TargetError> {
    let UrlTarget { namespace, name, subresource } = target;
    if subresource.is_some() && name.is_none() {
        return Err(TargetError::SubresourceOfCollection);
    }
    match (resource.namespaced, namespace, name) {
        (false, Some(_), _) => return Err(TargetError::NamespaceOfClusterScoped),
        (true, None, Some(_)) => return Err(TargetError::NamespaceMissing),
        (true, None, None) | (true, Some(_), _) | (false, None, _) => {}
    }
    let collection = collection(resource, namespace);
    let path = match name {
        Some(name) => object(collection, name, subresource),
        None => collection,
    };
    // As in Kopf, which leaves empty parts out. Requests of this operator replace them: an empty name must not address the collection.
    let is_partial = [namespace, name, subresource].contains(&Some(""));
    Ok(if is_partial { path.replace(NO_NAME, "") } else { path })
}

/// Returns the path of a collection: of one namespace, or of the whole cluster.
pub fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, .. } = resource;
    let mut path = String::with_capacity(96);
    path.push_str(if group.is_empty() && version == "v1" { "/api" } else { "/apis" });
    if !group.is_empty() {
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
pub fn object(mut collection: String, name: &str, subresource: Option<&str>) -> String {
    push_segment(&mut collection, name);
    if let Some(subresource) = subresource {
        push_segment(&mut collection, subresource);
    }
    collection
}

/// Appends query parameters in the order given, encoded as browsers encode forms.
pub fn with_query(path: &str, parameters: &[(&str, String)]) -> String {
    let mut url = path.to_owned();
    for (index, (key, value)) in parameters.iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        push_of_form(&mut url, key);
        url.push('=');
        push_of_form(&mut url, value);
    }
    url
}

/// Encodes a single part.
pub fn encoded(part: &str) -> String {
    let mut text = String::new();
    push_encoded(&mut text, part);
    text
}

fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    match segment {
        // Clients and proxies resolve dot segments, encoded or not; an empty name would address the collection. No object can have these
        // names, so they are replaced by a name that no object has, which results in a 404.
        "" | "." | ".." => path.push_str(NO_NAME.trim_start_matches('/')),
        _ => push_encoded(path, segment),
    }
}

fn push_encoded(text: &mut String, part: &str) {
    // Nearly all names are plain.
    if part.bytes().all(is_unreserved) {
        return text.push_str(part);
    }
    for byte in part.bytes() {
        // The colon is legal in paths, and frequent in the names of cluster roles.
        push_byte(text, byte, byte == b':');
    }
}

fn push_of_form(text: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte == b' ' {
            text.push('+');
        } else {
            push_byte(text, byte, false);
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn push_byte(text: &mut String, byte: u8, is_plain: bool) {
    if is_plain || is_unreserved(byte) {
        text.push(char::from(byte));
    } else {
        // Writing to a string cannot fail.
        write!(text, "%{byte:02X}").unwrap_or_default();
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetError::SubresourceOfCollection => "a subresource needs the name of its object",
            TargetError::NamespaceOfClusterScoped => "a cluster-scoped resource has no namespaces",
            TargetError::NamespaceMissing => {
                "an object of a namespaced resource needs its namespace"
            }
        })
    }
}

impl std::error::Error for TargetError {}
