//! Answers the questions that filters have for scripts.
//!
//! Filters are decided in `logic`, which cannot call anybody: it says what it needs to know, we ask the script and decide
//! again. Most filters ask nothing.

use std::sync::Arc;

use crate::logic::{filters::Answers, handler::Handler, outcome::Raised, selection::Ask};
use crate::ports::{Cause, Facilities, Invocation, Logger, Memo, ObjectCause, Scripts};

/// Who answers, and what about.
pub struct Asker<'a> {
    /// The scripts.
    pub scripts: &'a dyn Scripts,
    /// The object and what happened to it.
    pub cause: &'a ObjectCause,
    /// The memo that filters see.
    pub memo: &'a Memo,
    /// Where their lines go.
    pub logger: &'a Logger,
    /// What every call can reach.
    pub facilities: &'a Arc<Facilities>,
}

/// A filter callback that failed: an error of the cycle, not of a handler.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a filter of {handler} failed: {}", raised.message)]
pub struct FilterError {
    /// The handler it belongs to, as in log lines.
    pub handler: String,
    /// What it raised.
    pub raised: Raised,
}

impl Asker<'_> {
    /// Decides, asking as often as needed. `answers` are kept between decisions about the same event.
    pub async fn decide<T>(
        &self,
        answers: &mut Answers,
        decision: impl Fn(&Answers) -> Result<T, Ask>,
    ) -> Result<T, FilterError> {
        loop {
            match decision(answers) {
                Ok(decided) => return Ok(decided),
                Err(Ask { handler, question }) => {
                    let answer =
                        self.scripts.ask(question.clone(), self.invocation(&handler)).await;
                    let answer = answer
                        .map_err(|raised| FilterError { handler: handler.to_string(), raised })?;
                    answers.note(question, answer);
                }
            }
        }
    }

    /// The argument of a function that is asked about the object, on behalf of this handler.
    pub fn invocation(&self, handler: &Arc<Handler>) -> Arc<Invocation> {
        Arc::new(Invocation {
            handler: handler.inside(),
            attempt: None,
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
            facilities: Arc::clone(self.facilities),
            children: None,
        })
    }
}
