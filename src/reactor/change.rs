//! Handles a change of one object: plans, runs the handlers that are due, settles.
//!
//! Hops 4 to 7 of the walk. Before: `cycle.rs`. After: `handling/patching.rs`.

use std::{sync::Arc, time::Duration};

use super::{error::CycleError, memory::Memory, serving::Serving};
use crate::handling::run::Try;
use crate::logic::{
    cause::Change,
    filters::{Answers, Subject},
    handler::Handler,
    object::Object,
    outcome::{LogLevel, Outcome},
    plan, selection, settle,
    state::{self, State},
};
use crate::ports::{
    Cause, ChangeCause, Logger, Memo, ObjectCause, ObjectDetail, SharedPatch, lock_patch as lock,
};
use crate::settings::FieldPath;

/// The handling of one change.
pub(super) struct Changing<'a> {
    pub(super) serving: &'a Serving,
    pub(super) memory: &'a mut Memory,
    pub(super) logger: &'a Logger,
    pub(super) object: &'a Arc<Object>,
    pub(super) patch: &'a SharedPatch,
    pub(super) memo: &'a Memo,
}

impl Changing<'_> {
    /// Runs the handlers that are due; gives the pauses until the others are.
    pub(super) async fn run(
        self,
        change: &Change,
        answers: &mut Answers,
    ) -> Result<Vec<Duration>, CycleError> {
        if let Some(line) = plan::unhandled(change.reason) {
            self.logger.log(LogLevel::Debug, line);
            return Ok(Vec::new());
        }
        let selected = self.select(change, answers).await?;
        let serving = self.serving;
        let persistence = &serving.settings.persistence;
        let body = self.object.body();
        let owned = &serving.handlers.changing;
        let now = serving.clock.now();
        let mut state = State::load(&persistence.progress_storage, body, ids(owned), now)?;
        let superseded = plan::begin(&mut state, change.reason, &selected, now);
        superseded.lines.iter().for_each(|line| self.logger.line(line, None));
        if superseded.left_over {
            state.purge(
                &persistence.progress_storage,
                body,
                &mut lock(self.patch).merge,
                ids(owned),
            );
        }
        self.announce(change);
        if !selected.is_empty() {
            let due = plan::due(&state, &selected, now);
            let retries = |id: &str| state.record(id).map_or(0, |it| it.retries);
            let picked =
                serving.lifecycle.pick(&due, retries, &mut |below| fastrand::usize(..below));
            for handler in picked {
                let outcome = self.call(&handler, change, &state).await;
                state.apply(&handler.id, &outcome, serving.clock.now());
                self.deliver(&handler, outcome)?;
            }
            let mut patch = lock(self.patch);
            state.store(&persistence.progress_storage, body, &mut patch.merge);
        }
        let settlement = settle::change(&state, change, selected.is_empty(), serving.clock.now());
        settlement.lines.iter().for_each(|line| self.logger.line(line, None));
        if settlement.done {
            let mut patch = lock(self.patch);
            if !selected.is_empty() {
                state.purge(&persistence.progress_storage, body, &mut patch.merge, ids(owned));
            }
            settle::remember(persistence, body, change, &mut patch.merge);
            self.memory.handled_once = true;
        }
        Ok(settlement.delays)
    }

    async fn select(
        &self,
        change: &Change,
        answers: &mut Answers,
    ) -> Result<Vec<Arc<Handler>>, CycleError> {
        let cause = self.cause(kwargs(change, None));
        let asker = self.serving.asker(&cause, self.memo, self.logger);
        let subject = Subject { object: self.object, change: Some(change) };
        let handlers = &self.serving.handlers.changing;
        Ok(asker.decide(answers, |known| selection::changing(handlers, &subject, known)).await?)
    }

    async fn call(&self, handler: &Arc<Handler>, change: &Change, state: &State) -> Outcome {
        let record = state.record(&handler.id);
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: record.map_or(0, |it| it.retries),
            started: record.map_or_else(|| self.serving.clock.now(), |it| it.started),
            cause: Cause::Object(self.cause(kwargs(change, handler.filters.field.as_ref()))),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
        };
        self.serving.runner().run(attempt).await
    }

    fn deliver(&self, handler: &Handler, outcome: Outcome) -> Result<(), CycleError> {
        match outcome.result {
            Some(result) => Ok(state::deliver(&mut lock(self.patch).merge, &handler.id, &result)?),
            None => Ok(()),
        }
    }

    fn cause(&self, change: ChangeCause) -> ObjectCause {
        ObjectCause {
            resource: Arc::clone(&self.serving.resource),
            object: Arc::clone(self.object),
            patch: Arc::clone(self.patch),
            detail: ObjectDetail::Change(change),
        }
    }

    /// The long lines at the start of a cycle; written only if somebody reads them.
    fn announce(&self, change: &Change) {
        let Some(title) = change.reason.title() else { return };
        if !self.logger.is_enabled(LogLevel::Debug) {
            return;
        }
        self.logger
            .log(LogLevel::Debug, &format!("{title} is in progress: {}", self.object.body()));
        if change.old.is_some() && !change.diff.is_empty() {
            let diff = crate::logic::diff::to_text(&change.diff);
            self.logger.log(LogLevel::Debug, &format!("{title} diff: {diff}"));
        }
    }
}

/// The kwargs of a change, reduced to a field.
pub(super) fn kwargs(change: &Change, field: Option<&FieldPath>) -> ChangeCause {
    let narrowed = change.narrowed(field);
    ChangeCause { reason: change.reason, old: narrowed.old, new: narrowed.new, diff: narrowed.diff }
}

fn ids(handlers: &[Arc<Handler>]) -> impl Iterator<Item = &Arc<str>> {
    handlers.iter().map(|it| &it.id)
}
