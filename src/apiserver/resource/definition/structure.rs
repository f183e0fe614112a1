//! The rules of structural schemas: every field has one type, and junctors (`anyOf`, …) only restrict what is declared outside of
//! them.

use serde_json::Value;

use crate::{refusal::ValidationProblem, schema::pattern};

#[derive(Clone, Copy, PartialEq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// Returns the violations of the rules, sorted by message as on the real server.
///
/// The recursion is bounded by the JSON parser, which limits the depth of the document.
pub(super) fn check(schema: &Value, path: &str) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    invariants(schema, SchemaLevel::Root, path, &mut found);
    complete_value(schema, Some(schema), path, path, &mut found);
    found.sort_by_cached_key(|it| format!("{}: {}", it.field, it.text()));
    found
}

/// Returns the message of the condition `NonStructuralSchema`; `None` if the schema is structural.
pub(super) fn complaint(v1: &Value) -> Option<String> {
    let mut found = Vec::new();
    if v1.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        found.push(ValidationProblem::invalid("spec.preserveUnknownFields", true, "must be false"));
    }
    let versions = v1.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    for (at, version) in versions.enumerate() {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            found.extend(check(schema, &format!("spec.versions[{at}].schema.openAPIV3Schema")));
        }
    }
    let texts: Vec<String> =
        found.iter().map(|it| format!("{}: {}", it.field, it.text())).collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

pub(super) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn several<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn invariants(schema: &Value, level: SchemaLevel, path: &str, found: &mut Vec<ValidationProblem>) {
    let kind = text(schema, "type");
    match schema.get("items") {
        Some(items) => invariants(items, SchemaLevel::Item, &format!("{path}.items"), found),
        None if kind == "array" => {
            found.push(ValidationProblem::required(format!("{path}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in properties(schema) {
        invariants(property, SchemaLevel::Field, &format!("{path}.properties[{name}]"), found);
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if let Some(rest) = schema.get("additionalProperties") {
        let path = format!("{path}.additionalProperties");
        if level == SchemaLevel::Root {
            found.push(ValidationProblem::forbidden(path.clone(), "must not be used at the root"));
        }
        if embedded {
            let text = "must not be used if x-kubernetes-embedded-resource is set";
            found.push(ValidationProblem::forbidden(path.clone(), text));
        }
        if rest.is_object() {
            invariants(rest, SchemaLevel::Field, &path, found);
        }
    }
    let any_of = is_int_or_string(schema);
    let first_all_of = several(schema, "allOf").next().is_some_and(is_int_or_string);
    values(schema, (any_of, first_all_of), path, found);
    types(schema, level, path, found);
    if level == SchemaLevel::Root || embedded {
        meta_types(schema, level, path, found);
    }
}

/// Returns whether it is the only allowed use of types inside of junctors: `anyOf: [{type: integer}, {type: string}]`.
fn is_int_or_string(schema: &Value) -> bool {
    let any_of = schema.get("anyOf").and_then(Value::as_array);
    let only = |it: &Value, kind: &str| {
        it.as_object().is_some_and(|it| it.len() == 1) && text(it, "type") == kind
    };
    any_of.is_some_and(|it| match it.as_slice() {
        [one, other] => only(one, "integer") && only(other, "string"),
        _ => false,
    })
}

fn types(schema: &Value, level: SchemaLevel, path: &str, found: &mut Vec<ValidationProblem>) {
    let kind = text(schema, "type");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let at = format!("{path}.type");
    for (name, set) in [
        ("x-kubernetes-preserve-unknown-fields", preserves),
        ("x-kubernetes-embedded-resource", embedded),
    ] {
        if int_or_string && set {
            let text = "must be false if x-kubernetes-int-or-string is true";
            found.push(ValidationProblem::invalid(format!("{path}.{name}"), true, text));
        }
    }
    if embedded && kind != "object" {
        let text = "must be object if x-kubernetes-embedded-resource is true";
        found.push(match kind {
            "" => ValidationProblem::required(at.clone(), text),
            kind => ValidationProblem::invalid(at.clone(), kind, text),
        });
    } else if kind.is_empty() && !int_or_string && !preserves {
        let text = match level {
            SchemaLevel::Root => "must not be empty at the root",
            SchemaLevel::Item => "must not be empty for specified array items",
            SchemaLevel::Field => "must not be empty for specified object fields",
        };
        found.push(ValidationProblem::required(at.clone(), text));
    }
    if level == SchemaLevel::Root && !matches!(kind, "" | "object") {
        found.push(ValidationProblem::invalid(at, kind, "must be object at the root"));
    }
    if embedded && !preserves && properties(schema).next().is_none() {
        let text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        found.push(ValidationProblem::required(format!("{path}.properties"), text));
    }
}

/// Checks the types of the kind and the metadata of a complete object.
fn meta_types(schema: &Value, level: SchemaLevel, path: &str, found: &mut Vec<ValidationProblem>) {
    for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = schema.get("properties").and_then(|it| it.get(name)) else { continue };
        if text(property, "type") != kind {
            let at = format!("{path}.properties[{name}].type");
            found.push(ValidationProblem::invalid(
                at,
                text(property, "type"),
                format!("must be {kind}"),
            ));
        }
        if name == "metadata" && level == SchemaLevel::Root && !is_plain_metadata(property) {
            let text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            found.push(ValidationProblem::forbidden(format!("{path}.properties[metadata]"), text));
        }
    }
}

fn is_plain_metadata(schema: &Value) -> bool {
    let fields = schema.as_object().into_iter().flatten();
    fields.into_iter().all(|(name, value)| match name.as_str() {
        "properties" => value
            .as_object()
            .is_some_and(|it| it.keys().all(|it| matches!(it.as_str(), "name" | "generateName"))),
        // Constraints of the value are accepted, too.
        "type" | "default" | "required" | "minProperties" | "maxProperties" | "allOf" | "anyOf"
        | "oneOf" | "not" | "enum" | "format" => true,
        _ => false,
    })
}

/// Checks the junctors of a schema. `exempt`: types are allowed in its `anyOf`, or in the one of its first `allOf`.
fn values(schema: &Value, exempt: (bool, bool), path: &str, found: &mut Vec<ValidationProblem>) {
    if !exempt.0 {
        for (at, branch) in several(schema, "anyOf").enumerate() {
            nested(branch, false, &format!("{path}.anyOf[{at}]"), found);
        }
    }
    for (at, branch) in several(schema, "allOf").enumerate() {
        nested(branch, exempt.1 && at == 0, &format!("{path}.allOf[{at}]"), found);
    }
    for (at, branch) in several(schema, "oneOf").enumerate() {
        nested(branch, false, &format!("{path}.oneOf[{at}]"), found);
    }
    if let Some(not) = schema.get("not") {
        nested(not, false, &format!("{path}.not"), found);
    }
    let expression = text(schema, "pattern");
    if let Err(error) = pattern::compile(expression) {
        let text = format!("must be a valid regular expression, but isn't: {error}");
        found.push(ValidationProblem::invalid(format!("{path}.pattern"), expression, text));
    }
}

/// Refuses keywords that cannot be inside of a junctor.
fn nested(schema: &Value, any_of_exempt: bool, path: &str, found: &mut Vec<ValidationProblem>) {
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    values(schema, (any_of_exempt, false), path, found);
    if let Some(items) = schema.get("items") {
        nested(items, false, &format!("{path}.items"), found);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &format!("{path}.properties[{name}]"), found);
    }
    for (name, text) in FORBIDDEN {
        if schema.get(name).is_some_and(|it| *it != Value::Bool(false)) {
            found.push(ValidationProblem::forbidden(format!("{path}.{name}"), text));
        }
    }
    if schema.get("properties").is_some_and(|it| it.get("metadata").is_some()) {
        let text = "must not be specified in a nested context";
        found.push(ValidationProblem::forbidden(format!("{path}.properties[metadata]"), text));
    }
}

/// Checks that fields which junctors at the root mention are declared outside of them. `branch` is at `from`, its counterpart at
/// `path`.
fn complete_value(
    branch: &Value,
    schema: Option<&Value>,
    path: &str,
    from: &str,
    found: &mut Vec<ValidationProblem>,
) {
    if let Some(not) = branch.get("not") {
        complete(not, schema, path, &format!("{from}.not"), found);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (at, branch) in several(branch, name).enumerate() {
            complete(branch, schema, path, &format!("{from}.{name}[{at}]"), found);
        }
    }
}

fn complete(
    branch: &Value,
    schema: Option<&Value>,
    path: &str,
    from: &str,
    found: &mut Vec<ValidationProblem>,
) {
    if schema.is_none() {
        let text = format!("because it is defined in {from}");
        found.push(ValidationProblem::required(path, text));
        return;
    }
    complete_value(branch, schema, path, from, found);
    if let Some(items) = branch.get("items") {
        let schema = schema.and_then(|it| it.get("items"));
        complete(items, schema, &format!("{path}.items"), &format!("{from}.items"), found);
    }
    for (name, property) in properties(branch) {
        let schema = schema.and_then(|it| it.get("properties")?.get(name));
        let (path, from) =
            (format!("{path}.properties[{name}]"), format!("{from}.properties[{name}]"));
        complete(property, schema, &path, &from, found);
    }
}
