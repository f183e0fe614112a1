//! Calls the handlers of raw events.
//!
//! Handlers of one script share a separate patch, so that the author of each change is known although the scripts run concurrently.
//! Before: `cycle.rs`. After: `change/attempts.rs`, which tracks the authors in the patch of the cycle.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future;

use super::{
    change::Attempts,
    cycle::{Cycle, Pass},
};
use crate::call::{Cause, ClearOnDrop, Logger, Memo, ObjectCause, ObjectDetail, SharedPatch};
use crate::handling::{run::Try, time_slice::TimeSlice};
use crate::logic::{
    change::{
        filters::{Answers, Subject},
        selection, state,
    },
    handlers::{function::ScriptId, handler::Handler, outcome::LogLevel},
};
use crate::reactor::object::{context::StreamContext, pending_calls::HandlerSet};

/// The handlers of one script, and the changes that they request.
struct ScriptGroup {
    handlers: Vec<Arc<Handler>>,
    patch: SharedPatch,
    attempts: Attempts,
    /// Drops the patch's functions, also if the cycle fails.
    _clear: ClearOnDrop,
}

impl ScriptGroup {
    fn of(handlers: Vec<Arc<Handler>>) -> Self {
        let patch = SharedPatch::default();
        let clear = ClearOnDrop(Arc::clone(&patch));
        ScriptGroup { handlers, patch, attempts: Attempts::default(), _clear: clear }
    }
}

impl Cycle<'_> {
    /// Calls the handlers of raw events, once each. Those of different scripts run concurrently.
    pub(in crate::reactor) async fn watch(
        &mut self,
        attempts: &Attempts,
        Pass { patch, memo, filters }: Pass<'_>,
    ) {
        let (serving, logger) = (self.serving, self.logger);
        let all = &serving.handlers.watching;
        let (handlers, event_type) = match self.calls.take_watching() {
            HandlerSet::All => (all.clone(), self.event.event_type),
            // Nothing has happened to the object: new handlers see it as at a start.
            HandlerSet::Only(ids) => {
                let is_new = |it: &&Arc<Handler>| ids.contains(&it.id);
                (all.iter().filter(is_new).cloned().collect(), None)
            }
        };
        let (services, object) = (&serving.services, &self.event.object);
        let mut handlers = handlers;
        handlers.retain(|it| it.parent.is_none() || services.parent_uid(it, object).is_some());
        if handlers.is_empty() {
            return;
        }
        let cause = self.cause(patch, ObjectDetail::Watch(event_type));
        let filter_caller = serving.filter_caller(&cause, memo, logger);
        let subject = Subject { object: &self.event.object, change: None };
        let retries = filters.retries(serving, &mut self.memory.undecided);
        let decision = |known: &Answers| selection::watching(&handlers, &subject, known);
        let sorted =
            filter_caller.decide_without_failures(&mut filters.answers(), retries, decision).await;
        let mut by_script = BTreeMap::<ScriptId, Vec<Arc<Handler>>>::new();
        for handler in sorted.selected {
            let undecided = self.memory.undecided.as_mut();
            if !undecided.is_some_and(|it| it.rests(&handler, serving.uptime())) {
                by_script.entry(handler.function.script).or_default().push(handler);
            }
        }
        let groups = by_script.into_values().map(ScriptGroup::of).collect::<Vec<_>>();
        let calls = groups.iter().map(|it| call_in_turn(serving, it, (&cause, memo, logger)));
        let rests = future::join_all(calls).await;
        for group in groups {
            patch.charges().absorb(group.patch.take_charges());
            attempts.absorb(group.attempts, group.patch.take(), patch);
        }
        for (handler, rest) in rests.into_iter().flatten() {
            let undecided = self.memory.undecided.get_or_insert_default();
            undecided.rest(&handler, rest, serving.uptime());
        }
    }
}

/// Calls handlers of raw events one after another. Returns those that took too long, and how long to skip them.
async fn call_in_turn(
    serving: &StreamContext,
    ScriptGroup { handlers, patch, attempts, .. }: &ScriptGroup,
    (cause, memo, logger): (&ObjectCause, &Memo, &Logger),
) -> Vec<(Arc<Handler>, Duration)> {
    let cause = ObjectCause { patch: Arc::clone(patch), ..cause.clone() };
    let mut rests = Vec::new();
    let mut slice = TimeSlice::start();
    for handler in handlers {
        slice.yield_if_over().await;
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: 0,
            started: serving.clock.now(),
            cause: Cause::Object(cause.clone()),
            memo: memo.clone(),
            logger: logger.clone(),
        };
        let number = attempts.begin(handler, None, attempt.started, patch);
        let (outcome, rest) = serving.runner().run_briefly(attempt).await;
        slice.yield_if_over().await;
        let deliver = |it| state::deliver(&mut patch.lock().merge, &handler.id, it);
        if let Some(Err(error)) = outcome.result.map(deliver) {
            let text = format!("The result of {handler} is dropped: {error}");
            logger.log(LogLevel::Error, &text);
        }
        attempts.end(number, patch);
        rests.extend(rest.map(|it| (Arc::clone(handler), it)));
    }
    rests
}
