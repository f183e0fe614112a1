//! Defaulting of CRDs, and removal of unknown fields.

use serde_json::{Map, Value, json};

/// The keywords of a schema. Other fields are removed.
const SCHEMA_FIELDS: [&str; 46] = [
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-selectable-fields",
    "x-kubernetes-group-version-kind",
];

/// Fields in which `false`, `null` or an empty value differs from a missing field.
const MEANT: [&str; 4] =
    ["additionalProperties", "additionalItems", "enum", "x-kubernetes-preserve-unknown-fields"];

/// Fills in the defaults of a CRD, and removes unknown fields from its schemas.
pub(crate) fn defaults(crd: &mut Value) {
    let Some(fields) = crd.as_object_mut() else { return };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        fill_spec(spec);
    }
    let stored: Vec<Value> = storage_version(crd).into_iter().collect();
    let Some(fields) = crd.as_object_mut() else { return };
    let status = fields.entry("status").or_insert_with(
        || json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" } }),
    );
    if let Some(status) = status.as_object_mut()
        && status.get("storedVersions").is_none_or(|it| it.as_array().is_none_or(Vec::is_empty))
    {
        status.insert(
            "storedVersions".into(),
            if stored.is_empty() { Value::Null } else { stored.into() },
        );
    }
}

fn fill_spec(spec: &mut Map<String, Value>) {
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.shift_remove("preserveUnknownFields");
    }
    fill_names(spec);
    let conversion = spec.entry("conversion").or_insert_with(|| json!({ "strategy": "None" }));
    if let Some(service) =
        conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut)
    {
        service.entry("port").or_insert(json!(443));
    }
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
    for version in versions {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            clean(schema);
        }
    }
}

fn fill_names(spec: &mut Map<String, Value>) {
    let names = spec.entry("names").or_insert_with(|| json!({}));
    let Some(names) = names.as_object_mut() else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind.is_empty() {
        return;
    }
    for (name, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
            names.insert(name.into(), value.into());
        }
    }
}

/// Returns the name of the storage version.
pub(super) fn storage_version(crd: &Value) -> Option<Value> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array)?;
    versions.iter().find(|it| it.get("storage") == Some(&Value::Bool(true)))?.get("name").cloned()
}

/// Removes fields from a schema that are unknown to the server, or that it leaves out when it writes the schema.
fn clean(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|name, value| {
        let known = SCHEMA_FIELDS.contains(&name.as_str());
        let empty = match value {
            Value::Null => true,
            Value::Bool(false) => !MEANT.contains(&name.as_str()) && name != "default",
            Value::String(it) => it.is_empty() && name != "default" && name != "example",
            Value::Array(it) => it.is_empty() && name != "default" && name != "example",
            Value::Object(it) => {
                it.is_empty()
                    && matches!(name.as_str(), "properties" | "patternProperties" | "definitions")
            }
            Value::Bool(true) | Value::Number(_) => false,
        };
        known && !empty
    });
    for (name, value) in fields {
        match name.as_str() {
            "properties" | "patternProperties" | "definitions" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, it)| clean(it));
            }
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array_mut().into_iter().flatten().for_each(clean);
            }
            "not" | "items" | "additionalProperties" | "additionalItems" => clean(value),
            _ => {}
        }
    }
}
