//! A JSON schema, parsed once into the form that `validate.rs` uses.
//!
//! No library for JSON schemas is used. Messages of the real server depend on details of its own library, for instance on the
//! number of checks that ran in each branch of an `anyOf`, and on its notion of types.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{formats, pattern};
use crate::sorted::CollectSorted as _;

/// Limit of the depth of a schema. The JSON parser accepts at most 128 levels; this limit is for values from other sources.
const DEPTH_MAX: usize = 256;

/// The constraints on one value.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    /// The accepted types; empty for any.
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    pub(super) format: Option<String>,
    pub(super) options: Option<Vec<Value>>,
    pub(super) text: StringChecks,
    pub(super) number: NumberChecks,
    pub(super) items: Option<Box<Checks>>,
    pub(super) items_min: Option<i64>,
    pub(super) items_max: Option<i64>,
    pub(super) object: ObjectChecks,
    pub(super) any_of: Vec<Checks>,
    pub(super) one_of: Vec<Checks>,
    pub(super) all_of: Vec<Checks>,
    pub(super) not: Option<Box<Checks>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StringChecks {
    pub(super) longest: Option<i64>,
    pub(super) shortest: Option<i64>,
    /// The expression as written, and compiled.
    pub(super) pattern: Option<(String, Regex)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct NumberChecks {
    pub(super) maximum: Option<f64>,
    pub(super) maximum_exclusive: bool,
    pub(super) minimum: Option<f64>,
    pub(super) minimum_exclusive: bool,
    pub(super) multiple_of: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ObjectChecks {
    pub(super) fields: BTreeMap<String, Checks>,
    pub(super) rest: Rest,
    pub(super) required: Vec<String>,
    pub(super) fewest: Option<i64>,
    pub(super) most: Option<i64>,
}

/// The schema of additional properties.
#[derive(Clone, Debug, Default)]
pub(super) enum Rest {
    #[default]
    Free,
    Forbidden,
    Each(Box<Checks>),
}

impl Checks {
    /// Parses a schema. The error is about an invalid regular expression, or the depth.
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        Self::read(schema, DEPTH_MAX)
    }

    fn read(schema: &Value, depth: usize) -> Result<Self, String> {
        let Some(inner) = depth.checked_sub(1) else { return Err("schema is too deep".into()) };
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let types = match kind {
            "" if flag("x-kubernetes-int-or-string") => vec!["integer".into(), "string".into()],
            "" => Vec::new(),
            one => vec![one.to_owned()],
        };
        let format = schema.get("format").and_then(Value::as_str);
        let one = |name: &str| match schema.get(name).filter(|it| it.is_object()) {
            Some(it) => Self::read(it, inner).map(|it| Some(Box::new(it))),
            None => Ok(None),
        };
        let several = |name: &str| {
            let schemas = schema.get(name).and_then(Value::as_array).into_iter().flatten();
            schemas.map(|it| Self::read(it, inner)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            format: format.and_then(|it| formats::relevant(kind, it)).map(String::from),
            types,
            nullable: flag("nullable"),
            options: schema
                .get("enum")
                .and_then(Value::as_array)
                .filter(|it| !it.is_empty())
                .cloned(),
            text: texts(schema)?,
            number: NumberChecks {
                maximum: schema.get("maximum").and_then(Value::as_f64),
                maximum_exclusive: flag("exclusiveMaximum"),
                minimum: schema.get("minimum").and_then(Value::as_f64),
                minimum_exclusive: flag("exclusiveMinimum"),
                multiple_of: schema.get("multipleOf").and_then(Value::as_f64),
            },
            items: one("items")?,
            items_min: count(schema, "minItems"),
            items_max: count(schema, "maxItems"),
            object: Self::objects(schema, inner)?,
            any_of: several("anyOf")?,
            one_of: several("oneOf")?,
            all_of: several("allOf")?,
            not: one("not")?,
        })
    }

    fn objects(schema: &Value, depth: usize) -> Result<ObjectChecks, String> {
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields = fields.map(|(name, it)| Ok((name.clone(), Self::read(it, depth)?)));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        Ok(ObjectChecks {
            fields: fields.try_collect_map::<_, _, String>()?,
            rest: match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => Rest::Forbidden,
                Some(it @ Value::Object(_)) => Rest::Each(Box::new(Self::read(it, depth)?)),
                _ => Rest::Free,
            },
            required: required.filter_map(Value::as_str).map(String::from).collect(),
            fewest: count(schema, "minProperties"),
            most: count(schema, "maxProperties"),
        })
    }

    /// Returns whether values of a type are accepted.
    pub(super) fn allows(&self, kind: &str) -> bool {
        self.types.iter().any(|it| it == kind)
    }
}

fn texts(schema: &Value) -> Result<StringChecks, String> {
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|it| !it.is_empty());
    Ok(StringChecks {
        longest: count(schema, "maxLength"),
        shortest: count(schema, "minLength"),
        pattern: match pattern {
            Some(it) => Some((it.to_owned(), pattern::compile(it)?)),
            None => None,
        },
    })
}

fn count(schema: &Value, name: &str) -> Option<i64> {
    schema.get(name).and_then(Value::as_i64)
}
