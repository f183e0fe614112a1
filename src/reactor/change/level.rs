//! Handlers of one level, side by side: those of a change, or the sub-handlers of one handler.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Scene,
    family::{Descendants, Family},
    kwargs,
};
use crate::handling::{asking::FilterError, run::Try};
use crate::logic::{
    cause::Change,
    filters::{Answers, Subject},
    handler::Handler,
    lifecycle::{self, Chooser},
    outcome::{self, Effort, Ended, Outcome, Raised, RaisedKind},
    selection,
    state::{self, State},
};
use crate::ports::{Cause, ChangeCause, Children, ObjectCause, ObjectDetail};
use crate::reactor::error::CycleError;

/// Handlers that see the same change and run one after another.
#[derive(Clone, Copy)]
pub(super) struct Level<'a> {
    /// The object and all around it.
    pub(super) scene: Scene<'a>,
    /// The change as this level sees it.
    pub(super) change: &'a Change,
    /// Which of them run now.
    pub(super) chooser: &'a Chooser,
    /// Where the ids of their sub-handlers are noted.
    pub(super) descendants: &'a Descendants<'a>,
    /// The ids of those that were edited while they waited for their retry.
    pub(super) edited: &'a BTreeSet<Arc<str>>,
}

impl Level<'_> {
    /// Those of the handlers that want the change.
    pub(super) async fn select(
        &self,
        handlers: &[Arc<Handler>],
        answers: &mut Answers,
    ) -> Result<Vec<Arc<Handler>>, FilterError> {
        let Scene { serving, logger, object, memo, .. } = self.scene;
        let cause = self.cause(kwargs(self.change, None));
        let asker = serving.asker(&cause, memo, logger);
        let subject = Subject { object, change: Some(self.change) };
        asker.decide(answers, |known| selection::changing(handlers, &subject, known)).await
    }

    /// Runs as many of those that are due as the lifecycle wants, notes how they ended, and delivers their results.
    /// Gives those that were run.
    pub(super) async fn run(
        &self,
        due: &[Arc<Handler>],
        state: &mut State,
    ) -> Result<Vec<Arc<Handler>>, CycleError> {
        let picked = self.pick(due, state).await?;
        let Scene { serving, attempts, patch, .. } = self.scene;
        for handler in &picked {
            let now = serving.clock.now();
            let number = attempts.begin(handler, state.record(&handler.id), now, patch);
            let mut outcome = self.call(handler, state).await;
            if let Some(result) = outcome.result.take()
                && let Err(error) = state::deliver(&mut patch.lock().merge, &handler.id, &result)
            {
                outcome = self.undeliverable(handler, state, &error);
            }
            attempts.end(number, patch);
            state.apply(&handler.id, &outcome, serving.clock.now());
        }
        Ok(picked)
    }

    /// The handler has failed: its result cannot be stored beside what it wants to change.
    fn undeliverable(
        &self,
        handler: &Handler,
        state: &State,
        error: &state::Undeliverable,
    ) -> Outcome {
        let Scene { serving, logger, .. } = self.scene;
        let now = serving.clock.now();
        let record = state.record(&handler.id);
        let effort = record.map_or_else(Effort::default, |it| Effort {
            retries: it.retries,
            runtime: it.runtime(now),
        });
        let kind = RaisedKind::Arbitrary("HostError".into());
        let raised = Raised { kind, message: error.to_string(), trace: None };
        let backoff = serving.settings.execution.default_backoff;
        let (outcome, line) = outcome::after(handler, Ended::Raised(raised), effort, backoff);
        logger.line(&line, None);
        outcome
    }

    async fn pick(
        &self,
        due: &[Arc<Handler>],
        state: &State,
    ) -> Result<Vec<Arc<Handler>>, CycleError> {
        let function = match self.chooser {
            Chooser::BuiltIn(lifecycle) => {
                let retries = |id: &str| state.record(id).map_or(0, |it| it.retries);
                return Ok(lifecycle.pick(due, retries, &mut |below| fastrand::usize(..below)));
            }
            Chooser::Custom(function) => function.clone(),
        };
        let Some(first) = due.first() else { return Ok(Vec::new()) };
        let Scene { serving, logger, memo, .. } = self.scene;
        let cause = self.cause(kwargs(self.change, None));
        let invocation = serving.asker(&cause, memo, logger).invocation(first);
        let candidates = due.iter().map(|it| lifecycle::candidate(it, state.record(&it.id)));
        let chosen =
            serving.scripts.compute(function, Some(candidates.collect()), invocation).await;
        let failed = |raised| CycleError::Lifecycle { lifecycle: self.chooser.to_string(), raised };
        lifecycle::chosen(&chosen.map_err(failed)?, due).map_err(|message| {
            let kind = RaisedKind::Arbitrary("Error".into());
            failed(Raised { kind, message, trace: None })
        })
    }

    async fn call(&self, handler: &Arc<Handler>, state: &State) -> Outcome {
        let Scene { serving, logger, memo, .. } = self.scene;
        let record = state.record(&handler.id);
        let field = handler.filters.field.as_ref();
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: record.map_or(0, |it| it.retries),
            started: record.map_or_else(|| serving.clock.now(), |it| it.started),
            cause: Cause::Object(self.cause(kwargs(self.change, field))),
            memo: memo.clone(),
            logger: logger.clone(),
        };
        let descendants = Descendants::below(self.descendants);
        let change = self.change.below(field);
        let (children, orders) = Children::of(Arc::clone(handler));
        let level = Level { change: &change, descendants: &descendants, ..*self };
        let family = Family::new(level, self.edited.contains(&handler.id));
        let runner = serving.runner();
        let outcome = runner.run_with(attempt, Some(children), |it| family.live(it, orders)).await;
        Outcome { subrefs: descendants.ids(), ..outcome }
    }

    pub(super) fn cause(&self, change: ChangeCause) -> ObjectCause {
        ObjectCause {
            resource: Arc::clone(&self.scene.serving.resource),
            object: Arc::clone(self.scene.object),
            patch: Arc::clone(self.scene.patch),
            detail: ObjectDetail::Change(change),
        }
    }
}
