//! What a daemon or a timer wants to change on its object, from one attempt to the next.
//!
//! An error of the API never ends the daemon: what it could not send is sent again, or goes with its next attempt.

use std::{mem, sync::Arc};

use super::runner::Runner;
use crate::handling::patching::{PatchError, Patcher, Received};
use crate::logic::{
    outcome::{LogLevel, Outcome},
    patch::{self, Patch},
    python_text, state,
};
use crate::ports::{LoggerKind, SharedPatch};

/// What waits for the next attempt: transformations that met a conflict, and what could not be sent.
#[derive(Debug, Default)]
pub(super) struct Patches {
    waiting: Patch,
}

impl Patches {
    /// The patch of an attempt. It begins with the transformations that are left of the one before.
    pub(super) fn begin(&mut self) -> SharedPatch {
        let transformations = mem::take(&mut self.waiting.transformations);
        Arc::new(Patch { transformations, ..Patch::default() }.into())
    }

    /// Whether there is nothing to wait for.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The end of an attempt: sends what it left. An attempt whose patch is not acceptable is a failed one.
    pub(super) async fn finish(
        &mut self,
        runner: &Runner,
        own: &SharedPatch,
        outcome: Outcome,
    ) -> Outcome {
        let mut own = own.take();
        runner.base().scripts.keep_functions(&mut own);
        patch::compose(&mut self.waiting.merge, own.merge);
        self.waiting.transformations.extend(own.transformations);
        if let Some(result) = &outcome.result {
            let id = &runner.handler().id;
            if let Err(error) = state::deliver(&mut self.waiting.merge, id, result) {
                self.waiting = Patch::default();
                return refused(runner, outcome, &error.to_string());
            }
        }
        let mut tries = 0;
        while !self.waiting.is_empty() {
            match self.send(runner).await {
                Ok(None) => break,
                Ok(Some(error)) => return refused(runner, outcome, &error),
                Err(error) if error.is_transient() => {
                    // What must be repeated anyway takes it along.
                    if !outcome.last || !self.pause(runner, tries, &error).await {
                        break;
                    }
                    tries += 1;
                }
                Err(error) => {
                    self.waiting = Patch::default();
                    return refused(runner, outcome, &error.to_string());
                }
            }
        }
        outcome
    }

    /// Returns why a part of it will never be accepted.
    async fn send(&mut self, runner: &Runner) -> Result<Option<String>, PatchError> {
        let base = runner.base();
        let patcher = Patcher {
            cluster: &*base.cluster,
            scripts: &*base.scripts,
            resource: &base.resource,
            logger: &runner.daemon.logger(LoggerKind::Local),
        };
        let object = runner.shared().live.get();
        let mut received = Received::default();
        let sent = patcher.apply(&object, &mut self.waiting, &mut received).await?;
        if sent.is_gone {
            self.waiting = Patch::default();
        }
        let refused: Vec<_> = received.refused.iter().map(ToString::to_string).collect();
        Ok(Some(refused.join("; ")).filter(|it| !it.is_empty()))
    }
}

impl Patches {
    /// Waits before another try; tells whether there will be one.
    async fn pause(&self, runner: &Runner, tries: usize, error: &PatchError) -> bool {
        let handler = runner.handler();
        let settings = &runner.base().settings;
        let delays = &settings.queueing.error_delays;
        let delay = delays.get(tries).or(delays.last()).copied();
        let delay = delay.unwrap_or(settings.execution.default_backoff);
        let seconds = python_text::seconds(delay);
        let text = format!(
            "{handler} could not apply its patch and will try again in {seconds} seconds: {error}"
        );
        runner.logger().log(LogLevel::Error, &text);
        runner.sleep(delay).await;
        let is_left = !runner.daemon.stopped.is_set();
        if !is_left {
            let text = format!("{handler} must stop, so its last patch is not applied.");
            runner.logger().log(LogLevel::Warning, &text);
        }
        is_left
    }
}

/// What follows from a patch that will never be taken: the handler must try again, unless it has failed for good.
fn refused(runner: &Runner, outcome: Outcome, error: &str) -> Outcome {
    let handler = runner.handler();
    let backoff = handler.limits.backoff;
    let backoff = backoff.unwrap_or(runner.base().settings.execution.default_backoff);
    let (outcome, next) = match outcome {
        Outcome { last: true, error: None, .. } => {
            let delay = Some(backoff);
            let seconds = python_text::seconds(backoff);
            let retry = Outcome { last: false, delay, ..Outcome::default() };
            (retry, format!(" and will try again in {seconds} seconds"))
        }
        outcome => (outcome, String::new()),
    };
    let text = format!("{handler} could not apply its patch{next}: {error}");
    runner.logger().log(LogLevel::Error, &text);
    outcome
}
