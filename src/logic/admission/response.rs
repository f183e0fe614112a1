//! Builds the response to a review.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use json_patch::PatchOperation;
use serde_json::{Map, Value, json};

use super::review::Review;
use crate::logic::handlers::outcome::Failure;

/// The status of a denial without a code of its own.
const CODE: u16 = 500;

/// What the handlers of a review have decided.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// The failures, in the order of the handlers.
    pub failures: Vec<Failure>,
    /// The warnings, in the order in which they were given.
    pub warnings: Vec<String>,
    /// The changes of the object.
    pub operations: Vec<PatchOperation>,
}

impl Decision {
    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Returns the review with the response.
    pub fn answer(&self, review: &Review) -> Value {
        let mut response = Map::new();
        response.insert("uid".into(), review.uid.clone());
        response.insert("allowed".into(), self.is_allowed().into());
        if !self.warnings.is_empty() {
            response.insert("warnings".into(), self.warnings.clone().into());
        }
        if !self.operations.is_empty() {
            let patch = json!(self.operations).to_string();
            response.insert("patch".into(), BASE64_STANDARD.encode(patch).into());
            response.insert("patchType".into(), "JSONPatch".into());
        }
        if let Some(failure) = self.failure() {
            let code = failure.code.filter(|it| *it != 0).unwrap_or(CODE);
            let status = json!({ "message": failure.described(), "code": code });
            response.insert("status".into(), status);
        }
        json!({ "apiVersion": review.api_version, "kind": review.kind, "response": response })
    }

    /// Returns the failure to report: of the most specific class, and the first of them.
    fn failure(&self) -> Option<&Failure> {
        self.failures.iter().min_by_key(|it| rank(&it.class))
    }
}

/// Returns the order of the classes of errors: refusals come before failures.
fn rank(class: &str) -> u8 {
    match class {
        "AdmissionError" => 0,
        "PermanentError" | "HandlerTimeoutError" | "HandlerRetriesError" => 1,
        "TemporaryError" | "HandlerChildrenRetry" => 2,
        _ => 9,
    }
}
