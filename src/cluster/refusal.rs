//! Errors of connections before any request.

use crate::ports::{ApiError, ErrorClass};

/// Maximum number of characters of the reason in an error about an invalid file.
pub(super) const REASON_CHARS: usize = 300;

/// Returns an error before any request.
pub(super) fn refuse(message: String, hint: Option<&str>) -> ApiError {
    let hint = hint.map(str::to_owned);
    ApiError { class: ErrorClass::Fatal, status: None, message, hint, answer: None }
}
