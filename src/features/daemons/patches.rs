//! The changes that a daemon or timer requests for its object, kept between attempts.
//!
//! An error of the API never ends the daemon: unsent changes are sent again, or together with those of the next attempt.

use std::{mem, sync::Arc};

use serde_json::Value;

use super::runner::DaemonRunner;
use crate::call::{LoggerKind, PatchCharges, SharedPatch};
use crate::handling::{
    patching::{PatchError, PatchResponses, Patcher},
    run::Begun,
};
use crate::logic::{
    background::indexing::entry_bytes,
    change::{
        order,
        patch::{self, Patch},
        state,
    },
    handlers::outcome::{CallEnd, LogLevel, Outcome, Raised},
    object::measure,
    text::python_text,
};

/// The remaining changes for the next attempt: transformations that met a conflict, and unsent changes.
#[derive(Debug, Default)]
pub(super) struct Patches {
    waiting: Patch,
    /// What is counted for them.
    charges: PatchCharges,
}

impl Patches {
    /// Returns the patch of an attempt, which starts with the remaining transformations of the previous attempt.
    pub(super) fn begin(&mut self) -> SharedPatch {
        let transformations = mem::take(&mut self.waiting.transformations);
        Arc::new(Patch { transformations, ..Patch::default() }.into())
    }

    /// Returns whether no changes are left.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends the changes of an attempt. Returns its outcome: a failure if the server rejects the changes.
    pub(super) async fn finish(
        &mut self,
        runner: &DaemonRunner,
        (begun, own): (Option<&Begun>, &SharedPatch),
        mut outcome: Outcome,
    ) -> Outcome {
        self.charges.absorb(own.take_charges());
        let mut own = own.take();
        runner.base().scripts.keep_functions(&mut own);
        if let Err(problem) = self.add(own, &runner.handler().id, outcome.result.take()) {
            // What waited before is sent nevertheless.
            outcome = failed(runner, begun, outcome, Raised::of_host(problem));
        }
        let mut tries = 0;
        while !self.waiting.is_empty() {
            match self.send(runner).await {
                Ok(None) => break,
                Ok(Some(refused)) => {
                    return failed(runner, begun, outcome, Raised::of_host(refused));
                }
                Err(error) if error.is_transient() => {
                    // The next attempt sends it anyway.
                    if !outcome.last || !self.pause(runner, tries, &error).await {
                        break;
                    }
                    tries += 1;
                }
                Err(error) => {
                    self.waiting = Patch::default();
                    return failed(runner, begun, outcome, Raised::rejected(error));
                }
            }
        }
        outcome
    }

    /// Adds the changes and the result of an attempt to those that were not sent yet: all together are one patch. Nothing is added if they
    /// are too large together, or if the result contradicts the changes.
    fn add(&mut self, own: Patch, id: &str, result: Option<Value>) -> Result<(), String> {
        // Hardly ever is anything left.
        let mut merge = self.waiting.merge.clone();
        patch::compose(&mut merge, own.merge);
        measure::admit(&merge, 0, 0)?;
        let delivered = result.map_or(Ok(()), |it| state::deliver(&mut merge, id, it));
        delivered.map_err(|it| it.to_string())?;
        self.waiting.merge = merge;
        self.waiting.transformations.extend(own.transformations);
        // While the server accepts nothing, each attempt may request the same changes again.
        let fields = self.waiting.merge.iter();
        self.charges.reduce_to(fields.map(|(key, it)| entry_bytes(key.len(), it)).sum());
        Ok(())
    }

    /// Sends the changes. Returns the reason if a part of them is rejected permanently.
    async fn send(&mut self, runner: &DaemonRunner) -> Result<Option<String>, PatchError> {
        let base = runner.base();
        let patcher = Patcher {
            cluster: &*base.cluster,
            scripts: &*base.scripts,
            resource: &base.resource,
            logger: &runner.daemon.logger(LoggerKind::Local),
            seen: runner.shared().live.own_version(),
            events: None,
            edits: &runner.daemon.stopped,
            persistence: &base.settings.persistence,
        };
        let object = runner.shared().live.get();
        let mut received = PatchResponses::default();
        let sent = patcher.apply(&object, &mut self.waiting, &mut received).await;
        if let Some(answer) = &received.object {
            runner.shared().live.note_own_version(order::number(answer));
            if let Some(level) = runner.daemon.level() {
                level.note_response(answer);
            }
        }
        let sent = sent?;
        if sent.is_gone {
            self.waiting = Patch::default();
        }
        let refused: Vec<_> = received.refused.iter().map(ToString::to_string).collect();
        Ok(Some(refused.join("; ")).filter(|it| !it.is_empty()))
    }
}

impl Patches {
    /// Waits before another try; returns whether to make it.
    async fn pause(&self, runner: &DaemonRunner, tries: usize, error: &PatchError) -> bool {
        let handler = runner.handler();
        let settings = &runner.base().settings;
        let delays = &settings.queueing.error_delays;
        let delay = delays.get(tries).or(delays.last()).copied();
        let delay = delay.unwrap_or(settings.execution.default_backoff);
        let seconds = python_text::seconds(delay);
        let text = format!("{handler} could not apply its patch, retrying in {seconds} s: {error}");
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

/// Returns the outcome of an attempt whose changes are rejected permanently: the same as if its function had raised the error.
fn failed(
    runner: &DaemonRunner,
    begun: Option<&Begun>,
    outcome: Outcome,
    raised: Raised,
) -> Outcome {
    match begun {
        Some(begun) if outcome.last && outcome.error.is_none() => {
            let attempts = runner.attempts(&begun.invocation.services);
            attempts.end(begun, Some(CallEnd::Raised(raised)))
        }
        _ => {
            let text = format!("{}: {}", runner.handler(), raised.message);
            runner.logger().log(LogLevel::Error, &text);
            outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::Patches;
    use crate::call::PatchBudget;
    use crate::logic::change::patch::Patch;

    fn wide(key: &str) -> Patch {
        let status = json!({ "status": { key: vec![0; 11_000] } });
        Patch { merge: status.as_object().cloned().expect("a map"), ..Patch::default() }
    }

    #[test]
    fn repeated_changes_that_wait_count_once_and_a_refused_attempt_drops_none_of_them() {
        let mut patches = Patches::default();
        let result = || Some(Value::from(vec![0; 5_000]));
        let budget = Arc::new(PatchBudget::new(100 << 20));
        for _ in 0..30 {
            assert!(patches.charges.add(&budget, 2 << 20));
            assert_eq!(patches.add(wide("a"), "it", result()), Ok(()));
        }
        assert!((1 << 20..4 << 20).contains(&budget.held()), "{}", budget.held());
        let waiting = patches.waiting.clone();
        let refused = patches.add(wide("b"), "it", result()).expect_err("too many together");
        assert!(
            refused.starts_with("the patch would have more than 20000 items: 27004; "),
            "{refused}"
        );
        assert_eq!(patches.waiting, waiting);
    }
}
