//! Calls the filter functions of scripts.
//!
//! `logic` decides filters, but cannot call scripts: it returns the filter function whose result it needs; this module calls the function,
//! and `logic` decides again. Most filters need no call.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{self, Instant};

use crate::call::{CallServices, Callers, Cause, Invocation, Logger, Memo, ObjectCause, Scripts};
use crate::logic::{
    change::{
        filters::{Answers, Question},
        selection::OpenQuestion,
        undecided::{FilterFailure, Undecided},
    },
    handlers::{
        function::Function,
        handler::Handler,
        outcome::{LogLevel, LogLine, Raised, RaisedKind},
    },
    text::python_text,
};

/// Time limit of a function that decides about other functions: a filter, a lifecycle, a selector. Such a function has little to wait for,
/// and other calls wait for it.
pub const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Minimum time for a filter, regardless of how long the other filters of the cycle have taken.
const ANSWER_MIN: Duration = Duration::from_secs(1);

/// Maximum time that a filter runs alone. A filter that takes longer runs concurrently with the following ones.
const PROMPT: Duration = Duration::from_millis(50);

/// The inputs for calling filter functions for one object and cause.
pub struct FilterCaller<'a> {
    /// The scripts that the filter functions belong to.
    pub scripts: &'a dyn Scripts,
    /// The object and what happened to it.
    pub cause: &'a ObjectCause,
    /// The memo that filters see.
    pub memo: &'a Memo,
    /// The logger for lines of the filters.
    pub logger: &'a Logger,
    /// The services that every call can reach.
    pub services: &'a Arc<CallServices>,
}

/// A failed filter of a sub-handler, which is an error of its parent.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a filter of {handler} failed: {}", raised.message)]
pub struct FilterError {
    /// The handler that the filter belongs to, as in log lines.
    pub handler: String,
    /// The error that the filter raised.
    pub raised: Raised,
}

/// An object's state of failed filters, and the rules for their retries.
pub struct FilterRetries<'a> {
    /// The object's undecided handlers; `None` for most objects.
    pub undecided: &'a mut Option<Box<Undecided>>,
    /// The pauses after unexpected errors.
    pub delays: &'a [Duration],
    /// The start of the time measurement in `undecided`.
    pub start: Instant,
    /// The time when all filters of the cycle must have returned.
    pub deadline: Instant,
}

/// A filter function that was called, and its result.
struct CalledFilter {
    ask: OpenQuestion,
    took: Duration,
    answer: Result<bool, Raised>,
}

impl FilterCaller<'_> {
    /// Makes a decision, and calls filters as often as needed. Callers keep `answers` between decisions about the same event.
    ///
    /// # Errors
    /// If a filter fails.
    pub async fn decide<T>(
        &self,
        answers: &mut Answers,
        decision: impl Fn(&Answers) -> Result<T, OpenQuestion>,
    ) -> Result<T, FilterError> {
        loop {
            match decision(answers) {
                Ok(decided) => return Ok(decided),
                Err(OpenQuestion { handler, question }) => {
                    let answer =
                        self.scripts.ask(question.clone(), self.invocation(&handler)).await;
                    let answer = answer
                        .map_err(|raised| FilterError { handler: handler.to_string(), raised })?;
                    answers.note(&question, answer);
                }
            }
        }
    }

    /// Makes a decision, and calls filters as often as needed. If a filter fails or exceeds its time limit, its handler stays
    /// undecided; the failure is logged, and the filter is called again only after a pause.
    pub async fn decide_without_failures<T>(
        &self,
        answers: &mut Answers,
        mut retries: FilterRetries<'_>,
        decision: impl Fn(&Answers) -> Result<T, OpenQuestion>,
    ) -> T {
        // Most decisions ask nothing.
        if let Ok(decided) = decision(answers) {
            return decided;
        }
        let mut asked = FuturesUnordered::new();
        loop {
            let answer = match decision(answers) {
                Ok(decided) if asked.is_empty() => return decided,
                Ok(_) => asked.next().await,
                Err(OpenQuestion { handler, question }) if retries.rests(&handler) => {
                    answers.note_failure(&question);
                    None
                }
                Err(ask) => {
                    // Counts as failed until the result arrives.
                    answers.note_failure(&ask.question);
                    asked.push(self.answer(ask, retries.deadline));
                    time::timeout(PROMPT, asked.next()).await.ok().flatten()
                }
            };
            let Some(CalledFilter { ask, took, answer }) = answer else { continue };
            match answer {
                Ok(answer) => answers.note(&ask.question, answer),
                Err(raised) => self.report(&ask, &raised, retries.failed(&ask.handler, took)),
            }
        }
    }

    async fn answer(&self, ask: OpenQuestion, deadline: Instant) -> CalledFilter {
        let start = Instant::now();
        let limit = deadline.saturating_duration_since(start).clamp(ANSWER_MIN, ANSWER_MAX);
        let answer = self.scripts.ask(ask.question.clone(), self.invocation(&ask.handler));
        let answer = within(limit, answer).await;
        let took = start.elapsed();
        // The full limit counts, regardless of how much time was left.
        let took = if took < limit { took } else { ANSWER_MAX };
        CalledFilter { ask, took, answer }
    }

    fn report(&self, ask: &OpenQuestion, raised: &Raised, failed: FilterFailure) {
        let OpenQuestion { handler, question } = ask;
        let (filter, message) = (shown(question), &raised.message);
        let attempt = failed.attempt;
        let text = match failed.pause {
            Some(pause) => {
                let pause = python_text::seconds(pause);
                format!(
                    "{handler} is skipped: its filter {filter} failed (attempt {attempt}), retrying in {pause} s: {message}"
                )
            }
            None => format!(
                "{handler} is skipped: its filter {filter} failed, retrying with the next event: {message}"
            ),
        };
        let line = LogLine { level: LogLevel::Error, text, with_trace: true };
        self.logger.line(&line, raised.trace_from(&handler.location).as_deref());
    }

    /// Builds the argument of a function that is called about the object, on behalf of this handler.
    pub fn invocation(&self, handler: &Arc<Handler>) -> Arc<Invocation> {
        Arc::new(Invocation {
            handler: handler.for_scripts(),
            attempt: None,
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
            services: Arc::clone(self.services),
            children: None,
            callers: Callers::default(),
        })
    }
}

impl FilterRetries<'_> {
    fn rests(&mut self, handler: &Handler) -> bool {
        let now = self.start.elapsed();
        self.undecided.as_mut().is_some_and(|it| it.rests(handler, now))
    }

    fn failed(&mut self, handler: &Handler, took: Duration) -> FilterFailure {
        let (delays, now) = (self.delays, self.start.elapsed());
        self.undecided.get_or_insert_default().failed(handler, took, delays, now)
    }
}

/// Waits for a result, up to this limit.
///
/// # Errors
/// If there is no result in time.
pub async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Raised>>,
) -> Result<T, Raised> {
    let answered = time::timeout(limit, answer).await;
    answered.unwrap_or_else(|_elapsed| {
        let message = format!("no result within {} s", limit.as_secs());
        Err(Raised { kind: RaisedKind::Arbitrary("TimeoutError".into()), message, trace: None })
    })
}

/// Returns the name of a filter for log lines.
fn shown(question: &Question) -> String {
    let Question { function: Function { name, .. }, about, .. } = question;
    match (name.is_empty(), about) {
        (false, _) => python_text::quoted(name),
        (true, None) => python_text::quoted("when"),
        (true, Some(_)) => "of a value".into(),
    }
}
