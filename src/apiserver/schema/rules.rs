//! All rules of one version of a custom resource, compiled once.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, checks::Checks, embedded, expressions::Expressions, lists, validate};
use crate::refusal::ValidationProblem;

/// The compiled schema, lists and CEL rules of a version.
#[derive(Debug)]
pub(crate) struct Rules {
    schema: Arc<Schema>,
    checks: Checks,
    expressions: Expressions,
}

impl Rules {
    /// Compiles a JSON schema; `schema` is the same one as a tree.
    pub(crate) fn new(raw: &Value, schema: Arc<Schema>) -> Result<Self, Unusable> {
        let checks = Checks::new(raw).map_err(Unusable::Checks)?;
        let expressions = Expressions::new(raw).map_err(Unusable::Expressions)?;
        Ok(Self { schema, checks, expressions })
    }

    /// Validates a new object, or the change of an old one. Its metadata is validated elsewhere.
    pub(crate) fn check(&self, new: &Value, old: Option<&Value>) -> Vec<ValidationProblem> {
        let mut found = validate::check(&self.checks, new);
        embedded::check(&self.schema, new, &mut found);
        lists::check(&self.schema, new, &mut found);
        // CEL rules rely on valid types, so they do not run on other objects.
        if found.is_empty() {
            self.expressions.check(new, old, &mut found);
        }
        found
    }

    /// Validates a value at `path` that is not an object with metadata, such as a default.
    ///
    /// `whole`: it has a kind and metadata nevertheless.
    pub(crate) fn check_part(
        &self,
        value: &Value,
        whole: bool,
        path: &str,
    ) -> Vec<ValidationProblem> {
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

/// The reasons for which a schema cannot be compiled.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// An invalid regular expression, or too many levels.
    Checks(String),
    /// The problems of invalid CEL rules.
    Expressions(Vec<ValidationProblem>),
}

impl Unusable {
    /// Returns the problems of a CRD whose schema is at `path`.
    pub(crate) fn problems(self, path: &str) -> Vec<ValidationProblem> {
        match self {
            Self::Checks(text) => {
                let path = path.trim_end_matches(".openAPIV3Schema");
                vec![ValidationProblem::invalid(
                    path,
                    "",
                    format!("error building validator: {text}"),
                )]
            }
            Self::Expressions(problems) => {
                let placed = problems
                    .into_iter()
                    .map(|it| ValidationProblem { field: format!("{path}{}", it.field), ..it });
                placed.collect()
            }
        }
    }
}
