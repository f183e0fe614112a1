//! The inputs of admission handlers, and the warnings that they return.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::logic::admission::review::ReviewedRequest;
use crate::ports::ReviewClient;

/// The kwargs of admission handlers.
#[derive(Clone, Debug)]
pub struct AdmissionCause {
    /// The request that the handlers allow or deny.
    pub request: Arc<ReviewedRequest>,
    /// The client that sent the review.
    pub client: ReviewClient,
    /// The kwarg `warnings`: shown to the client with the response.
    pub warnings: Warnings,
}

/// The warnings of one response. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

/// Maximum number of warnings of one response. API servers show clients at most 4096 characters of warnings.
const WARNINGS_MAX: usize = 100;
/// Maximum length of one warning in bytes; API servers cut warnings at 256 characters.
const BYTES_MAX: usize = 1024;

impl Warnings {
    /// Adds a warning.
    ///
    /// # Errors
    /// If there are too many.
    pub fn add(&self, text: &str) -> Result<(), String> {
        let mut all = self.0.lock();
        if all.len() >= WARNINGS_MAX {
            return Err(format!("a response can have at most {WARNINGS_MAX} warnings"));
        }
        let end = text.floor_char_boundary(BYTES_MAX);
        all.push(text.get(..end).unwrap_or_default().to_owned());
        Ok(())
    }

    /// Returns all warnings so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// Returns whether both are the warnings of the same response.
    pub fn is(&self, other: &Warnings) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
