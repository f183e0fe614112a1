//! The handlers of one level: those of a change, or the sub-handlers of one handler.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    ChangeContext, kwargs,
    subhandlers::{Descendants, SubhandlerRun},
};
use crate::call::{Cause, ChangeCause, Children, ObjectCause, ObjectDetail};
use crate::handling::{
    asking::{ANSWER_MAX, FilterError, within},
    run::Try,
    time_slice::TimeSlice,
};
use crate::logic::{
    change::{
        cause::Change,
        filters::{Answers, Subject},
        selection,
        state::{self, State},
    },
    handlers::{
        function::Function,
        handler::Handler,
        lifecycle::{self, Chooser, Lifecycle},
        outcome::{Outcome, Raised, RaisedKind},
    },
};
use crate::settings::FieldPath;

/// Handlers that see the same change and run one after another.
#[derive(Clone, Copy)]
pub(super) struct Level<'a> {
    /// The object and its context.
    pub(super) context: ChangeContext<'a>,
    /// The change as this level sees it.
    pub(super) change: &'a Change,
    /// Chooses which of the handlers run now.
    pub(super) chooser: &'a Chooser,
    /// Collects the ids of their sub-handlers.
    pub(super) descendants: &'a Descendants<'a>,
    /// The ids of handlers that were edited while they waited for their retry.
    pub(super) edited: &'a BTreeSet<Arc<str>>,
}

/// The change as the handlers of one field see it. The values can be large, and many handlers can have the same field.
struct Seen {
    field: Option<FieldPath>,
    /// For their sub-handlers.
    change: Change,
    cause: ChangeCause,
}

impl Level<'_> {
    /// Returns the handlers whose filters match the change.
    pub(super) async fn select(
        &self,
        handlers: &[Arc<Handler>],
        answers: &mut Answers,
    ) -> Result<Vec<Arc<Handler>>, FilterError> {
        let ChangeContext { serving, logger, object, memo, .. } = self.context;
        let cause = self.cause(kwargs(self.change));
        let filter_caller = serving.filter_caller(&cause, memo, logger);
        let subject = Subject { object, change: Some(self.change) };
        filter_caller.decide(answers, |known| selection::changing(handlers, &subject, known)).await
    }

    /// Runs as many of the due handlers as the lifecycle chooses, records their outcomes and delivers their results. Returns the
    /// handlers that ran.
    pub(super) async fn run(&self, due: &[Arc<Handler>], state: &mut State) -> Vec<Arc<Handler>> {
        let picked = match self.chooser {
            Chooser::BuiltIn(lifecycle) => pick(*lifecycle, due, state),
            Chooser::Custom(function) => match self.ask(function, due, state).await {
                Ok(picked) => picked,
                Err(raised) => return self.run_without(function, &raised, due, state).await,
            },
        };
        self.call_all(&picked, state).await;
        picked
    }

    /// Handles a failed lifecycle function, which counts as a failed attempt of the handlers in its script. All other handlers run
    /// with the default lifecycle.
    async fn run_without(
        &self,
        function: &Function,
        raised: &Raised,
        due: &[Arc<Handler>],
        state: &mut State,
    ) -> Vec<Arc<Handler>> {
        let is_own = |it: &&Arc<Handler>| it.function.script == function.script;
        let (mut own, others): (Vec<_>, Vec<_>) = due.iter().partition(is_own);
        let runner = self.context.serving.runner();
        let mut slice = TimeSlice::start();
        for handler in &own {
            slice.yield_if_over().await;
            let backoff = handler.limits.backoff.unwrap_or(runner.settings.default_backoff);
            let kind = RaisedKind::Temporary(Some(backoff));
            let message = format!("the lifecycle {} failed: {}", self.chooser, raised.message);
            let raised = Raised { kind, message, trace: raised.trace.clone() };
            let attempt = self.attempt(handler, kwargs(self.change), state);
            let outcome = runner.refuse(&attempt, raised);
            state.apply(&handler.id, &outcome, self.context.serving.clock.now());
        }
        let others = others.into_iter().cloned().collect::<Vec<_>>();
        let picked = pick(Lifecycle::default(), &others, state);
        self.call_all(&picked, state).await;
        own.extend(&picked);
        own.into_iter().cloned().collect()
    }

    async fn call_all(&self, picked: &[Arc<Handler>], state: &mut State) {
        let ChangeContext { serving, attempts, patch, .. } = self.context;
        let (mut slice, mut last) = (TimeSlice::start(), None);
        for handler in picked {
            slice.yield_if_over().await;
            let now = serving.clock.now();
            let number = attempts.begin(handler, state.record(&handler.id), now, patch);
            let seen = self.seen(handler.filters.field.as_ref(), &mut last);
            let mut outcome = self.call(handler, seen, state).await;
            slice.yield_if_over().await;
            if let Some(result) = outcome.result.take()
                && let Err(error) = state::deliver(&mut patch.lock().merge, &handler.id, result)
            {
                // The result cannot be stored next to the changes that the handler requests.
                let raised = Raised::of_host(error.to_string());
                let attempt = self.attempt(handler, seen.cause.clone(), state);
                let refused = serving.runner().refuse(&attempt, raised);
                outcome = Outcome { subrefs: outcome.subrefs, ..refused };
            }
            attempts.end(number, patch);
            if outcome.error.is_some() && !outcome.last {
                serving.numbers.retried();
            }
            state.apply(&handler.id, &outcome, serving.clock.now());
        }
    }

    /// Calls a lifecycle function. A function that has exceeded its time limit is not called again for a while.
    async fn ask(
        &self,
        function: &Function,
        due: &[Arc<Handler>],
        state: &State,
    ) -> Result<Vec<Arc<Handler>>, Raised> {
        let Some(first) = due.first() else { return Ok(Vec::new()) };
        let ChangeContext { serving, logger, memo, .. } = self.context;
        let failed = |message: String| {
            let kind = RaisedKind::Arbitrary("Error".into());
            Raised { kind, message, trace: None }
        };
        if serving.lifecycle_cooldown.is_on() {
            return Err(failed(
                "it has exceeded its time limit, and is not called for a while".into(),
            ));
        }
        let cause = self.cause(kwargs(self.change));
        let invocation = serving.filter_caller(&cause, memo, logger).invocation(first);
        let candidates = due.iter().map(|it| lifecycle::candidate(it, state.record(&it.id)));
        let chosen =
            serving.scripts.compute(function.clone(), Some(candidates.collect()), invocation);
        let chosen =
            serving.lifecycle_cooldown.after(ANSWER_MAX, within(ANSWER_MAX, chosen)).await?;
        lifecycle::chosen(&chosen, due).map_err(failed)
    }

    /// Returns what a handler of this field sees: the same as the last one, if that has the same field.
    fn seen<'s>(&self, field: Option<&FieldPath>, last: &'s mut Option<Seen>) -> &'s Seen {
        last.take_if(|it| it.field.as_ref() != field);
        last.get_or_insert_with(|| {
            let change = self.change.narrowed(field);
            Seen { field: field.cloned(), cause: kwargs(&change), change }
        })
    }

    fn attempt(&self, handler: &Arc<Handler>, change: ChangeCause, state: &State) -> Try {
        let ChangeContext { serving, logger, memo, .. } = self.context;
        let record = state.record(&handler.id);
        Try {
            handler: Arc::clone(handler),
            retries: record.map_or(0, |it| it.retries),
            started: record.map_or_else(|| serving.clock.now(), |it| it.started),
            cause: Cause::Object(self.cause(change)),
            memo: memo.clone(),
            logger: logger.clone(),
        }
    }

    async fn call(&self, handler: &Arc<Handler>, seen: &Seen, state: &State) -> Outcome {
        let attempt = self.attempt(handler, seen.cause.clone(), state);
        let descendants = Descendants::below(self.descendants);
        let (children, orders) = Children::of(Arc::clone(handler));
        let level = Level { change: &seen.change, descendants: &descendants, ..*self };
        let subhandlers = SubhandlerRun::new(level, self.edited.contains(&handler.id));
        let runner = self.context.serving.runner();
        let outcome =
            runner.run_with(attempt, Some(children), |it| subhandlers.drive(it, orders)).await;
        Outcome { subrefs: descendants.ids(), ..outcome }
    }

    pub(super) fn cause(&self, change: ChangeCause) -> ObjectCause {
        ObjectCause {
            resource: Arc::clone(&self.context.serving.resource),
            object: Arc::clone(self.context.object),
            patch: Arc::clone(self.context.patch),
            detail: ObjectDetail::Change(change),
        }
    }
}

fn pick(lifecycle: Lifecycle, due: &[Arc<Handler>], state: &State) -> Vec<Arc<Handler>> {
    let retries = |id: &str| state.record(id).map_or(0, |it| it.retries);
    lifecycle.pick(due, retries, &mut |below| fastrand::usize(..below))
}
