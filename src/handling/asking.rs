//! Answers the questions that filters have for scripts.
//!
//! Filters are decided in `logic`, which cannot call anybody: it says what it needs to know, we ask the script and decide
//! again. Most filters ask nothing.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{self, Instant};

use crate::logic::{
    filters::{Answers, Question},
    function::Function,
    handler::Handler,
    outcome::{LogLevel, LogLine, Raised, RaisedKind},
    python_text,
    selection::OpenQuestion,
    undecided::{Failed, Undecided},
};
use crate::ports::{Cause, Facilities, Invocation, Logger, Memo, ObjectCause, Scripts};

/// How long a function may take that decides something about other functions: a filter, a lifecycle, a selector. It has little
/// to wait for, and others wait for it.
pub const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A filter gets this much time at least, however long the other filters of the cycle have taken.
const ANSWER_MIN: Duration = Duration::from_secs(1);

/// Filters are asked one after another. A filter that has not answered after this time is waited for alongside the others.
const PROMPT: Duration = Duration::from_millis(50);

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

/// A filter of a sub-handler that failed: an error of its parent.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a filter of {handler} failed: {}", raised.message)]
pub struct FilterError {
    /// The handler it belongs to, as in log lines.
    pub handler: String,
    /// What it raised.
    pub raised: Raised,
}

/// What an object remembers of filters that failed, and how that is counted.
pub struct FilterRetries<'a> {
    /// What it remembers; nothing for most objects.
    pub undecided: &'a mut Option<Box<Undecided>>,
    /// The pauses after unexpected errors.
    pub delays: &'a [Duration],
    /// The moment that the times of `undecided` are measured from.
    pub start: Instant,
    /// When all filters of the cycle should have been asked.
    pub deadline: Instant,
}

/// A question and what became of it.
struct Asked {
    ask: OpenQuestion,
    took: Duration,
    answer: Result<bool, Raised>,
}

impl Asker<'_> {
    /// Decides, asking as often as needed. `answers` are kept between decisions about the same event.
    ///
    /// # Errors
    /// When a filter raises.
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
                    answers.note(question, answer);
                }
            }
        }
    }

    /// Decides, asking as often as needed. A filter that fails, or does not answer in time, leaves its handler undecided; it is
    /// reported, and it is asked again only after a pause.
    pub async fn decide_without_failures<T>(
        &self,
        answers: &mut Answers,
        mut retries: FilterRetries<'_>,
        decision: impl Fn(&Answers) -> Result<T, OpenQuestion>,
    ) -> T {
        let mut asked = FuturesUnordered::new();
        loop {
            let answer = match decision(answers) {
                Ok(decided) if asked.is_empty() => return decided,
                Ok(_) => asked.next().await,
                Err(OpenQuestion { handler, question }) if retries.rests(&handler) => {
                    answers.note_failure(question);
                    None
                }
                Err(ask) => {
                    // Until it is answered.
                    answers.note_failure(ask.question.clone());
                    asked.push(self.answer(ask, retries.deadline));
                    time::timeout(PROMPT, asked.next()).await.ok().flatten()
                }
            };
            let Some(Asked { ask, took, answer }) = answer else { continue };
            match answer {
                Ok(answer) => answers.note(ask.question, answer),
                Err(raised) => self.report(&ask, &raised, retries.failed(&ask.handler, took)),
            }
        }
    }

    async fn answer(&self, ask: OpenQuestion, deadline: Instant) -> Asked {
        let start = Instant::now();
        let limit = deadline.saturating_duration_since(start).clamp(ANSWER_MIN, ANSWER_MAX);
        let answer = self.scripts.ask(ask.question.clone(), self.invocation(&ask.handler));
        let answer = within(limit, answer).await;
        let took = start.elapsed();
        // However little time was left for it.
        let took = if took < limit { took } else { ANSWER_MAX };
        Asked { ask, took, answer }
    }

    fn report(&self, ask: &OpenQuestion, raised: &Raised, failed: Failed) {
        let OpenQuestion { handler, question } = ask;
        let (filter, message) = (shown(question), &raised.message);
        let attempt = failed.attempt;
        let text = match failed.pause {
            Some(pause) => {
                let pause = python_text::seconds(pause);
                format!(
                    "{handler} is skipped: its filter {filter} failed (attempt {attempt}), asking again in {pause} s: {message}"
                )
            }
            None => format!(
                "{handler} is skipped: its filter {filter} failed, asking again with the next event: {message}"
            ),
        };
        let line = LogLine { level: LogLevel::Error, text, with_trace: true };
        self.logger.line(&line, raised.trace_from(&handler.location).as_deref());
    }

    /// The argument of a function that is asked about the object, on behalf of this handler.
    pub fn invocation(&self, handler: &Arc<Handler>) -> Arc<Invocation> {
        Arc::new(Invocation {
            handler: handler.for_scripts(),
            attempt: None,
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
            facilities: Arc::clone(self.facilities),
            children: None,
        })
    }
}

impl FilterRetries<'_> {
    fn rests(&mut self, handler: &Handler) -> bool {
        let now = self.start.elapsed();
        self.undecided.as_mut().is_some_and(|it| it.rests(handler, now))
    }

    fn failed(&mut self, handler: &Handler, took: Duration) -> Failed {
        let (delays, now) = (self.delays, self.start.elapsed());
        self.undecided.get_or_insert_default().failed(handler, took, delays, now)
    }
}

/// Waits for an answer, but not for longer than this.
///
/// # Errors
/// When there is none in time.
pub async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Raised>>,
) -> Result<T, Raised> {
    let answered = time::timeout(limit, answer).await;
    answered.unwrap_or_else(|_elapsed| {
        let message = format!("no answer within {} s", limit.as_secs());
        Err(Raised { kind: RaisedKind::Arbitrary("TimeoutError".into()), message, trace: None })
    })
}

/// The filter of a question, as in log lines.
fn shown(question: &Question) -> String {
    let Question { function: Function { name, .. }, about } = question;
    match (name.is_empty(), about) {
        (false, _) => python_text::quoted(name),
        (true, None) => python_text::quoted("when"),
        (true, Some(_)) => "of a value".into(),
    }
}
