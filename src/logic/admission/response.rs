//! Builds the response to a review.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::{Value, json};

use super::review::Review;
use crate::logic::handlers::outcome::Failure;

/// The status of a denial without a code of its own.
const CODE: u16 = 500;

/// The decision of the handlers of a review.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// The failures, in the order of the handlers.
    pub failures: Vec<Failure>,
    /// The warnings, in the order in which they were given.
    pub warnings: Vec<String>,
    /// The changes of the object.
    pub operations: Vec<PatchOperation>,
}

/// The review with the response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewWithResponse<'a> {
    api_version: &'a Value,
    kind: &'a Value,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a Value,
    allowed: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ReviewStatus>,
}

#[derive(Serialize)]
struct ReviewStatus {
    message: String,
    code: u16,
}

impl Decision {
    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Returns the review with the response, JSON.
    pub fn answer(&self, review: &Review) -> String {
        let has_patch = !self.operations.is_empty();
        let patch = has_patch.then(|| BASE64_STANDARD.encode(json!(self.operations).to_string()));
        let status = self.failure().map(|failure| ReviewStatus {
            message: failure.described(),
            code: failure.code.filter(|it| *it != 0).unwrap_or(CODE),
        });
        let response = Response {
            uid: &review.uid,
            allowed: self.is_allowed(),
            warnings: &self.warnings,
            patch,
            patch_type: has_patch.then_some("JSONPatch"),
            status,
        };
        let answer =
            ReviewWithResponse { api_version: &review.api_version, kind: &review.kind, response };
        // Cannot fail: the keys of all maps are strings.
        serde_json::to_string(&answer).unwrap_or_default()
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
