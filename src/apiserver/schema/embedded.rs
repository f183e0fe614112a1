//! Validation of embedded objects, which have a kind and metadata: `x-kubernetes-embedded-resource`.

use serde_json::Value;

use super::{Schema, SchemaShape};
use crate::{
    metadata::names,
    object,
    refusal::{
        ValidationProblem,
        path::{push_field, push_item},
    },
};

/// Validates the embedded objects in an object. The object itself is validated elsewhere.
pub(super) fn check(schema: &Schema, object: &Value, found: &mut Vec<ValidationProblem>) {
    walk(schema, object, &mut String::new(), found);
}

/// Recurses into the parts of a value. The name of each part is appended to the path.
fn walk(schema: &Schema, value: &Value, path: &mut String, found: &mut Vec<ValidationProblem>) {
    if schema.embedded && !path.is_empty() && value.is_object() {
        one(value, path, found);
    }
    let length = path.len();
    match (value, &schema.shape) {
        (Value::Object(values), SchemaShape::Map { fields, rest, .. }) => {
            for (name, value) in values {
                let (link, known) = match fields.get(name) {
                    Some(link) => (Some(link), true),
                    None => (rest.as_ref(), false),
                };
                let Some(schema) = link.and_then(super::SchemaOrRef::schema) else { continue };
                if known {
                    push_field(path, name);
                } else {
                    push_item(path, name);
                }
                walk(schema, value, path, found);
                path.truncate(length);
            }
        }
        (Value::Array(items), SchemaShape::List { items: Some(link), .. }) => {
            let Some(schema) = link.schema() else { return };
            for (at, item) in items.iter().enumerate() {
                push_item(path, at);
                walk(schema, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

pub(super) fn one(value: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version.is_empty() {
        found.push(ValidationProblem::required(format!("{path}.apiVersion"), ""));
    } else if version.matches('/').count() > 1 {
        let text = format!("unexpected GroupVersion string: {version}");
        found.push(ValidationProblem::invalid(format!("{path}.apiVersion"), version, text));
    }
    if kind.is_empty() {
        found.push(ValidationProblem::required(format!("{path}.kind"), ""));
    } else {
        let wrong = names::dns_1035_label(&kind.to_lowercase());
        if !wrong.is_empty() {
            let text =
                format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            found.push(ValidationProblem::invalid(format!("{path}.kind"), kind, text));
        }
    }
    if let Some(meta) = value.get("metadata") {
        metadata(value, meta, &format!("{path}.metadata"), found);
    }
}

/// Validates metadata, except names, which may have any form in other kinds.
fn metadata(whole: &Value, meta: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    let mut wrong = |field: &str, value: &str, texts: Vec<String>| {
        let problems = texts
            .into_iter()
            .map(|it| ValidationProblem::invalid(format!("{path}.{field}"), value, it));
        found.extend(problems);
    };
    let namespace = object::meta(whole, "namespace");
    if !namespace.is_empty() {
        wrong("namespace", namespace, names::dns_label(namespace));
    }
    let map = |name: &str| meta.get(name).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in map("labels") {
        wrong("labels", key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        wrong("labels", value, names::label_value(value));
    }
    for (key, _) in map("annotations") {
        wrong("annotations", key, names::qualified_name(&key.to_lowercase()));
    }
    for finalizer in object::finalizers(whole) {
        wrong("finalizers", &finalizer, names::qualified_name(&finalizer));
    }
}
