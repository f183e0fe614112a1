//! All rules of one version of a custom resource, compiled once.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, checks::Checks, embedded, expressions::Expressions, lists, validate};
use crate::refusal::Problem;

/// What objects of a version are checked with.
#[derive(Debug)]
pub(crate) struct Rules {
    schema: Arc<Schema>,
    checks: Checks,
    expressions: Expressions,
}

impl Rules {
    /// Reads a JSON schema; `schema` is the same one, as a tree.
    pub(crate) fn new(raw: &Value, schema: Arc<Schema>) -> Result<Self, Unusable> {
        let checks = Checks::new(raw).map_err(Unusable::Checks)?;
        let expressions = Expressions::new(raw).map_err(Unusable::Expressions)?;
        Ok(Self { schema, checks, expressions })
    }

    /// What is wrong with a new object, or with the change of an old one. Its metadata is checked elsewhere.
    pub(crate) fn check(&self, new: &Value, old: Option<&Value>) -> Vec<Problem> {
        let mut found = validate::check(&self.checks, new);
        embedded::check(&self.schema, new, &mut found);
        lists::check(&self.schema, new, &mut found);
        // Expressions rely on the types: they are not asked about an object that has others.
        if found.is_empty() {
            self.expressions.check(new, old, &mut found);
        }
        found
    }

    /// What is wrong with a value of this schema that stands at `path` and is no object of its own, such as a default.
    ///
    /// `whole`: it has a kind and metadata nevertheless.
    pub(crate) fn check_part(&self, value: &Value, whole: bool, path: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        if whole && value.is_object() {
            embedded::one(value, "", &mut found);
        }
        if found.is_empty() {
            embedded::check(&self.schema, value, &mut found);
            found.extend(validate::check(&self.checks, value));
        }
        for problem in &mut found {
            problem.field = match problem.field.as_str() {
                "<nil>" => path.to_owned(),
                inner => format!("{path}.{}", inner.trim_start_matches('.')),
            };
        }
        found
    }
}

/// Why a schema cannot be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// An expression for texts, or the depth.
    Checks(String),
    /// CEL rules.
    Expressions(Vec<Problem>),
}

impl Unusable {
    /// The same as problems of a definition with the schema at `path`.
    pub(crate) fn problems(self, path: &str) -> Vec<Problem> {
        match self {
            Self::Checks(text) => {
                let path = path.trim_end_matches(".openAPIV3Schema");
                vec![Problem::invalid(path, "", format!("error building validator: {text}"))]
            }
            Self::Expressions(problems) => {
                let placed = problems
                    .into_iter()
                    .map(|it| Problem { field: format!("{path}{}", it.field), ..it });
                placed.collect()
            }
        }
    }
}
