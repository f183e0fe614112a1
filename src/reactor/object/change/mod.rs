//! Handles a change of one object: plans, runs the due handlers, settles.
//!
//! Hops 4 to 7 of the walk. Before: `cycle.rs`. After: `reactor/object/delivery.rs`. `level.rs` runs the handlers of one change, or
//! the sub-handlers of one handler; `subhandlers.rs` runs one handler with its sub-handlers; `settling.rs` computes the records.

mod attempts;
mod level;
mod retry;
mod settling;
mod subhandlers;

use std::sync::Arc;

pub(in crate::reactor) use self::{attempts::Attempts, retry::Rate, settling::Settling};
use self::{level::Level, settling::LeftOver, subhandlers::Descendants};
use super::{error::CycleError, memory::ChangeMemory, undecided::FilterContext};
use crate::call::{ChangeCause, Logger, Memo, SharedPatch};
use crate::logic::{
    change::{cause::Change, filters::Answers, plan, settle, state::State, unhandled},
    handlers::{handler::Handler, outcome::LogLevel},
    object::{Object, diff, hidden, reason::Reason},
};
use crate::reactor::object::{context::StreamContext, permits::WorkerPermit, queue::ObjectQueue};

/// The handling of one change.
pub(in crate::reactor) struct Changing<'a> {
    pub(in crate::reactor) context: ChangeContext<'a>,
    pub(in crate::reactor) memory: ChangeMemory<'a>,
    /// The scripts that wait for indexes, and the deadline of filters.
    pub(in crate::reactor) filters: &'a FilterContext,
    /// The queue of newer events.
    pub(in crate::reactor) queue: &'a ObjectQueue,
    /// The worker's permit, released while it waits for something other than its own work.
    pub(in crate::reactor) permit: &'a WorkerPermit,
    /// The change does not end with its handlers: daemons or timers of the object are still stopping, or some handlers are
    /// undecided about the change.
    pub(in crate::reactor) is_held: bool,
}

/// The state that all handlers of one change of one object share.
#[derive(Clone, Copy)]
pub(in crate::reactor) struct ChangeContext<'a> {
    pub(in crate::reactor) serving: &'a StreamContext,
    pub(in crate::reactor) logger: &'a Logger,
    pub(in crate::reactor) object: &'a Arc<Object>,
    pub(in crate::reactor) patch: &'a SharedPatch,
    pub(in crate::reactor) attempts: &'a Attempts,
    pub(in crate::reactor) memo: &'a Memo,
}

impl Changing<'_> {
    /// Runs the due handlers. Returns the records to write; `None` if no handler can react to the change.
    pub(in crate::reactor) async fn run(
        mut self,
        change: Change,
        answers: &mut Answers,
    ) -> Result<Option<Settling>, CycleError> {
        let ChangeContext { serving, logger, object, .. } = self.context;
        let is_held = self.is_held;
        let owned = &serving.handlers.changing;
        let nobody = Descendants::default();
        let edited = self.memory.waiting.as_ref().map(|it| it.edited(owned)).unwrap_or_default();
        let level = Level {
            context: self.context,
            change: &change,
            chooser: &serving.lifecycle,
            descendants: &nobody,
            edited: &edited,
        };
        let mut selected = Vec::new();
        if change.reason.is_handled() {
            selected = level.select(owned, answers).await?;
        }
        let may_retry = matches!(change.reason, Reason::Noop | Reason::Resume);
        let mut again = None;
        if selected.is_empty() && may_retry && self.memory.has_failed {
            again = self.again(&change, &level).await;
        }
        let mut seen = change.clone();
        if let Some((change, handlers)) = again {
            (seen, selected) = (change, handlers);
        }
        if let Some(line) = plan::unhandled(seen.reason) {
            logger.log(LogLevel::Debug, line);
            self.tell_unhandled(&seen);
            return Ok(self.withdrawn(&seen));
        }
        let level = Level { change: &seen, ..level };
        let now = serving.clock.now();
        let storage = &serving.settings.persistence.progress_storage;
        let mut state = State::load(storage, object.body(), ids(owned), now)?;
        let superseded = plan::begin(&mut state, seen.reason, &selected, now);
        superseded.lines.iter().for_each(|line| logger.line(line, None));
        // The handlers have finished in an earlier cycle, and their records were not purged for a new start.
        let has_ended = is_held && !selected.is_empty() && state.done();
        if has_ended {
            selected.clear();
        } else {
            self.announce(&seen);
            if selected.is_empty() && !is_held {
                self.tell_unhandled(&seen);
            }
        }
        let due = plan::due(&state, &selected, &edited, serving.clock.now());
        let called = level.run(&due, &mut state).await;
        let settling = Settling {
            change: seen,
            state,
            selected,
            called,
            left_over: if superseded.left_over { LeftOver::All } else { LeftOver::None },
            is_held,
            handled_once: *self.memory.handled_once,
        };
        if settling.has_ended() {
            if !settling.selected.is_empty() {
                let line = settle::summary(&settling.state, &settling.change);
                let failed = settling.state.counts().failed;
                if failed > 0 { logger.repeated(&line) } else { logger.line(&line, None) }
            }
            let uid = object.header().uid.as_deref().unwrap_or_default();
            serving.services.failures.change_ended(uid);
        }
        settling.note(&mut self.memory, serving.clock.now());
        Ok(Some(settling))
    }

    /// Returns the end of a change that the object does not show any more, because a user has reverted it or a backup was restored, if some
    /// of its handlers have finished: otherwise their records would count for the next change.
    fn withdrawn(&self, change: &Change) -> Option<Settling> {
        let ChangeContext { serving, object, .. } = self.context;
        if change.reason != Reason::Noop {
            return None;
        }
        let storage = &serving.settings.persistence.progress_storage;
        let (body, now) = (object.body(), serving.clock.now());
        // Records that cannot be read are reported at the next change.
        let load = |ids: &mut dyn Iterator<Item = &Arc<str>>| {
            State::load(storage, body, ids, now).unwrap_or_default()
        };
        let mut state = load(&mut ids(&serving.handlers.changing));
        let children = state.subrefs();
        state.absorb(load(&mut children.iter()));
        state.retain_finished();
        let persistence = &serving.settings.persistence;
        let is_any = state.ids().next().is_some() || settle::is_exposed(persistence, body);
        is_any.then(|| Settling {
            change: change.clone(),
            state,
            selected: Vec::new(),
            called: Vec::new(),
            left_over: LeftOver::Loaded,
            is_held: self.is_held,
            handled_once: *self.memory.handled_once,
        })
    }

    /// Logs that no handler is called for a change, if such lines are enabled: see [`Logger::tells_unhandled`].
    fn tell_unhandled(&self, change: &Change) {
        let ChangeContext { serving, logger, .. } = self.context;
        if !Logger::tells_unhandled() {
            return;
        }
        let shown = hidden::loggable_diff(&serving.settings.persistence, &change.diff);
        let diff = shown.as_ref().unwrap_or(&change.diff);
        let handlers = serving.handlers.changing.iter().map(|it| &**it);
        if let Some(line) = unhandled::line(change.reason, diff, handlers) {
            logger.unhandled(&line);
        }
    }

    /// Writes the long lines at the start of a cycle, only if debug lines are enabled.
    fn announce(&self, change: &Change) {
        let ChangeContext { logger, object, .. } = self.context;
        let Some(title) = change.reason.title() else { return };
        if !logger.is_enabled(LogLevel::Debug) {
            return;
        }
        let persistence = &self.context.serving.settings.persistence;
        let shown = hidden::loggable(persistence, object.body());
        let body = shown.as_ref().unwrap_or(object.body());
        logger.log(LogLevel::Debug, &format!("{title} is in progress: {body}"));
        if change.old.is_some() && !change.diff.is_empty() {
            let shown = hidden::loggable_diff(persistence, &change.diff);
            let diff = diff::to_text(shown.as_ref().unwrap_or(&change.diff));
            logger.log(LogLevel::Debug, &format!("{title} diff: {diff}"));
        }
    }
}

/// Returns the kwargs of a change.
pub(in crate::reactor) fn kwargs(change: &Change) -> ChangeCause {
    // The value of an absent field is absent for its handlers, and for their sub-handlers.
    let new = Some(&change.new).filter(|it| !it.is_null()).cloned();
    let (mut old, mut diff) = (change.old.clone(), Arc::clone(&change.diff));
    if change.has_hidden {
        old = old.map(|it| Arc::new(hidden::readable(&it))).filter(|it| !it.is_null());
        diff = Arc::new(hidden::readable_diff(&diff));
    }
    ChangeCause { reason: change.reason, old, new, diff }
}

fn ids(handlers: &[Arc<Handler>]) -> impl Iterator<Item = &Arc<str>> {
    handlers.iter().map(|it| &it.id)
}
