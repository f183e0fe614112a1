//! Answers the reviews of the script guard, and passes all others on.

use std::sync::Arc;

use bytes::Bytes;

use crate::logic::{
    admission::{guard, reading::AnyReview, response::Decision, review::ReviewError},
    handlers::outcome::Failure,
};
use crate::ports::{BoxFuture, ReviewRequest, Reviewer, ScriptGuard};

/// The HTTP status of a refused edit.
const REFUSED: u16 = 422;

/// A reviewer that also guards the scripts.
pub struct GuardedReviewer {
    /// Answers all other reviews.
    pub reviewer: Arc<dyn Reviewer>,
    /// Loads edited scripts, to refuse those that cannot be loaded.
    pub guard: Arc<dyn ScriptGuard>,
}

impl Reviewer for GuardedReviewer {
    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<Bytes, ReviewError>> {
        if request.handler.as_deref() != Some(guard::ID) {
            return self.reviewer.review(request);
        }
        Box::pin(async move {
            let AnyReview::Admission(mut review) = AnyReview::parse(&request.body)? else {
                return Err(ReviewError::Malformed("a conversion has no scripts".into()));
            };
            let asked = review.take_request()?;
            let checked = self.guard.check(Arc::clone(&asked.object)).await;
            let mut decision = Decision::default();
            if let Err(message) = checked {
                let (class, code) = ("AdmissionError".to_owned(), Some(REFUSED));
                decision.failures.push(Failure { class, message, code });
            }
            Ok(decision.answer(&review).into())
        })
    }
}
