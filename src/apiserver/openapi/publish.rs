//! The schemas of CRDs as definitions.
//!
//! OpenAPI v2 cannot express everything that a CRD can. Old clients would refuse valid objects because of it. Like the real server,
//! this module leaves out such parts.

use serde_json::{Map, Value, json};

use super::definitions::META;
use crate::resource::ResourceDef;

/// Limit of the depth of a schema; deeper parts are left out. It is more than the depth of JSON that the server accepts.
const DEPTH_MAX: usize = 128;

/// Keywords that OpenAPI v2 does not have.
const UNKNOWN: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "default", "nullable"];

/// Keywords that are left out together with the type.
const PARTS: [&str; 5] = ["type", "properties", "items", "additionalProperties", "required"];

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// Returns the name of a definition: the reversed group, the version, the kind.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// Returns the definition of a kind for OpenAPI v2.
pub(super) fn object(def: &ResourceDef, version: &str, schema: Option<&Value>) -> Value {
    // A kind with unknown fields at the top has no schema here, because clients would refuse each of these fields.
    let open = |it: &&Value| it.get(PRESERVES) == Some(&Value::Bool(true));
    let mut schema = match schema.filter(|it| !open(it)) {
        Some(schema) => {
            let mut schema = simplify(schema, 0);
            add_basics(&mut schema, META);
            schema
        }
        None => json!({ "type": "object" }),
    };
    mark(&mut schema, def, version, &def.kind);
    schema
}

/// Returns the definition of a kind for OpenAPI v3, with its complete schema.
pub(super) fn whole_object(def: &ResourceDef, version: &str, schema: Option<&Value>) -> Value {
    let mut schema = schema.cloned().unwrap_or_else(|| json!({ "type": "object" }));
    add_basics(&mut schema, META);
    mark(&mut schema, def, version, &def.kind);
    schema
}

/// Returns the definition of the list of a kind.
pub(super) fn list(def: &ResourceDef, version: &str, item: &str) -> Value {
    let kind = format!("{}List", def.kind);
    let mut schema = json!({
        "description": format!("{kind} is a list of {}", def.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string" },
            "items": {
                "type": "array",
                "items": { "$ref": format!("#/definitions/{item}") },
            },
            "kind": { "type": "string" },
            "metadata": { "$ref": format!("#/definitions/{META}ListMeta") },
        },
    });
    mark(&mut schema, def, version, &kind);
    schema
}

fn mark(schema: &mut Value, def: &ResourceDef, version: &str, kind: &str) {
    if let Some(fields) = schema.as_object_mut() {
        let mark = json!([{ "group": def.group, "kind": kind, "version": version }]);
        fields.insert("x-kubernetes-group-version-kind".into(), mark);
    }
}

/// Adds the fields that every object has, even if its schema does not mention them.
fn add_basics(schema: &mut Value, meta: &str) {
    let Some(fields) = schema.as_object_mut() else { return };
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return };
    let text = |about: &str| json!({ "type": "string", "description": about });
    let conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    properties.insert("apiVersion".into(), text(&format!(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
         schemas to the latest internal value, and may reject unrecognized values. {conventions}#resources"
    )));
    properties.insert("kind".into(), text(&format!(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
         endpoint the client submits requests to. Cannot be updated. In CamelCase. {conventions}#types-kinds"
    )));
    let metadata = json!({
        "description": format!("Standard object's metadata. {conventions}#metadata"),
        "$ref": format!("#/definitions/{meta}ObjectMeta"),
    });
    properties.insert("metadata".into(), metadata);
    properties.sort_keys();
}

/// Removes the parts of a schema that OpenAPI v2 cannot express.
fn simplify(schema: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
        return schema.as_bool().map_or_else(|| json!({}), Value::Bool);
    };
    let is = |name: &str| fields.get(name) == Some(&Value::Bool(true));
    let untyped = is("nullable") || is(PRESERVES) || is("x-kubernetes-int-or-string");
    let mut simple = Map::new();
    for (name, value) in fields {
        let name_str = name.as_str();
        if UNKNOWN.contains(&name_str) || untyped && PARTS.contains(&name_str) {
            continue;
        }
        let value = match (name_str, value) {
            ("properties", Value::Object(parts)) => {
                parts.iter().map(|(name, it)| (name.clone(), simplify(it, depth + 1))).collect()
            }
            ("items" | "additionalProperties", it) => simplify(it, depth + 1),
            (_, it) => it.clone(),
        };
        simple.insert(name.clone(), value);
    }
    let mut simple = Value::Object(simple);
    if is("x-kubernetes-embedded-resource") && !untyped {
        add_basics(&mut simple, META);
        if let Some(fields) = simple.as_object_mut() {
            fields.insert("required".into(), json!(["kind", "apiVersion"]));
        }
    }
    simple
}
