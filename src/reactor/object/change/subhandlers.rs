//! One attempt of a handler with its sub-handlers.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

use super::{ids, level::Level};
use crate::call::{CHILDREN_MAX, Invocation, Orders, too_many_children};
use crate::logic::{
    change::{filters::Answers, plan, state::State},
    handlers::{
        handler::Handler,
        lifecycle::Chooser,
        outcome::{CallEnd, Raised, RaisedKind},
    },
};
use crate::ports::BoxFuture;
use crate::reactor::object::error::CycleError;

/// The ids of all sub-handlers below a handler, at any level. They are stored before any of their records, so that no record is
/// left behind, however the handler ends.
#[derive(Default)]
pub(super) struct Descendants<'a> {
    own: Mutex<BTreeSet<String>>,
    above: Option<&'a Descendants<'a>>,
}

/// The sub-handlers of one attempt of a handler.
pub(super) struct SubhandlerRun<'a> {
    /// The context in which the sub-handlers run.
    level: Level<'a>,
    /// The progress of the sub-handlers that this attempt has reached.
    state: State,
    /// The sub-handlers that the script has ordered in this attempt, whether or not their filters match.
    ordered: BTreeSet<Arc<str>>,
    /// The sub-handlers that this attempt has called. None is called twice per attempt, even if the script orders it repeatedly.
    called: BTreeSet<Arc<str>>,
    /// The handler was edited, and its sub-handlers with it: they do not wait for their retries.
    is_edited: bool,
}

impl<'a> Descendants<'a> {
    /// Creates the set for a handler that is itself a sub-handler.
    pub(super) fn below(above: &'a Descendants<'a>) -> Self {
        Descendants { own: Mutex::default(), above: Some(above) }
    }

    /// Returns all ids so far.
    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Returns whether the handler at the top may have these sub-handlers, too.
    fn admits(&self, handlers: &[Arc<Handler>]) -> bool {
        if let Some(above) = self.above
            && above.above.is_some()
        {
            return above.admits(handlers);
        }
        let own = self.lock();
        let new = handlers.iter().filter(|it| !own.contains(&*it.id)).count();
        own.len() + new <= CHILDREN_MAX
    }

    fn note(&self, id: &str) {
        self.lock().insert(id.to_owned());
        if let Some(above) = self.above {
            above.note(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.own.lock()
    }
}

impl<'a> SubhandlerRun<'a> {
    /// Creates the state of an attempt; no sub-handlers are declared yet.
    pub(super) fn new(level: Level<'a>, is_edited: bool) -> Self {
        SubhandlerRun {
            level,
            state: State::default(),
            ordered: BTreeSet::new(),
            called: BTreeSet::new(),
            is_edited,
        }
    }

    /// Calls the handler and runs the sub-handlers that it orders; finally runs those that it has declared but not ordered.
    pub(super) async fn drive(
        mut self,
        invocation: Arc<Invocation>,
        mut orders: Orders,
    ) -> CallEnd {
        let mut call = self.level.context.serving.scripts.call(invocation);
        let ended = loop {
            tokio::select! {
                biased; // a call that has ended sends no more orders
                ended = &mut call => break ended,
                // Not interrupted by the end of the call: the outcomes of sub-handlers must be recorded.
                Some(order) = orders.next() => {
                    let passed = order.passed.clone();
                    let handlers = passed.unwrap_or_else(|| orders.declared());
                    let chooser = order.chooser.clone();
                    order.answer(self.execute(&handlers, chooser.as_ref()).await);
                }
            }
        };
        let CallEnd::Returned(result) = ended else { return ended };
        let declared = orders.declared();
        let new: Vec<_> =
            declared.into_iter().filter(|it| !self.ordered.contains(&it.id)).collect();
        if let Err(raised) = self.execute(&new, None).await {
            return CallEnd::Raised(raised);
        }
        // A script may have caught the error of an execution, but its sub-handlers must finish nevertheless.
        match self.unfinished(self.state.ids()) {
            Some(raised) => CallEnd::Raised(raised),
            None => CallEnd::Returned(result),
        }
    }

    /// Runs the due sub-handlers. Returns the error to raise in the script.
    fn execute<'s>(
        &'s mut self,
        handlers: &'s [Arc<Handler>],
        chooser: Option<&'s Chooser>,
    ) -> BoxFuture<'s, Result<(), Raised>> {
        // Boxed, because sub-handlers can have sub-handlers.
        Box::pin(async move {
            if handlers.is_empty() {
                return Ok(());
            }
            if !self.level.descendants.admits(handlers) {
                return Err(Raised::of_host(too_many_children()));
            }
            self.run(handlers, chooser).await.map_err(CycleError::into_raised)?;
            self.unfinished(ids(handlers)).map_or(Ok(()), Err)
        })
    }

    async fn run(
        &mut self,
        handlers: &[Arc<Handler>],
        chooser: Option<&Chooser>,
    ) -> Result<(), CycleError> {
        let mut edited = BTreeSet::new();
        if self.is_edited {
            edited.extend(ids(handlers).cloned());
        }
        let chooser = chooser.unwrap_or(self.level.chooser);
        let level = Level { chooser, edited: &edited, ..self.level };
        let serving = level.context.serving;
        let storage = &serving.settings.persistence.progress_storage;
        let body = level.context.object.body();
        self.ordered.extend(ids(handlers).cloned());
        let selected = level.select(handlers, &mut Answers::default()).await?;
        let now = serving.clock.now();
        self.state.absorb(State::load(storage, body, ids(handlers), now)?);
        self.state.begin(level.change.reason, ids(&selected), now);
        self.state.ids().for_each(|id| level.descendants.note(id));
        let due = plan::due(&self.state, &selected, &edited, now);
        let due: Vec<_> = due.into_iter().filter(|it| !self.called.contains(&it.id)).collect();
        let called = level.run(&due, &mut self.state).await;
        self.called.extend(called.iter().map(|it| Arc::clone(&it.id)));
        level.context.attempts.keep_children(&self.state);
        Ok(())
    }

    /// Returns the error to raise if some of these are unfinished. Sub-handlers whose filters do not match are not waited for.
    fn unfinished<'i>(&self, ids: impl Iterator<Item = &'i Arc<str>>) -> Option<Raised> {
        let now = self.level.context.serving.clock.now();
        let delay = ids.filter_map(|id| self.state.delay(id, now)).min()?;
        let kind = RaisedKind::Unfinished(Some(delay));
        Some(Raised { kind, message: "sub-handlers are not finished yet".into(), trace: None })
    }
}
