//! Reports the outcome of an attempt: in the log, in the metrics and, if it has failed, as a Kubernetes event.

use std::sync::Arc;

use crate::call::{CallServices, Logger};
use crate::logic::{
    handlers::{
        failing::FailedAttempt,
        handler::{Handler, Kind},
        outcome::{Effort, LogLevel, LogLine, Outcome},
    },
    object::{ObjectRef, resource::Resource},
};
use crate::ports::Clock;
use crate::settings::ExecutionSettings;
use crate::telemetry::{FailureReport, HandlerLabels};

/// The end of an attempt.
#[derive(Clone, Copy)]
pub struct Conclusion<'a> {
    /// The handler that was called.
    pub handler: &'a Handler,
    /// Its progress before the attempt.
    pub before: Effort,
    /// How the attempt ended.
    pub outcome: &'a Outcome,
    /// The log line of Kopf about it.
    pub line: &'a LogLine,
    /// The stack trace of the script.
    pub trace: Option<&'a str>,
    /// The resource of the object.
    pub resource: Option<&'a Arc<Resource>>,
}

/// The destinations of reports about attempts.
#[derive(Clone, Copy)]
pub struct Reporter<'a> {
    /// The services of the operator, which count the failures.
    pub services: &'a CallServices,
    /// The clock for the times of events.
    pub clock: Clock,
    /// The level of log lines.
    pub settings: &'a ExecutionSettings,
}

impl Reporter<'_> {
    /// Reports the end of an attempt.
    pub fn report(&self, ended: Conclusion<'_>, logger: &Logger) {
        let Conclusion { handler, before, outcome, line, trace, resource } = ended;
        let is_counted = logger.is_full() && is_retried(handler.kind);
        let attempt = FailedAttempt::of(handler, before, outcome).filter(|_| !is_review(handler));
        let Some(mut attempt) = attempt else {
            logger.line(line, trace);
            let failures = &self.services.failures;
            let succeeded = outcome.last && is_counted && !failures.is_empty();
            if let Some(object) = logger.object().filter(|_| succeeded) {
                failures.succeeded(&object.uid, &handler.id);
            }
            return;
        };
        let object = logger.object().filter(|_| is_counted);
        if let Some(object) = object.as_ref().filter(|_| attempt.gave_up()) {
            attempt = match command(handler.kind, object) {
                Some(command) => attempt.with_command(&command),
                None => attempt,
            };
        }
        let error = LogLevel::Error.number();
        let level = if attempt.gave_up() { error } else { self.settings.retry_log_level };
        logger.failed(line, trace, (handler, &attempt), level);
        if let Some(about) = object {
            let report = FailureReport {
                about,
                handler: Arc::clone(&handler.id),
                labels: HandlerLabels::of(handler, resource.map(|it| &**it)),
                condition: resource.filter(|_| self.services.posts.has_condition()).map(Arc::clone),
                is_change: !matches!(handler.kind, Kind::Daemon | Kind::Timer),
                gave_up: attempt.gave_up(),
                text: attempt.text,
            };
            self.services.failures.note(report, self.clock.now());
        }
    }
}

/// Returns whether handlers of this kind are retried for an object.
fn is_retried(kind: Kind) -> bool {
    use Kind::{Create, Daemon, Delete, Field, Resume, Sub, Timer, Update};
    matches!(kind, Create | Update | Delete | Resume | Field | Sub | Daemon | Timer)
}

/// Returns whether an error of the handler denies a request.
fn is_review(handler: &Handler) -> bool {
    matches!(handler.kind, Kind::Validate | Kind::Mutate)
}

/// Returns the command that retries a handler that has failed permanently; `None` if handlers of this kind cannot be retried.
fn command(kind: Kind, object: &ObjectRef) -> Option<String> {
    if !matches!(kind, Kind::Create | Kind::Update | Kind::Resume | Kind::Field) {
        return None;
    }
    let namespace = object.namespace.as_deref().map(|it| format!(" -n {it}")).unwrap_or_default();
    Some(format!("kopf retry {}/{}{namespace}", object.kind.to_ascii_lowercase(), object.name))
}
