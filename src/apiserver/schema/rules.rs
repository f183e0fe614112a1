//! All rules of one version of a custom resource, compiled once.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, checks::Checks, embedded, expressions::Expressions, lists, validate};
use crate::apiserver::refusal::Problem;

/// What objects of a version are checked with.
#[derive(Debug)]
pub(crate) struct Rules {
    schema: Arc<Schema>,
    checks: Checks,
    expressions: Expressions,
}

impl Rules {
    /// Reads a JSON schema; `schema` is the same one, as a tree. The error says which part cannot be used.
    pub(crate) fn new(raw: &Value, schema: Arc<Schema>) -> Result<Self, String> {
        Ok(Self { checks: Checks::new(raw)?, expressions: Expressions::new(raw)?, schema })
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
}
