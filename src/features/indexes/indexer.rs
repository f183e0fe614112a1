//! The index handlers of one object and one event.
//!
//! Before: `reactor/cycle.rs`. After: `logic/indexing`, which says what the results mean.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::handling::{
    asking::{Asker, FilterError},
    run::{Runner, Try},
};
use crate::logic::{
    filters::{Answers, Subject},
    handler::Handler,
    indexing::{Contribution, Failures, Owner},
    selection,
};
use crate::ports::{Cause, Logger, LoggerKind, Memo, ObjectCause};

/// What indexes an object.
pub struct Indexer<'a> {
    /// Calls handlers; the tables are among its facilities.
    pub runner: Runner<'a>,
    /// The index handlers of the resource.
    pub handlers: &'a [Arc<Handler>],
    /// The indexes that are to be brought up to date; all if it is not said.
    pub only: Option<&'a BTreeSet<Arc<str>>>,
    /// The object. What handlers put into its patch is never sent.
    pub cause: ObjectCause,
    /// The memo of the object.
    pub memo: &'a Memo,
    /// Where the lines about the object go; those about its indexing are fewer.
    pub logger: &'a Logger,
}

impl Indexer<'_> {
    /// Calls the handlers that want the object as it is now, and are not to wait; then changes the tables at once.
    ///
    /// The values of the object go from all of these tables whose handlers were not called, for whatever reason.
    ///
    /// # Errors
    /// When a filter raised. Nothing has changed then.
    pub async fn run(self, failures: &mut Failures) -> Result<(), FilterError> {
        let mut contributions = BTreeMap::new();
        for handler in self.select().await? {
            if failures.is_due(&handler.id, self.runner.clock.now()) {
                let contribution = self.call(&handler, failures).await;
                contributions.insert(Arc::clone(&handler.id), contribution);
            }
        }
        let owner = Owner::of(self.cause.object.header());
        let wanted = |id: &Arc<str>| self.only.is_none_or(|it| it.contains(id));
        for index in self.runner.facilities.indexes.all().filter(|it| wanted(it.id())) {
            let contribution = contributions.remove(index.id());
            index.apply(&owner, contribution.unwrap_or(Contribution::Remove));
        }
        Ok(())
    }

    async fn select(&self) -> Result<selection::Selected, FilterError> {
        let logger = self.logger.with_kind(LoggerKind::Terse);
        let asker = Asker {
            scripts: self.runner.scripts,
            cause: &self.cause,
            memo: self.memo,
            logger: &logger,
            facilities: self.runner.facilities,
        };
        let subject = Subject { object: &self.cause.object, change: None };
        let mut answers = Answers::default();
        let wanted = |it: &&Arc<Handler>| self.only.is_none_or(|only| only.contains(&it.id));
        let handlers = self.handlers.iter().filter(wanted).cloned().collect::<Vec<_>>();
        asker.decide(&mut answers, |known| selection::watching(&handlers, &subject, known)).await
    }

    async fn call(&self, handler: &Arc<Handler>, failures: &mut Failures) -> Contribution {
        let now = self.runner.clock.now();
        let (retries, started) = failures.effort(&handler.id).unwrap_or((0, now));
        let attempt = Try {
            handler: Arc::clone(handler),
            retries,
            started,
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.with_kind(LoggerKind::Terse),
        };
        let outcome = self.runner.run(attempt).await;
        failures.note(&handler.id, &outcome, started, self.runner.clock.now());
        Contribution::of(outcome)
    }
}
