//! The kinds of patches: what a body means, and what it makes of an object.

mod coerce;
mod json;
mod merge;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::{
    refusal::{Problem, Refusal, go},
    request::{
        body,
        json::{Fault, parse, parse_first, type_name},
        yaml,
    },
    schema::Schema,
};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A patch as it came, not applied yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Patch {
    /// RFC 6902
    Json(Vec<json::Operation>),
    /// RFC 7386: an object, or a list.
    Merge(Value),
    /// An object; for native kinds only.
    Strategic(Value),
    /// Server-side apply: an object, what one manager wants. Applied by the field management, not here.
    Apply(Value),
}

impl Patch {
    /// Reads a patch for a native or a custom kind: they take different types of patches.
    pub(crate) fn parse(content_type: &str, body: &[u8], native: bool) -> Result<Self, Refusal> {
        // Neither case nor spaces are forgiven here, other than in types of bodies.
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

    /// Either all of it or nothing. `schema` guides strategic merges. The result may be of another kind or have fields of wrong
    /// types: see [`body::check_patched`].
    pub(crate) fn apply(&self, object: &Value, schema: Option<&Schema>) -> Result<Value, Refusal> {
        match self {
            Self::Json(steps) => json::apply(steps, object).ok_or_else(Refusal::unprocessable),
            Self::Merge(patch) => {
                let merged = merge::apply(patch, object);
                match body::type_meta(&merged) {
                    Err(why) if !merged.is_object() => Err(unfit(
                        merged.to_string(),
                        format!("couldn't get version/kind; json parse error: {why}"),
                    )),
                    _ => Ok(merged),
                }
            }
            Self::Strategic(patch) => {
                let mut merged = strategic::apply(patch, object, schema)?;
                // The real server merges into a typed object, which keeps its kind.
                for field in ["apiVersion", "kind"] {
                    crate::object::put(&mut merged, field, object.get(field).cloned());
                }
                if let Some(why) = schema.and_then(|it| coerce::fault(&merged, it)) {
                    let shown = go::plain(patch);
                    return Err(unfit(shown, why));
                }
                Ok(merged)
            }
            Self::Apply(_) => Err(Refusal::internal("an applied configuration is no patch")),
        }
    }
}

/// The result is no object of the kind.
fn unfit(shown: String, why: String) -> Refusal {
    Refusal::invalid("", "", "", &[Problem::invalid("patch", shown, why)])
}

fn parse_merge(body: &[u8]) -> Result<Value, Refusal> {
    let bad = || Refusal::unclassed("Invalid JSON Patch");
    match parse(body) {
        Ok(patch @ (Value::Object(_) | Value::Array(_))) => Ok(patch),
        Ok(_scalar) => Err(bad()),
        Err(_fault) => Err(bad()),
    }
}

fn parse_strategic(body: &[u8]) -> Result<Value, Refusal> {
    match parse_first(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(other) => Err(Refusal::bad_request(no_map(&other))),
        // A decoder of streams has other words for this.
        Err(Fault::Syntax { cut: true, .. }) if body.trim_ascii().is_empty() => {
            Err(Refusal::bad_request("EOF"))
        }
        Err(Fault::Syntax { cut: true, .. }) => Err(Refusal::bad_request("unexpected EOF")),
        Err(Fault::Syntax { text, .. }) => Err(Refusal::bad_request(text)),
        Err(Fault::Number) => Err(Refusal::bad_request("json: number out of range")),
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
    let name = type_name(value);
    format!("json: cannot unmarshal {name} into Go value of type map[string]interface {{}}")
}
