//! CEL expressions of a schema: `x-kubernetes-validations`.

use serde_json::Value;

use crate::apiserver::refusal::Problem;

/// The rules of a schema, compiled.
#[derive(Debug, Default)]
pub(super) struct Expressions {}

impl Expressions {
    pub(super) fn new(_schema: &Value) -> Result<Self, Vec<Problem>> {
        Ok(Self {})
    }

    pub(super) fn check(&self, _new: &Value, _old: Option<&Value>, _found: &mut Vec<Problem>) {}
}
