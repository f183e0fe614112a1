//! Reads a `ConversionReview`, finds the handlers that convert an object, and builds the response.
//!
//! As API servers require it, the metadata of a converted object is that of the original one, except for labels and annotations.

use std::{collections::VecDeque, sync::Arc};

use serde_json::{Map, Value, json};

use super::review::{ReviewError, malformed};
use crate::logic::{
    change::selection::Selected,
    handlers::handler::{Conversion, Handler},
    object::resource::Resource,
};

/// One request of an API server for objects in another version.
#[derive(Clone, Debug)]
pub struct ConversionReview {
    /// The version of the review, which the response repeats.
    api_version: Value,
    /// `request.uid`, which the response repeats.
    uid: Value,
    /// The requested version, without its group.
    pub version: String,
    /// The objects to convert, in the order of the response.
    pub objects: Vec<Value>,
}

/// Returns whether this is a review of this kind.
pub fn is_review(review: &Map<String, Value>) -> bool {
    review.get("kind").is_some_and(|it| it == "ConversionReview")
}

impl ConversionReview {
    /// Reads a parsed review.
    ///
    /// # Errors
    /// Fails if it is incomplete.
    pub fn of(mut review: Value) -> Result<Self, ReviewError> {
        let api_version = review.get("apiVersion").cloned();
        let mut request = review.get_mut("request").map(Value::take).unwrap_or_default();
        let Some(desired) = request.get("desiredAPIVersion").and_then(Value::as_str) else {
            return Err(malformed("the review has no field `request.desiredAPIVersion`"));
        };
        let (_group, version) = desired.split_once('/').unwrap_or(("", desired));
        let version = version.to_owned();
        let Some(Value::Array(objects)) = request.get_mut("objects").map(Value::take) else {
            return Err(malformed("the review has no field `request.objects`"));
        };
        Ok(ConversionReview {
            api_version: api_version.unwrap_or_else(|| "apiextensions.k8s.io/v1".into()),
            uid: request.get("uid").cloned().unwrap_or_else(|| "".into()),
            version,
            objects,
        })
    }

    /// Returns the review with the response: the converted objects, or the error.
    pub fn answer(&self, converted: Result<Vec<Value>, String>) -> Value {
        let response = match converted {
            Ok(objects) => json!({
                "uid": self.uid, "convertedObjects": objects, "result": { "status": "Success" },
            }),
            Err(message) => json!({
                "uid": self.uid, "result": { "status": "Failure", "message": message },
            }),
        };
        json!({ "apiVersion": self.api_version, "kind": "ConversionReview", "response": response })
    }
}

/// Returns the handlers of the kind of an object.
pub fn handlers_of<'a>(
    served: &'a [(Arc<Resource>, Selected)],
    object: &Value,
) -> Option<&'a (Arc<Resource>, Selected)> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, _version) = text("apiVersion").split_once('/').unwrap_or_default();
    served.iter().find(|(it, handlers)| {
        it.group == group && it.kind == text("kind") && handlers.iter().any(|it| converts(it))
    })
}

fn converts(handler: &Handler) -> bool {
    handler.admission.conversion.is_some()
}

/// Returns the fewest handlers that convert from one version to another, one after the other; of several such chains, the one that
/// is declared first. `None`: there is none.
pub fn chain(handlers: &[Arc<Handler>], from: &str, to: &str) -> Option<Vec<Arc<Handler>>> {
    let mut chains = VecDeque::from([(from, Vec::new())]);
    let mut seen = vec![from];
    while let Some((version, chain)) = chains.pop_front() {
        if version == to {
            return Some(chain);
        }
        for handler in handlers {
            let Some(step) = &handler.admission.conversion else { continue };
            if step.from == version && !seen.contains(&&*step.to) {
                seen.push(&step.to);
                let mut longer = chain.clone();
                longer.push(Arc::clone(handler));
                chains.push_back((&step.to, longer));
            }
        }
    }
    None
}

/// Returns the names of the CRDs whose objects these handlers convert.
pub fn crds(served: &[(Arc<Resource>, Selected)]) -> impl Iterator<Item = String> {
    let converting = served.iter().filter(|(_, handlers)| handlers.iter().any(|it| converts(it)));
    converting.map(|(it, _)| format!("{}.{}", it.plural, it.group))
}

/// Returns the version of an object, without its group.
pub fn version_of(object: &Value) -> &str {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    api_version.split_once('/').map_or(api_version, |(_, version)| version)
}

/// Returns the name of an object in messages, such as `Link ns1/a`.
pub fn name_of(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// Completes the object that a handler has returned: the version, the kind, and the metadata of the original object.
///
/// # Errors
/// Fails if it is not an object, or if a handler has changed other metadata than labels and annotations.
pub fn completed(
    original: &Value,
    returned: Option<Value>,
    step: &Conversion,
) -> Result<Value, String> {
    let Some(Value::Object(mut converted)) = returned else {
        return Err("it must return the converted object".to_owned());
    };
    let before = original.get("metadata").and_then(Value::as_object);
    let mut metadata = before.cloned().unwrap_or_default();
    match converted.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => {
            if let Some(field) = changed_field(&metadata, given) {
                return Err(format!(
                    "it has changed metadata.{field}, but only labels and annotations can be changed"
                ));
            }
            for field in ["labels", "annotations"] {
                match given.get(field).filter(|it| !it.is_null()) {
                    Some(values) => metadata.insert(field.to_owned(), values.clone()),
                    None => metadata.shift_remove(field),
                };
            }
        }
        Some(_) => return Err("the metadata that it has returned is not a map".to_owned()),
    }
    let api_version = original.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = original.get("kind").cloned().unwrap_or_default();
    if converted.get("kind").is_some_and(|it| *it != kind) {
        return Err("it has changed the kind".to_owned());
    }
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), format!("{group}/{}", step.to).into());
    object.insert("kind".to_owned(), kind);
    object.insert("metadata".to_owned(), metadata.into());
    for field in ["apiVersion", "kind", "metadata"] {
        converted.shift_remove(field);
    }
    object.extend(converted);
    Ok(Value::Object(object))
}

/// Returns the first field of the metadata that a handler has changed. Fields that it has left out count as unchanged.
fn changed_field<'a>(
    before: &Map<String, Value>,
    given: &'a Map<String, Value>,
) -> Option<&'a str> {
    let mut fields =
        given.iter().filter(|(it, _)| !matches!(it.as_str(), "labels" | "annotations"));
    let changed = fields.find(|(field, value)| before.get(*field) != Some(*value));
    changed.map(|(field, _)| field.as_str())
}
