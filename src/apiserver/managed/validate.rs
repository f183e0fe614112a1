//! Validation of an applied configuration by the schema, with the messages of the real server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::typing::{FieldDeclaration, FieldType, ManagedForm, TypeSource};
use crate::{
    refusal::go,
    schema::{Scalar, SchemaShape},
};

/// Limit of reported mistakes.
const MISTAKES_MAX: usize = 100;

/// Returns all mistakes of a configuration as one message; `None` if it is valid.
pub(super) fn mistakes(kind: FieldType<'_>, config: &Value) -> Option<String> {
    let mut all = Vec::new();
    check(kind, config, &mut String::new(), &mut all);
    match all.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

fn check(kind: FieldType<'_>, value: &Value, path: &mut String, mistakes: &mut Vec<String>) {
    if mistakes.len() >= MISTAKES_MAX {
        return;
    }
    if let Some(text) = type_mistake(kind, value) {
        mistakes.push(format!("{path}: {text}"));
        return;
    }
    let length = path.len();
    match (kind.form(value), value) {
        (ManagedForm::Map, Value::Object(fields)) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            for (name, value) in names.into_iter().filter_map(|name| fields.get_key_value(name)) {
                let (kind, declared) = kind.field(name);
                path.push('.');
                path.push_str(name);
                if declared == FieldDeclaration::Unknown {
                    mistakes.push(format!("{path}: field not declared in schema"));
                    path.truncate(length);
                    return;
                }
                check(kind, value, path, mistakes);
                path.truncate(length);
            }
        }
        (ManagedForm::List(order), Value::Array(items)) => {
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                match kind.element(order, item) {
                    Err(text) => {
                        mistakes.push(format!("{path}: element {index}: {text}"));
                        return;
                    }
                    Ok(element) => {
                        let text = element.to_string();
                        if !seen.insert(element) {
                            mistakes.push(format!("{path}: duplicate entries for key {text}"));
                        }
                        path.push_str(&text);
                        check(kind.items(), item, path, mistakes);
                        path.truncate(length);
                    }
                }
                if mistakes.len() >= MISTAKES_MAX {
                    return;
                }
            }
        }
        (ManagedForm::Leaf | ManagedForm::Map | ManagedForm::List(_), _) => {}
    }
}

/// Returns the mistake of a value whose JSON type differs from the schema.
fn type_mistake(kind: FieldType<'_>, value: &Value) -> Option<String> {
    let schema = match kind.node {
        TypeSource::Object(_) | TypeSource::Deduced | TypeSource::Untyped => return None,
        TypeSource::Metadata | TypeSource::Known(_) => kind.schema()?,
    };
    let expected = |what: &str| Some(format!("expected {what}, got &{{{}}}", go::plain(value)));
    match (&schema.shape, value) {
        (_, Value::Null)
        | (SchemaShape::Any, _)
        | (SchemaShape::Map { .. }, Value::Object(_))
        | (SchemaShape::List { .. }, Value::Array(_))
        | (SchemaShape::Scalar(Scalar::Text), Value::String(_))
        | (SchemaShape::Scalar(Scalar::Integer | Scalar::Number), Value::Number(_))
        | (SchemaShape::Scalar(Scalar::Boolean), Value::Bool(_))
        | (
            SchemaShape::Scalar(Scalar::IntOrText),
            Value::Bool(_) | Value::Number(_) | Value::String(_),
        ) => None,
        (SchemaShape::Scalar(Scalar::IntOrText), _) => expected("any scalar"),
        (SchemaShape::Map { .. }, _) => expected("map"),
        (SchemaShape::List { .. }, _) => expected("list"),
        (SchemaShape::Scalar(Scalar::Boolean), _) => expected("boolean"),
        (SchemaShape::Scalar(Scalar::Integer | Scalar::Number), _) => {
            Some("expected numeric (int or float), got *value.valueUnstructured".into())
        }
        (SchemaShape::Scalar(Scalar::Text), _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go::json(value)
        )),
    }
}
