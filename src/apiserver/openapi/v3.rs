//! OpenAPI v3, made from the parts of v2: other paths of references, and complete schemas of CRDs.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{definitions::OpenApiDefinitions, paths, publish};
use crate::resource::kind::Kind;

/// Returns the document of one version of a group.
pub(super) fn document(kinds: &[Arc<Kind>], natives: Map<String, Value>) -> Value {
    let mut definitions = OpenApiDefinitions::collect(kinds, natives);
    let paths = paths::paths(kinds, &definitions);
    for kind in kinds.iter().filter(|it| !it.def.native) {
        for version in &kind.def.versions {
            let schema = kind.versions.get(version).and_then(|it| it.raw_schema.as_deref());
            let name = publish::name(&kind.def.group, version, &kind.def.kind);
            definitions.all.insert(name, publish::whole_object(&kind.def, version, schema));
        }
    }
    let mut schemas = Value::Object(definitions.all);
    redirect(&mut schemas);
    let paths: Map<String, Value> = paths.into_iter().map(|(path, it)| (path, item(it))).collect();
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.3" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Rewrites references for OpenAPI v3, and allows numbers where integers and strings are both valid.
fn redirect(value: &mut Value) {
    // A work list instead of recursion, because schemas come from clients.
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                if fields.get("format").is_some_and(|it| it == "int-or-string") {
                    fields.shift_remove("type");
                    fields.insert(
                        "oneOf".into(),
                        json!([{ "type": "integer" }, { "type": "string" }]),
                    );
                }
                if let Some(Value::String(to)) = fields.get_mut("$ref")
                    && let Some(name) = to.strip_prefix("#/definitions/")
                {
                    *to = format!("#/components/schemas/{name}");
                }
                waiting.extend(fields.values_mut());
            }
            Value::Array(items) => waiting.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Converts one path item.
fn item(item: Value) -> Value {
    let Value::Object(fields) = item else { return item };
    let fields = fields.into_iter().map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("parameters", Value::Array(items)) => items.into_iter().map(parameter).collect(),
            (_, value) => operation(value),
        };
        (name, value)
    });
    fields.collect()
}

fn operation(operation: Value) -> Value {
    let Value::Object(mut fields) = operation else { return operation };
    let mut take = |name: &str| match fields.shift_remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let consumes = take("consumes");
    let produces = take("produces");
    let parameters = take("parameters");
    fields.shift_remove("schemes");
    let (bodies, parameters): (Vec<Value>, Vec<Value>) =
        parameters.into_iter().partition(|it| it.get("in").is_some_and(|it| it == "body"));
    let parameters: Vec<Value> = parameters.into_iter().map(parameter).collect();
    if !parameters.is_empty() {
        fields.insert("parameters".into(), parameters.into());
    }
    if let Some(body) = bodies.first() {
        let patch = fields.get("x-kubernetes-action").is_some_and(|it| it == "patch");
        let any = [Value::from("*/*")];
        let media = if patch { consumes.as_slice() } else { any.as_slice() };
        let required = body.get("required").cloned().unwrap_or_default();
        let body = json!({ "content": content(media, body), "required": required });
        fields.insert("requestBody".into(), body);
    }
    let responses = fields.get_mut("responses").and_then(Value::as_object_mut);
    for response in responses.into_iter().flat_map(Map::values_mut) {
        let content = content(&produces, response);
        if let Some(response) = response.as_object_mut().filter(|it| it.contains_key("schema")) {
            response.shift_remove("schema");
            response.insert("content".into(), content);
        }
    }
    Value::Object(fields)
}

fn content(media: &[Value], holder: &Value) -> Value {
    let mut schema = holder.get("schema").cloned().unwrap_or_default();
    redirect(&mut schema);
    let media = media.iter().filter_map(Value::as_str);
    media.map(|it| (it.to_owned(), json!({ "schema": schema }))).collect()
}

fn parameter(parameter: Value) -> Value {
    let Value::Object(mut fields) = parameter else { return parameter };
    let kind = fields.shift_remove("type").unwrap_or_else(|| "string".into());
    fields.shift_remove("uniqueItems");
    fields.insert("schema".into(), json!({ "type": kind, "uniqueItems": true }));
    Value::Object(fields)
}
