//! Compacts an essence that is too large for an annotation: deflated, or only a digest.
//!
//! Kubernetes rejects objects whose annotations are longer than 256 KiB together, which a large spec alone can be. Such an essence
//! is stored as a JSON object with the single key [`MARK`], so that operators that do not know it see a change, but never invalid
//! JSON. The essences of small objects are stored as plain JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blake2::{Blake2b, Digest as _, digest::consts::U32};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use serde_json::{Map, Value, json};

use super::super::annotations;
use crate::logic::object::depth;

/// The key that distinguishes a compact essence from a plain one.
const MARK: &str = "kopf.zalando.org/compact";
/// Deflated JSON in base64.
const DEFLATED: &str = "deflate";
/// A hash of the JSON with sorted keys: shows that something has changed, but not what.
const DIGEST: &str = "blake2b";

/// Maximum bytes of all annotations of an object, names included (`TotalAnnotationSizeLimitB` of Kubernetes).
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// Bytes reserved for the progress of handlers and for annotations of users.
const RESERVE: usize = 48 * 1024;
/// Maximum bytes of an inflated essence: more than any object can have (etcd accepts 1.5 MiB), and little for a process.
const INFLATED_MAX: usize = 16 * 1024 * 1024;

/// Returns the bytes available for the string, which is written under each of these names.
pub(super) fn room(body: &Value, names: &[String]) -> usize {
    let others =
        annotations::of(body).into_iter().flatten().filter(|(name, _)| !names.contains(name));
    let taken: usize =
        others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    let own: usize = names.iter().map(String::len).sum();
    ANNOTATIONS_MAX.saturating_sub(RESERVE + taken + own) / names.len().max(1)
}

/// Returns the string unchanged if it fits, otherwise a shorter form that does.
pub(super) fn fit(plain: String, essence: &Value, room: usize) -> String {
    if plain.len() < room {
        return plain;
    }
    let deflated = deflate(plain.as_bytes()).map(|it| marked(DEFLATED, &STANDARD.encode(it)));
    deflated.filter(|it| it.len() < room).unwrap_or_else(|| marked(DIGEST, &digest(essence)))
}

/// Returns whether the stored string is the digest of this essence.
pub(super) fn is_of(text: &str, essence: &Value) -> bool {
    // Most stored strings are long and not digests: check the beginning before parsing anything.
    let head = format!("{{\"{MARK}\":{{\"{DIGEST}\"");
    text.starts_with(&head) && text.trim_end() == marked(DIGEST, &digest(essence))
}

/// Returns the essence inside a compact form; a plain essence is returned unchanged. A digest yields an empty essence, so that all
/// of the new essence counts as added. `None` if the compact form is damaged.
pub(super) fn unfold(stored: Value) -> Option<Value> {
    let Some(inner) = stored.get(MARK) else { return Some(stored) };
    if inner.get(DIGEST).is_some() {
        return Some(Value::Object(Map::new()));
    }
    let bytes = STANDARD.decode(inner.get(DEFLATED)?.as_str()?).ok()?;
    depth::value(&inflate(&bytes)?).ok()
}

fn marked(form: &str, content: &str) -> String {
    json!({ MARK: { form: content } }).to_string()
}

fn deflate(text: &[u8]) -> Option<Vec<u8>> {
    // Raw deflate never adds more than five bytes per 16 KiB.
    let mut bytes = Vec::with_capacity(text.len() + text.len() / 1024 + 64);
    let mut stream = Compress::new(Compression::default(), false);
    let status = stream.compress_vec(text, &mut bytes, FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd).then_some(bytes)
}

fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(bytes.len() * 4);
    let mut stream = Decompress::new(false);
    while text.len() < INFLATED_MAX {
        text.reserve(bytes.len().max(1024));
        let read = usize::try_from(stream.total_in()).ok()?;
        let before = text.len();
        let rest = bytes.get(read..)?;
        match stream.decompress_vec(rest, &mut text, FlushDecompress::None).ok()? {
            Status::StreamEnd => return Some(text),
            Status::Ok | Status::BufError if text.len() == before && rest.is_empty() => {
                return None;
            }
            Status::Ok | Status::BufError => {}
        }
    }
    None
}

/// Returns a hash that does not depend on the order of keys, which an API server may change.
fn digest(essence: &Value) -> String {
    let mut sorted = essence.clone();
    sorted.sort_all_objects();
    STANDARD.encode(Blake2b::<U32>::digest(sorted.to_string().as_bytes()))
}
