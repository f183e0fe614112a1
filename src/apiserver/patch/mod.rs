//! The kinds of patches.

use serde_json::Value;

use crate::apiserver::refusal::Refusal;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// A patch as it came, not applied yet.
pub(crate) enum Patch {
    /// RFC 7386
    Merge(Value),
    /// RFC 6902
    Json(json_patch::Patch),
}

impl Patch {
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let bad = |error: serde_json::Error| {
            Refusal::bad_request(format!("error decoding patch: {error}"))
        };
        match kind {
            MERGE => serde_json::from_slice(body).map(Patch::Merge).map_err(bad),
            JSON => serde_json::from_slice(body).map(Patch::Json).map_err(bad),
            // A strategic merge needs the schema of each type: a plain merge instead would differ silently.
            _ => Err(Refusal::unsupported_media_type(&[JSON, MERGE])),
        }
    }

    /// Either all of it or nothing.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, Refusal> {
        let mut patched = object.clone();
        match self {
            Patch::Merge(patch) => json_patch::merge(&mut patched, patch),
            Patch::Json(patch) => {
                json_patch::patch(&mut patched, patch)
                    .map_err(|_error| Refusal::unprocessable())?;
            }
        }
        Ok(patched)
    }
}
