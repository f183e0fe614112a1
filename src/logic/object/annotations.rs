//! Names of the annotations that hold operator state, and the distinction between annotations that are state and those that are content.
//!
//! The contract is `tests/vectors/annotation-keys.json`. Two operators that share objects must agree on every character.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blake2::{Blake2b, Digest as _, digest::consts::U4};
use serde_json::{Map, Value};

use super::fields;
use crate::settings::PREFIX;

/// Maximum length of an annotation name after its prefix, as Kubernetes limits it.
const NAME_MAX: usize = 63;

/// Kubernetes copies annotations of deployments to their replica sets; this suffix keeps the two states apart.
const REPLICA_SET_MARK: &str = "-ofDRS";

/// Marks annotations with this prefix as state, not content, for other operators.
const MARKER: &str = "kopf-managed";

/// `kubectl apply` sets it on every change; it only repeats the content of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the full names for a record key, in the order in which they are read; all of them are written.
pub fn names(prefix: &str, key: &str, v1: bool, body: &Value) -> Vec<String> {
    let key = mark(key, body);
    let mut names = vec![name_v2(prefix, &key)];
    // Most keys are short and have the same name in both forms. Names are built for every event of an object.
    if v1 && prefix.len() + 1 + key.len() > NAME_MAX {
        let old = name_v1(prefix, &key);
        if !names.contains(&old) {
            names.push(old);
        }
    }
    names
}

/// Returns the record key, marked if the object is a replica set of a deployment.
pub fn mark<'a>(key: &'a str, body: &Value) -> Cow<'a, str> {
    let of_deployment = || {
        let owners = fields::get(body, &["metadata", "ownerReferences"])?.as_array()?;
        Some(owners.iter().any(|it| it.get("kind").is_some_and(|it| it == "Deployment")))
    };
    let marked = body.get("kind").is_some_and(|it| it == "ReplicaSet")
        && of_deployment().unwrap_or_default();
    if marked { format!("{key}{REPLICA_SET_MARK}").into() } else { key.into() }
}

/// Returns the record key without the characters of handler ids that annotation names cannot have.
pub fn safe(key: &str) -> String {
    let mut safe = String::with_capacity(key.len());
    push_safe(&mut safe, key);
    safe
}

fn push_safe(name: &mut String, key: &str) {
    // Most keys are names already, and copied for every event of an object.
    if !key.bytes().any(|it| matches!(it, b'/' | b'<' | b'>')) {
        name.push_str(key);
        return;
    }
    let safe = key.bytes().map(|it| match it {
        b'/' => b'.',
        b'<' | b'>' => b'_',
        other => other,
    });
    name.push_str(&String::from_utf8_lossy(&safe.collect::<Vec<_>>()));
}

/// Returns the end of a shortened name: a hash of the whole string.
pub fn suffix(text: &str) -> String {
    let hash = STANDARD.encode(Blake2b::<U4>::digest(text.as_bytes()));
    let hash = format!("-{}", hash.replace('+', "-").replace('/', "."));
    hash.trim_end_matches(['=', '-', '.']).to_owned()
}

/// Returns the name in the current form: the limit counts the name without the prefix, the hash is that of the raw key.
pub fn name_v2(prefix: &str, key: &str) -> String {
    if key.len() <= NAME_MAX || key.chars().count() <= NAME_MAX {
        let mut name = String::with_capacity(prefix.len() + 1 + key.len());
        name.push_str(prefix);
        name.push('/');
        push_safe(&mut name, key);
        return name;
    }
    let suffix = suffix(key);
    let head = head(key, length(NAME_MAX) - length(suffix.len()));
    format!("{prefix}/{}{suffix}", safe(&head))
}

/// Returns the name in the form of older operators: the limit includes the prefix, the hash is that of the safe key.
pub fn name_v1(prefix: &str, key: &str) -> String {
    let safe = safe(key);
    let limit = length(NAME_MAX) - length(prefix.chars().count()) - 1;
    if length(safe.chars().count()) <= limit {
        return format!("{prefix}/{safe}");
    }
    let suffix = suffix(&safe);
    format!("{prefix}/{}{suffix}", head(&safe, limit - length(suffix.len())))
}

/// Returns the annotations of an object or of a patch.
pub fn of(body: &Value) -> Option<&Map<String, Value>> {
    fields::get(body, &["metadata", "annotations"])?.as_object()
}

/// Returns an annotation as a string.
pub fn text<'a>(body: &'a Value, name: &str) -> Option<&'a str> {
    of(body)?.get(name)?.as_str()
}

/// Sets an annotation in a patch.
pub fn put(patch: &mut Map<String, Value>, name: &str, value: Value) {
    fields::put(patch, &["metadata", "annotations", name], value);
}

/// Adds the marker of the prefix to a patch, once. As in Kopf, prefixes of `kopf.` domains never get one.
pub fn put_marker(patch: &mut Map<String, Value>, prefix: &str, body: &Value) {
    if prefix.starts_with("kopf.") {
        return;
    }
    let name = format!("{prefix}/{MARKER}");
    let path = ["metadata", "annotations", &name];
    let known = fields::get(body, &path).is_some() || fields::get_in(patch, &path).is_some();
    if !known {
        fields::put(patch, &path, "yes".into());
    }
}

/// Returns whether this is the name of a marker, of whatever prefix.
pub fn is_marker(name: &str) -> bool {
    name.split_once('/').is_some_and(|(_, name)| name == MARKER)
}

/// Returns the annotations that are content: without the state of any operator and without noise.
pub fn content(all: &Map<String, Value>) -> Map<String, Value> {
    let marked: BTreeSet<&str> = all
        .keys()
        .filter(|it| is_marker(it))
        .filter_map(|it| it.split_once('/'))
        .map(|(prefix, _)| prefix)
        .collect();
    let is_content = |name: &str| {
        let prefix = name.split_once('/').map(|(prefix, _)| prefix);
        name != LAST_APPLIED && !prefix.is_some_and(|it| is_ours(it) || marked.contains(it))
    };
    all.iter()
        .filter(|(name, _)| is_content(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns whether the prefix is the default one or a subdomain of it.
fn is_ours(prefix: &str) -> bool {
    prefix.strip_suffix(PREFIX).is_some_and(|it| it.is_empty() || it.ends_with('.'))
}

/// Returns the first `count` characters; a negative count drops that many at the end. Slices in Python do the same, and it affects the
/// names with long prefixes.
fn head(text: &str, count: isize) -> String {
    let count = match usize::try_from(count) {
        Ok(count) => count,
        Err(_) => text.chars().count().saturating_sub(count.unsigned_abs()),
    };
    text.chars().take(count).collect()
}

fn length(count: usize) -> isize {
    isize::try_from(count).unwrap_or(isize::MAX)
}
