//! Runs the index handlers of one object for one event.
//!
//! Before: `reactor/object/cycle.rs`. After: `logic/background/indexing`, which interprets the results.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future;
use jiff::Timestamp;

use crate::call::{Cause, Logger, LoggerKind, Memo, ObjectCause};
use crate::features::reconcile;
use crate::handling::{
    asking::{FilterCaller, FilterRetries},
    run::{HandlerRunner, Try},
    time_slice::TimeSlice,
};
use crate::logic::{
    background::indexing::{Contribution, IndexFailures, Owner},
    change::{
        filters::{Answers, Subject},
        selection::{self, Selection},
    },
    handlers::{
        function::ScriptId,
        handler::Handler,
        outcome::{LogLevel, Outcome},
    },
};
use crate::sorted::CollectSorted as _;

/// The inputs for indexing one object.
pub struct Indexer<'a> {
    /// Calls handlers; its services include the indexes.
    pub runner: HandlerRunner<'a>,
    /// The index handlers of the resource.
    pub handlers: &'a [Arc<Handler>],
    /// The indexes to update; `None` updates all.
    pub only: Option<&'a BTreeSet<Arc<str>>>,
    /// The object. Changes that handlers make to its patch are never sent.
    pub cause: ObjectCause,
    /// The memo of the object.
    pub memo: &'a Memo,
    /// The logger for lines about the object; lines about its indexing are fewer.
    pub logger: &'a Logger,
}

/// An ended call of an index handler. Its result is in the index.
struct Called {
    handler: Arc<Handler>,
    /// When the first attempt was due.
    started: Timestamp,
    outcome: Outcome,
}

impl Indexer<'_> {
    /// Calls the matching handlers that are due, and updates the indexes: each as soon as its handler has returned, because the results of
    /// many handlers for many objects can be large together.
    ///
    /// Handlers of different scripts run concurrently. The values of the object are removed from each index whose handler was not called,
    /// for whatever reason; but they stay while the filter of a handler has no result.
    pub async fn run(self, failures: &mut IndexFailures, retries: FilterRetries<'_>) {
        let Selection { selected, undecided } = self.sort(retries).await;
        let keep = |it: &Arc<Handler>| (Arc::clone(&it.id), Contribution::Keep);
        let mut others = undecided.iter().map(keep).collect_map();
        let now = self.runner.clock.now();
        let (resource, object) = (&self.cause.resource, &self.cause.object);
        let services = self.runner.services;
        let mut selected = selected;
        selected.retain(|it| match reconcile::own_contribution(services, it, (object, resource)) {
            Some(own) => others.insert(Arc::clone(&it.id), own).is_some_and(|_| false),
            None => true,
        });
        let due = selected.into_iter().filter(|it| failures.is_due(&it.id, now));
        let due = due.map(|it| {
            let effort = failures.effort(&it.id).unwrap_or((0, now));
            (it, effort)
        });
        let owner = Owner::of(object.header());
        let calls = by_script(due).into_values().map(|all| async {
            let (mut ended, mut slice) = (Vec::new(), TimeSlice::start());
            for (handler, effort) in all {
                slice.yield_if_over().await;
                ended.push(self.call((handler, effort), &owner, &mut slice).await);
            }
            ended
        });
        let mut is_applied = BTreeSet::new();
        for Called { handler, started, outcome } in
            future::join_all(calls).await.into_iter().flatten()
        {
            failures.note(&handler.id, &outcome, started, self.runner.clock.now());
            is_applied.insert(Arc::clone(&handler.id));
        }
        let wanted = |id: &Arc<str>| self.only.is_none_or(|it| it.contains(id));
        let mut slice = TimeSlice::start();
        for index in services.indexes.all() {
            if wanted(index.id()) && !is_applied.contains(index.id()) {
                let contribution = others.remove(index.id()).unwrap_or(Contribution::Remove);
                let related =
                    self.handlers.iter().find(|it| it.relation.is_some() && it.id == *index.id());
                match related {
                    Some(handler) => {
                        reconcile::apply(services, handler, &owner, contribution).await;
                    }
                    None => index.apply(&owner, contribution).await,
                }
                slice.yield_if_over().await;
            }
        }
    }

    /// Updates the index of a handler with what it has returned, which this takes from the outcome.
    async fn apply(&self, handler: &Handler, outcome: &mut Outcome, owner: &Owner) {
        if handler.relation.is_none() {
            if let Some(index) = self.runner.services.indexes.get(&handler.id) {
                index.apply(owner, Contribution::take(outcome)).await;
            }
            return;
        }
        let mapped = reconcile::mapped_contribution(outcome, &self.cause.object);
        let contribution = mapped.unwrap_or_else(|problem| {
            self.logger.log(LogLevel::Error, &format!("{handler}: {problem}"));
            Contribution::Remove
        });
        reconcile::apply(self.runner.services, handler, owner, contribution).await;
    }

    async fn sort(&self, retries: FilterRetries<'_>) -> Selection {
        let logger = self.logger.with_kind(LoggerKind::Terse);
        let filter_caller = FilterCaller {
            scripts: self.runner.scripts,
            cause: &self.cause,
            memo: self.memo,
            logger: &logger,
            services: self.runner.services,
        };
        let subject = Subject { object: &self.cause.object, change: None };
        let mut answers = Answers::default();
        let wanted = |it: &&Arc<Handler>| self.only.is_none_or(|only| only.contains(&it.id));
        let handlers = self.handlers.iter().filter(wanted).cloned().collect::<Vec<_>>();
        let decision = |known: &Answers| selection::watching(&handlers, &subject, known);
        filter_caller.decide_without_failures(&mut answers, retries, decision).await
    }

    /// Calls a handler and updates its index.
    async fn call(
        &self,
        (handler, (retries, started)): (Arc<Handler>, (u64, Timestamp)),
        owner: &Owner,
        slice: &mut TimeSlice,
    ) -> Called {
        let attempt = Try {
            handler: Arc::clone(&handler),
            retries,
            started,
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.with_kind(LoggerKind::Terse),
        };
        let (mut outcome, _rest) = self.runner.run_briefly(attempt).await;
        slice.yield_if_over().await;
        self.apply(&handler, &mut outcome, owner).await;
        Called { handler, started, outcome }
    }
}

/// Groups the handlers by script, in order.
fn by_script<T>(
    handlers: impl Iterator<Item = (Arc<Handler>, T)>,
) -> BTreeMap<ScriptId, Vec<(Arc<Handler>, T)>> {
    let mut scripts = BTreeMap::<_, Vec<_>>::new();
    for (handler, it) in handlers {
        scripts.entry(handler.function.script).or_default().push((handler, it));
    }
    scripts
}
