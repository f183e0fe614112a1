//! Handles a change of one object: plans, runs the handlers that are due, settles.
//!
//! Hops 4 to 7 of the walk. Before: `cycle.rs`. After: `handling/patching.rs`. The handlers of one change, and the
//! sub-handlers of one handler, are a `level.rs`; what a handler does with its sub-handlers is in `family.rs`.

mod family;
mod level;

use std::{sync::Arc, time::Duration};

use self::{family::Descendants, level::Level};
use super::{error::CycleError, memory::Memory, serving::Serving};
use crate::logic::{
    cause::Change, filters::Answers, handler::Handler, object::Object, outcome::LogLevel, plan,
    settle, state::State,
};
use crate::ports::{ChangeCause, Logger, Memo, SharedPatch};
use crate::settings::FieldPath;

/// The handling of one change.
pub(super) struct Changing<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) memory: &'a mut Memory,
    /// The object stays when its handlers have ended, as daemons or timers of it still stop.
    pub(super) is_held: bool,
}

/// What all handlers of one change of one object have in common.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) serving: &'a Serving,
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
        let Scene { serving, logger, object, patch, .. } = self.scene;
        let is_held = self.is_held;
        if let Some(line) = plan::unhandled(change.reason) {
            logger.log(LogLevel::Debug, line);
            return Ok(Vec::new());
        }
        let persistence = &serving.settings.persistence;
        let storage = &persistence.progress_storage;
        let body = object.body();
        let owned = &serving.handlers.changing;
        let nobody = Descendants::default();
        let mut waiting = self.memory.waiting.take().unwrap_or_default();
        let edited = waiting.edited(owned);
        let level = Level {
            scene: self.scene,
            change,
            chooser: &serving.lifecycle,
            descendants: &nobody,
            edited: &edited,
        };
        let selected = level.select(owned, answers).await?;
        let now = serving.clock.now();
        let mut state = State::load(storage, body, ids(owned), now)?;
        let superseded = plan::begin(&mut state, change.reason, &selected, now);
        superseded.lines.iter().for_each(|line| logger.line(line, None));
        if superseded.left_over {
            state.purge(storage, body, &mut patch.lock().merge, ids(owned));
        }
        // They have ended in an earlier cycle, and nothing was purged for them to begin anew.
        if is_held && !selected.is_empty() && state.done() {
            return Ok(Vec::new());
        }
        self.announce(change);
        if !selected.is_empty() {
            let due = plan::due(&state, &selected, &edited, serving.clock.now());
            let called = level.run(&due, &mut state).await?;
            waiting.note(&state, &selected, &called, serving.clock.now());
            self.memory.waiting = Some(waiting).filter(|it| !it.is_empty());
            state.store(storage, body, &mut patch.lock().merge);
        }
        let settlement = settle::change(&state, change, selected.is_empty(), serving.clock.now());
        settlement.lines.iter().for_each(|line| logger.line(line, None));
        if settlement.done && !is_held {
            let mut patch = patch.lock();
            if !selected.is_empty() {
                state.purge(storage, body, &mut patch.merge, ids(owned));
            }
            settle::remember(persistence, body, change, &mut patch.merge);
            self.memory.handled_once = true;
        }
        Ok(settlement.delays)
    }

    /// The long lines at the start of a cycle; written only if somebody reads them.
    fn announce(&self, change: &Change) {
        let Scene { logger, object, .. } = self.scene;
        let Some(title) = change.reason.title() else { return };
        if !logger.is_enabled(LogLevel::Debug) {
            return;
        }
        logger.log(LogLevel::Debug, &format!("{title} is in progress: {}", object.body()));
        if change.old.is_some() && !change.diff.is_empty() {
            let diff = crate::logic::diff::to_text(&change.diff);
            logger.log(LogLevel::Debug, &format!("{title} diff: {diff}"));
        }
    }
}

/// The kwargs of a change, reduced to a field.
pub(super) fn kwargs(change: &Change, field: Option<&FieldPath>) -> ChangeCause {
    let narrowed = change.narrowed(field);
    // Below an absent field, a sub-handler sees nothing, too.
    let new = narrowed.new.filter(|it| !it.is_null());
    ChangeCause { reason: change.reason, old: narrowed.old, new, diff: narrowed.diff }
}

fn ids(handlers: &[Arc<Handler>]) -> impl Iterator<Item = &Arc<str>> {
    handlers.iter().map(|it| &it.id)
}
