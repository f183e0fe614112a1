//! The kinds of patches: parsing and application.

mod json;
mod merge;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::{
    refusal::Refusal,
    request::{
        body,
        json::{parse, parse_first, type_name},
        yaml,
    },
    schema::Schema,
};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A parsed patch that is not applied yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedPatch {
    /// A JSON patch, RFC 6902.
    Json(Vec<json::PatchOperation>),
    /// A merge patch, RFC 7386: an object.
    Merge(Value),
    /// A strategic merge patch: an object; for native kinds only.
    Strategic(Value),
    /// A server-side apply: the configuration of one manager. Field management applies it.
    Apply(Value),
}

impl ParsedPatch {
    /// Parses a patch for a native or a custom kind, which support different types of patches.
    pub(crate) fn parse(content_type: &str, body: &[u8], native: bool) -> Result<Self, Refusal> {
        // Case and spaces matter here, unlike in the types of other bodies.
        let kind = match content_type.find(';') {
            Some(at) if at > 0 => content_type.get(..at).unwrap_or_default(),
            _ => content_type,
        };
        match kind {
            JSON => json::parse(body).map(Self::Json),
            MERGE => parse_merge(body).map(Self::Merge),
            STRATEGIC if native => parse_strategic(body).map(Self::Strategic),
            APPLY => parse_apply(body).map(Self::Apply),
            _ if native => Err(Refusal::unsupported_patch()),
            _ => Err(Refusal::unsupported_media_type(&[JSON, MERGE, APPLY])),
        }
    }

    /// Applies all of a patch or nothing. `schema` is for strategic merges. The result may be of another kind or have fields of
    /// wrong types: see [`body::check_patched`].
    pub(crate) fn apply(&self, object: &Value, schema: Option<&Schema>) -> Result<Value, Refusal> {
        match self {
            Self::Json(steps) => json::apply(steps, object).ok_or_else(Refusal::unprocessable),
            Self::Merge(patch) => {
                let merged = merge::apply(patch, object);
                match body::type_meta(&merged) {
                    Err(why) if !merged.is_object() => Err(Refusal::unfit_patch(&why)),
                    _ => Ok(merged),
                }
            }
            Self::Strategic(patch) => {
                let mut merged = strategic::apply(patch, object, schema)?;
                // The real server merges into a typed object, which keeps its kind.
                for field in ["apiVersion", "kind"] {
                    crate::object::put(&mut merged, field, object.get(field).cloned());
                }
                Ok(merged)
            }
            Self::Apply(_) => Err(Refusal::internal("an applied configuration is no patch")),
        }
    }
}

fn undecodable(why: &str) -> Refusal {
    Refusal::bad_request(format!("error decoding patch: {why}"))
}

fn parse_merge(body: &[u8]) -> Result<Value, Refusal> {
    match parse(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(list @ Value::Array(_)) => Err(undecodable(&no_map(&list))),
        Ok(_scalar) => Err(Refusal::bad_request("Invalid JSON Patch")),
        Err(why) => Err(undecodable(&why)),
    }
}

fn parse_strategic(body: &[u8]) -> Result<Value, Refusal> {
    match parse_first(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(other) => Err(undecodable(&no_map(&other))),
        Err(why) => Err(undecodable(&why)),
    }
}

fn parse_apply(body: &[u8]) -> Result<Value, Refusal> {
    let refused = |why: String| Refusal::bad_request(format!("error decoding YAML: {why}"));
    match yaml::parse(body) {
        Ok(config @ Value::Object(_)) => Ok(config),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(other) => {
            let why = no_map(&other);
            Err(refused(format!("error unmarshaling JSON: while decoding JSON: {why}")))
        }
        Err(why) => Err(refused(format!("error converting YAML to JSON: yaml: {why}"))),
    }
}

fn no_map(value: &Value) -> String {
    format!("expected an object, got a value of type {}", type_name(value))
}
