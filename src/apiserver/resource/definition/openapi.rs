//! Validation of the schemas of CRDs apart from their structure: supported keywords, lists and maps, defaults.

use std::sync::Arc;

use serde_json::Value;

use super::structure::{self, flag, properties, several, text};
use crate::{
    refusal::{ProblemKind, ValidationProblem},
    schema::{self, Rules, Schema},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The strictness of the checks of a schema.
#[derive(Clone, Copy)]
pub(super) struct Strictness {
    /// The schema must be structural.
    pub(super) structural: bool,
    /// Types must be those of Kubernetes.
    pub(super) known_types: bool,
    /// The CRD has a status subresource.
    pub(super) status: bool,
    /// Lists must satisfy the rules of newer Kubernetes releases.
    pub(super) strict_lists: bool,
}

/// Validates a schema. `path` is that of the wrapper, the object with the field `openAPIV3Schema`.
pub(super) fn check(
    wrapper: &Value,
    strictness: Strictness,
    path: &str,
    found: &mut Vec<ValidationProblem>,
) {
    let Some(raw) = wrapper.get("openAPIV3Schema") else { return };
    let before = found.len();
    let path = format!("{path}.openAPIV3Schema");
    if strictness.status {
        at_root_with_status(raw, &path, found);
    }
    if flag(raw, "nullable") {
        found.push(ValidationProblem::forbidden(
            format!("{path}.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let mode = Mode { strictness, no_defaults: None, in_meta: false };
    node(raw, &mode, true, &path, found);
    // The checks above report everything else that is not structural.
    if strictness.structural
        && let Some(keyword) = unstructured(raw)
    {
        if found.len() == before {
            let text = format!("OpenAPIV3Schema '{keyword}' is not supported");
            found.push(ValidationProblem::invalid(path.clone(), "", text));
        }
    } else if strictness.structural {
        found.extend(structure::check(raw, &path));
        if found.len() == before {
            defaults(raw, true, false, &path, found);
        }
    }
    if found.len() == before
        && let Err(error) = Rules::new(raw, Arc::new(Schema::parse(raw)))
    {
        found.extend(error.problems(&path));
    }
}

/// Refuses keywords at the root that validate the status together with other fields: with a status subresource, it is validated
/// separately.
fn at_root_with_status(schema: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    const ALLOWED: [&str; 21] = [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
    ];
    let kind = text(schema, "type");
    if !matches!(kind, "" | "object") {
        let text = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        found.push(ValidationProblem::invalid(format!("{path}.type"), kind, text));
        return;
    }
    let odd =
        |name: &String| !ALLOWED.contains(&name.as_str()) && name != "x-kubernetes-validations";
    if schema.as_object().is_some_and(|it| it.keys().any(odd)) {
        let names = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength \
                     Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
                     XPreserveUnknownFields XValidations]";
        let text = format!(
            "only {names} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        found.push(ValidationProblem::invalid(path, schema.clone(), text));
    }
}

/// Returns a keyword of the schema that structural schemas cannot have.
fn unstructured(schema: &Value) -> Option<&'static str> {
    const KEYWORDS: [&str; 7] = [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
        "$schema",
    ];
    let own = KEYWORDS.into_iter().find(|it| schema.get(it).is_some());
    let items = || schema.get("items").filter(|it| it.is_array()).map(|_| "items");
    let below = || {
        let single = ["items", "additionalProperties", "not"].into_iter();
        let single = single.filter_map(|it| schema.get(it));
        let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|it| several(schema, it));
        single.chain(lists).chain(properties(schema).map(|(_, it)| it)).find_map(unstructured)
    };
    let found = own.or_else(items).or_else(below);
    // The messages of the real server leave out the dollar sign.
    found.map(|it| it.trim_start_matches('$'))
}

#[derive(Clone)]
struct Mode {
    strictness: Strictness,
    no_defaults: Option<String>,
    /// The schema is inside of the metadata of an object.
    in_meta: bool,
}

fn node(schema: &Value, mode: &Mode, root: bool, path: &str, found: &mut Vec<ValidationProblem>) {
    if !schema.is_object() {
        return;
    }
    unsupported(schema, mode, path, found);
    if flag(schema, "uniqueItems") {
        let text =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.push(ValidationProblem::forbidden(format!("{path}.uniqueItems"), text));
    }
    if let Some(rest) = schema.get("additionalProperties") {
        let at = format!("{path}.additionalProperties");
        if properties(schema).next().is_some() && *rest != Value::Bool(true) {
            let text = "additionalProperties and properties are mutual exclusive";
            found.push(ValidationProblem::forbidden(at.clone(), text));
        }
        let mut inner = mode.clone();
        if mode.in_meta {
            inner.no_defaults =
                Some("inside additionalProperties applying to object metadata".into());
        }
        node(rest, &inner, false, &at, found);
    }
    for (name, property) in properties(schema) {
        let mut inner = mode.clone();
        let meta = matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        if meta && (root || flag(schema, "x-kubernetes-embedded-resource")) {
            inner.in_meta = true;
            if root {
                inner.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        node(property, &inner, false, &format!("{path}.properties[{name}]"), found);
    }
    if let Some(not) = schema.get("not") {
        node(not, mode, false, &format!("{path}.not"), found);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (at, branch) in several(schema, name).enumerate() {
            node(branch, mode, false, &format!("{path}.{name}[{at}]"), found);
        }
    }
    if let Some(items) = schema.get("items") {
        node(items, mode, false, &format!("{path}.items"), found);
    }
    let preserves = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserves) == Some(&Value::Bool(false)) {
        found.push(ValidationProblem::invalid(
            format!("{path}.{preserves}"),
            false,
            "must be true or undefined",
        ));
    }
    lists_and_maps(schema, mode.strictness, path, found);
}

fn unsupported(schema: &Value, mode: &Mode, path: &str, found: &mut Vec<ValidationProblem>) {
    let kind = text(schema, "type");
    if mode.strictness.known_types && !kind.is_empty() && !TYPES.contains(&kind) {
        let kind = ProblemKind::NotSupported(kind.into(), TYPES.map(String::from).into());
        found.push(ValidationProblem::new(format!("{path}.type"), kind));
    }
    if let Some(reason) = &mode.no_defaults
        && schema.get("default").is_some()
    {
        found.push(ValidationProblem::forbidden(
            format!("{path}.default"),
            format!("must not be set {reason}"),
        ));
    }
    for name in
        ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        if schema.get(name).is_some() {
            found.push(ValidationProblem::forbidden(
                format!("{path}.{name}"),
                format!("{name} is not supported"),
            ));
        }
    }
    if kind == "null" {
        let text = "type cannot be set to null, use nullable as an alternative";
        found.push(ValidationProblem::forbidden(format!("{path}.type"), text));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let text = "items must be a schema object and not an array";
        found.push(ValidationProblem::forbidden(format!("{path}.items"), text));
    }
    let embedded = "x-kubernetes-embedded-resource";
    if mode.in_meta && flag(schema, embedded) {
        let text = "must not be used inside of resource meta";
        found.push(ValidationProblem::forbidden(format!("{path}.{embedded}"), text));
    }
}

fn lists_and_maps(
    schema: &Value,
    strictness: Strictness,
    path: &str,
    found: &mut Vec<ValidationProblem>,
) {
    let (map_type, list_type) = ("x-kubernetes-map-type", "x-kubernetes-list-type");
    let kinds = [
        (map_type, "object", &["atomic", "granular"][..]),
        (list_type, "array", &["atomic", "set", "map"]),
    ];
    for (name, kind, known) in kinds {
        let Some(value) = schema.get(name).and_then(Value::as_str) else { continue };
        let own = text(schema, "type");
        if own != kind {
            let (at, text) =
                (format!("{path}.type"), format!("must be {kind} if {name} is specified"));
            found.push(match own {
                "" => ValidationProblem::required(at, text),
                own => ValidationProblem::invalid(at, own, text),
            });
        }
        if !known.contains(&value) && (own == kind || name == map_type) {
            let known = known.iter().map(|it| (*it).to_owned()).collect();
            let kind = ProblemKind::NotSupported(value.into(), known);
            found.push(ValidationProblem::new(format!("{path}.{name}"), kind));
        }
    }
    let has_keys = several(schema, "x-kubernetes-list-map-keys").next().is_some();
    let at = format!("{path}.{list_type}");
    let must = "must be map if x-kubernetes-list-map-keys is non-empty";
    match schema.get(list_type).and_then(Value::as_str) {
        None if has_keys => found.push(ValidationProblem::required(at, must)),
        Some("map") => list_map(schema, path, found),
        Some(other) if has_keys => found.push(ValidationProblem::invalid(at, other, must)),
        _ => {}
    }
    if strictness.strict_lists {
        strict_lists(schema, path, found);
    }
}

fn list_map(schema: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    let keys: Vec<&str> =
        several(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str).collect();
    let keys_at = format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let text = "must not be empty if x-kubernetes-list-type is map";
        found.push(ValidationProblem::required(keys_at.clone(), text));
    }
    let Some(items) = schema.get("items") else {
        let text = "must have a schema if x-kubernetes-list-type is map";
        found.push(ValidationProblem::required(format!("{path}.items"), text));
        return;
    };
    let kind = text(items, "type");
    if kind != "object" {
        let text = "must be object if parent array's x-kubernetes-list-type is map";
        found.push(ValidationProblem::invalid(format!("{path}.items.type"), kind, text));
        return;
    }
    let given = schema.get("x-kubernetes-list-map-keys").cloned().unwrap_or_default();
    let wrong_keys = |text: &str| ValidationProblem::invalid(keys_at.clone(), given.clone(), text);
    for (at, key) in keys.iter().enumerate() {
        match items.get("properties").and_then(|it| it.get(key)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = format!("{path}.items.properties[{key}].type");
                found.push(ValidationProblem::invalid(at, kind, text));
            }
            Some(_) => {}
            None => found.push(wrong_keys("entries must all be names of item properties")),
        }
        if keys.iter().take(at).any(|it| it == key) {
            found.push(wrong_keys("must not contain duplicate entries"));
        }
    }
}

fn strict_lists(schema: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    let Some(items) = schema.get("items").filter(|it| it.is_object()) else { return };
    let list_type = text(schema, "x-kubernetes-list-type");
    if !matches!(list_type, "set" | "map") {
        return;
    }
    if flag(items, "nullable") {
        let text = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        found.push(ValidationProblem::forbidden(format!("{path}.items.nullable"), text));
    }
    if list_type == "set" {
        let (name, kind) = match text(items, "type") {
            "object" => ("x-kubernetes-map-type", items.get("x-kubernetes-map-type")),
            "array" => match items.get("x-kubernetes-list-type") {
                None => return,
                kind => ("x-kubernetes-list-type", kind),
            },
            _ => return,
        };
        if kind.is_none_or(|it| it != "atomic") {
            let text = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let kind = kind.cloned().unwrap_or_default();
            found.push(ValidationProblem::invalid(format!("{path}.items.{name}"), kind, text));
        }
        return;
    }
    for key in several(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str) {
        let Some(property) = items.get("properties").and_then(|it| it.get(key)) else { continue };
        let at = format!("{path}.items.properties[{key}]");
        let required = several(items, "required").any(|it| it == key);
        let why = "this property is in x-kubernetes-list-map-keys, so it";
        if !required && property.get("default").is_none() {
            let text = format!("{why} must have a default or be a required property");
            found.push(ValidationProblem::required(format!("{at}.default"), text));
        }
        if flag(property, "nullable") {
            found.push(ValidationProblem::forbidden(
                format!("{at}.nullable"),
                format!("{why} cannot be nullable"),
            ));
        }
    }
}

/// Validates the defaults of a schema by the schema itself.
fn defaults(
    raw: &Value,
    root: bool,
    in_meta: bool,
    path: &str,
    found: &mut Vec<ValidationProblem>,
) {
    let embedded = root || flag(raw, "x-kubernetes-embedded-resource");
    if let Some(default) = raw.get("default") {
        one_default(raw, default, (embedded, in_meta), &format!("{path}.default"), found);
    }
    if let Some(items) = raw.get("items") {
        defaults(items, false, in_meta, &format!("{path}.items"), found);
    }
    for (name, property) in properties(raw) {
        let meta = embedded && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        defaults(property, false, in_meta || meta, &format!("{path}.properties[{name}]"), found);
    }
    if let Some(rest) = raw.get("additionalProperties").filter(|it| it.is_object()) {
        defaults(rest, false, in_meta, &format!("{path}.additionalProperties"), found);
    }
}

fn one_default(
    raw: &Value,
    default: &Value,
    (embedded, in_meta): (bool, bool),
    path: &str,
    found: &mut Vec<ValidationProblem>,
) {
    let tree = Schema::parse(raw);
    if !in_meta {
        let mut pruned = default.clone();
        schema::prune_part(&tree, &mut pruned, embedded);
        if pruned != *default {
            found.push(ValidationProblem::invalid(
                path,
                default.clone(),
                "must not have unknown fields",
            ));
            return;
        }
    }
    match Rules::new(raw, Arc::new(tree)) {
        Ok(rules) => found.extend(rules.check_part(default, embedded && !in_meta, path)),
        Err(error) => found.extend(error.problems(path)),
    }
}
