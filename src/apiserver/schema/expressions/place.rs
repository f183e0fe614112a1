//! The positions of rules in a schema, and the conversion of values for CEL.

use std::{collections::BTreeMap, sync::Arc};

use cel::{
    Env, Value as CelValue,
    objects::{Key, Map},
};
use serde_json::Value;

use super::{CelRule, library, names};
use crate::refusal::{ProblemKind, ValidationProblem};
use crate::sorted::CollectSorted as _;

/// One node of a schema.
pub(super) struct SchemaNode {
    pub(super) rules: Vec<CelRule>,
    pub(super) fields: BTreeMap<String, SchemaNode>,
    pub(super) rest: Option<Box<SchemaNode>>,
    pub(super) items: Option<Box<SchemaNode>>,
    /// The keys of the items, for a list of type `map`.
    keys: Vec<String>,
    kind: String,
    format: String,
    int_or_string: bool,
    below: bool,
}

impl SchemaNode {
    /// Parses a schema and compiles its rules. `related`: the old values of this position can be found.
    pub(super) fn read(
        schema: &Value,
        related: bool,
        path: &str,
        problems: &mut Vec<ValidationProblem>,
    ) -> Self {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let listed = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
        let mut rules = Vec::new();
        for (at, rule) in listed("x-kubernetes-validations").enumerate() {
            let path = format!("{path}.x-kubernetes-validations[{at}]");
            rules.extend(compile(rule, related, &path, problems));
        }
        let by_keys = text("x-kubernetes-list-type") == "map";
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields: BTreeMap<String, Self> = fields
            .map(|(name, it)| {
                let path = format!("{path}.properties[{name}]");
                (name.clone(), Self::read(it, related, &path, problems))
            })
            .collect_map();
        let mut one = |name: &str, related: bool| {
            let inner = schema.get(name).filter(|it| it.is_object())?;
            Some(Box::new(Self::read(inner, related, &format!("{path}.{name}"), problems)))
        };
        let rest = one("additionalProperties", related);
        let items = one("items", related && by_keys);
        let below =
            fields.values().chain(rest.as_deref()).chain(items.as_deref()).any(Self::has_rules);
        Self {
            rules,
            below,
            fields,
            rest,
            items,
            keys: if by_keys {
                listed("x-kubernetes-list-map-keys")
                    .filter_map(Value::as_str)
                    .map(String::from)
                    .collect()
            } else {
                Vec::new()
            },
            kind: text("type").into(),
            format: text("format").into(),
            int_or_string: schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)),
        }
    }

    /// Returns whether there are rules here or below.
    pub(super) fn has_rules(&self) -> bool {
        self.below || !self.rules.is_empty()
    }

    /// Returns the old item with the same keys.
    pub(super) fn counterpart<'a>(&self, item: &Value, old: &'a Value) -> Option<&'a Value> {
        if self.keys.is_empty() {
            return None;
        }
        let same = |it: &&Value| self.keys.iter().all(|key| it.get(key) == item.get(key));
        old.as_array()?.iter().find(same)
    }

    /// Makes the problem of a violated rule.
    pub(super) fn problem(&self, rule: &CelRule, path: &str, text: String) -> ValidationProblem {
        let whole = format!("{path}{}", rule.field);
        let path = match whole.trim_start_matches('.') {
            "" => "<nil>".to_owned(),
            path => path.to_owned(),
        };
        let kind = if self.int_or_string { "integer,string" } else { self.kind.as_str() };
        let kind = match rule.reason.as_str() {
            "FieldValueForbidden" => ProblemKind::Forbidden(text),
            "FieldValueRequired" => ProblemKind::Required(text),
            "FieldValueDuplicate" => ProblemKind::Duplicate(kind.into()),
            _ => ProblemKind::Refused(text),
        };
        ValidationProblem::new(path, kind)
    }

    /// Converts a value for rules: fields have escaped names, strings and numbers the types of the schema.
    pub(super) fn value(&self, value: &Value, env: &Arc<Env>) -> CelValue {
        match value {
            Value::Null => CelValue::Null,
            Value::Bool(it) => CelValue::Bool(*it),
            Value::Number(it) => match it.as_i64() {
                Some(whole) if self.kind != "number" => CelValue::Int(whole),
                _ if self.kind == "integer" => it.as_f64().map_or(CelValue::Null, |it| {
                    format!("{it:.0}").parse().map_or(CelValue::Null, CelValue::Int)
                }),
                _ => CelValue::Float(it.as_f64().unwrap_or_default()),
            },
            Value::String(text) => library::text(text, &self.format, env),
            Value::Array(items) => {
                let items = items.iter().map(|it| match &self.items {
                    Some(place) => place.value(it, env),
                    None => plain(it),
                });
                CelValue::List(Arc::new(items.collect()))
            }
            Value::Object(fields) => {
                let fields = fields.iter().filter_map(|(name, it)| {
                    let key = |name: String| Key::String(Arc::new(name));
                    match (self.fields.get(name), &self.rest) {
                        (Some(place), _) => Some((key(names::escaped(name)), place.value(it, env))),
                        (None, Some(place)) => Some((key(name.clone()), place.value(it, env))),
                        // The fields that every complete object has.
                        (None, None)
                            if matches!(name.as_str(), "apiVersion" | "kind" | "metadata") =>
                        {
                            Some((key(name.clone()), plain(it)))
                        }
                        (None, None) => None,
                    }
                });
                CelValue::Map(Map { map: Arc::new(fields.collect()) })
            }
        }
    }
}

/// Converts a value without a schema.
pub(super) fn plain(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(it) => CelValue::Bool(*it),
        Value::Number(it) => it
            .as_i64()
            .map_or_else(|| CelValue::Float(it.as_f64().unwrap_or_default()), CelValue::Int),
        Value::String(it) => CelValue::String(Arc::new(it.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, it)| (Key::String(Arc::new(name.clone())), plain(it)));
            CelValue::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

fn compile(
    raw: &Value,
    related: bool,
    path: &str,
    problems: &mut Vec<ValidationProblem>,
) -> Option<CelRule> {
    let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default();
    let source = text("rule");
    if source.trim().is_empty() {
        problems.push(ValidationProblem::required(format!("{path}.rule"), "rule is not specified"));
        return None;
    }
    if text("message").contains('\n') {
        let words = "message must not contain line breaks";
        problems.push(ValidationProblem::invalid(
            format!("{path}.message"),
            text("message"),
            words,
        ));
    }
    let reason = text("reason");
    let reasons =
        ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
    if !reason.is_empty() && !reasons.contains(&reason) {
        let kind = ProblemKind::NotSupported(reason.into(), reasons.map(String::from).into());
        problems.push(ValidationProblem::new(format!("{path}.reason"), kind));
    }
    let program = names::compile(source).map_err(|error| {
        let text = format!("compilation failed: {error}");
        problems.push(ValidationProblem::invalid(format!("{path}.rule"), raw.clone(), text));
    });
    let expression = text("messageExpression");
    let message_program = (!expression.trim().is_empty()).then(|| {
        names::compile(expression).map_err(|error| {
            let text = format!("messageExpression compilation failed: {error}");
            problems.push(ValidationProblem::invalid(
                format!("{path}.messageExpression"),
                raw.clone(),
                text,
            ));
        })
    });
    let program = program.ok()?;
    let transition = names::mentions(&program, "oldSelf");
    if transition && !related {
        let words = "oldSelf cannot be used on the uncorrelatable portion of the schema";
        problems.push(ValidationProblem::invalid(format!("{path}.rule"), source, words));
    }
    Some(CelRule {
        source: source.into(),
        message: text("message").into(),
        message_program: message_program.and_then(Result::ok),
        reason: reason.into(),
        field: text("fieldPath").into(),
        optional_old: raw.get("optionalOldSelf") == Some(&Value::Bool(true)),
        transition,
        program,
    })
}
