//! One attempt of a handler with its sub-handlers.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

use super::{ids, level::Level};
use crate::logic::{
    filters::Answers,
    handler::Handler,
    lifecycle::Chooser,
    outcome::{Ended, Raised, RaisedKind},
    plan,
    state::State,
};
use crate::ports::{BoxFuture, Invocation, Orders};
use crate::reactor::error::CycleError;

/// The ids of all sub-handlers below a handler, of any level. They are noted before anything of them is stored, so that
/// nothing is left behind, however the handler ends.
#[derive(Default)]
pub(super) struct Descendants<'a> {
    own: Mutex<BTreeSet<String>>,
    above: Option<&'a Descendants<'a>>,
}

/// The sub-handlers of one attempt of a handler.
pub(super) struct Family<'a> {
    /// As they see the world.
    level: Level<'a>,
    /// The progress of those that this attempt came to.
    state: State,
    /// Those that this attempt was to run, whether or not they wanted the change.
    ordered: BTreeSet<Arc<str>>,
    /// Those that this attempt has called. None is called twice in it, however often the script asks.
    called: BTreeSet<Arc<str>>,
    /// The handler was edited, and these with it: they do not wait for their retries any longer.
    is_edited: bool,
}

impl<'a> Descendants<'a> {
    /// Of a handler that is itself below others.
    pub(super) fn below(above: &'a Descendants<'a>) -> Self {
        Descendants { own: Mutex::default(), above: Some(above) }
    }

    /// All of them so far.
    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
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

impl<'a> Family<'a> {
    /// Nothing is declared yet.
    pub(super) fn new(level: Level<'a>, is_edited: bool) -> Self {
        Family {
            level,
            state: State::default(),
            ordered: BTreeSet::new(),
            called: BTreeSet::new(),
            is_edited,
        }
    }

    /// Calls the handler, runs the sub-handlers it orders, and in the end those it has declared and not ordered.
    pub(super) async fn live(mut self, invocation: Arc<Invocation>, mut orders: Orders) -> Ended {
        let mut call = self.level.scene.serving.scripts.call(invocation);
        let ended = loop {
            tokio::select! {
                biased; // a handler that has ended orders nothing any more
                ended = &mut call => break ended,
                // Not interrupted by the end of the call: what sub-handlers did is to be recorded.
                Some(order) = orders.next() => {
                    let passed = order.passed.clone();
                    let handlers = passed.unwrap_or_else(|| orders.declared());
                    let chooser = order.chooser.clone();
                    order.answer(self.execute(&handlers, chooser.as_ref()).await);
                }
            }
        };
        let Ended::Returned(result) = ended else { return ended };
        let declared = orders.declared();
        let new: Vec<_> =
            declared.into_iter().filter(|it| !self.ordered.contains(&it.id)).collect();
        if let Err(raised) = self.execute(&new, None).await {
            return Ended::Raised(raised);
        }
        // A script may have caught the error of an execution: its sub-handlers are to be finished all the same.
        match self.unfinished(self.state.ids()) {
            Some(raised) => Ended::Raised(raised),
            None => Ended::Returned(result),
        }
    }

    /// Runs those of the sub-handlers that are due. The error is what the script is to raise.
    fn execute<'s>(
        &'s mut self,
        handlers: &'s [Arc<Handler>],
        chooser: Option<&'s Chooser>,
    ) -> BoxFuture<'s, Result<(), Raised>> {
        // Boxed, since sub-handlers can have sub-handlers.
        Box::pin(async move {
            if handlers.is_empty() {
                return Ok(());
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
        let serving = level.scene.serving;
        let storage = &serving.settings.persistence.progress_storage;
        let body = level.scene.object.body();
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
        level.scene.attempts.keep_children(&self.state);
        Ok(())
    }

    /// What to raise if some of these are not finished. Those that do not want the change are not waited for.
    fn unfinished<'i>(&self, ids: impl Iterator<Item = &'i Arc<str>>) -> Option<Raised> {
        let now = self.level.scene.serving.clock.now();
        let delay = ids.filter_map(|id| self.state.delay(id, now)).min()?;
        let kind = RaisedKind::Unfinished(Some(delay));
        Some(Raised { kind, message: "sub-handlers are not finished yet".into(), trace: None })
    }
}
