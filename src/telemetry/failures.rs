//! The handlers of objects that have failed and not succeeded since: for metrics, and for Kubernetes events about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use super::{
    HandlerLabels,
    conditions::{Conditions, DueCondition, ShownFailure},
    labels::COMBINATIONS_MAX,
};
use crate::logic::{
    background::failures::FailureEvent,
    object::{ObjectRef, resource::Resource},
};

/// Maximum number of failures that are kept; further ones are only logged. About 10 MiB.
pub const FAILURES_MAX: usize = 20_000;

/// The failures of one operator. Clones share them.
#[derive(Clone, Default)]
pub struct OperatorFailures(Arc<Shared>);

#[derive(Default)]
struct Shared {
    table: Mutex<FailureTable>,
    /// The number of entries, so that a success costs nothing while nothing fails.
    count: AtomicUsize,
    is_new: Notify,
    has_condition: Notify,
}

#[derive(Default)]
struct FailureTable {
    /// By object and handler.
    entries: BTreeMap<FailureKey, FailureEntry>,
    /// The entries whose events are to be posted, by time.
    due: BTreeSet<(Instant, FailureKey)>,
    conditions: Conditions,
}

/// The uid of the object and the id of the handler.
type FailureKey = (Arc<str>, Arc<str>);

struct FailureEntry {
    event: FailureEvent,
    labels: HandlerLabels,
    is_change: bool,
    /// The first failure in a row.
    since: Instant,
    /// When to post the event; `None` if the last failure is posted.
    due: Option<Instant>,
    /// Not before this time, because the event was posted recently.
    rested: Option<Instant>,
    posts: u32,
}

/// A failed attempt of a handler.
#[derive(Clone, Debug)]
pub struct FailureReport {
    /// The object that was handled.
    pub about: Arc<ObjectRef>,
    /// The id of the handler.
    pub handler: Arc<str>,
    /// The labels of the handler in metrics.
    pub labels: HandlerLabels,
    /// The resource, if the object has a condition about failures.
    pub condition: Option<Arc<Resource>>,
    /// It handles changes: it fails no more once the change has ended.
    pub is_change: bool,
    /// The operator will not try again.
    pub gave_up: bool,
    /// The failure, in one sentence.
    pub text: String,
}

/// The numbers of objects that fail in one handler.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FailureCounts {
    /// Objects whose handler will be retried.
    pub retrying: i64,
    /// Objects whose handler has failed permanently.
    pub failed: i64,
    /// How long the oldest of those that are retried has been failing.
    pub oldest: Duration,
}

impl OperatorFailures {
    /// Records a failed attempt.
    pub fn note(&self, report: FailureReport, now: Timestamp) {
        let key = (Arc::from(report.about.uid.as_str()), report.handler);
        let at = Instant::now();
        let mut table = self.lock();
        let is_known = table.entries.contains_key(&key);
        if !is_known && table.entries.len() >= FAILURES_MAX {
            return;
        }
        if let Some(resource) = report.condition {
            table.conditions.failed(&report.about, resource, report.gave_up);
            self.0.has_condition.notify_one();
        }
        let entry = table.entries.entry(key.clone()).or_insert_with(|| FailureEntry {
            event: FailureEvent::new(report.about, &key.1, now),
            labels: report.labels,
            is_change: report.is_change,
            since: at,
            due: None,
            rested: None,
            posts: 0,
        });
        if entry.event.failed(report.text, report.gave_up, now) {
            // Another event: it is news.
            (entry.rested, entry.posts) = (None, 0);
        }
        let due = entry.rested.filter(|it| *it > at).unwrap_or(at);
        let before = entry.due;
        // An event that is due already keeps its turn.
        let due = before.map_or(due, |it| it.min(due));
        entry.due = Some(due);
        if let Some(before) = before {
            table.due.remove(&(before, key.clone()));
        }
        table.due.insert((due, key));
        self.count(&table);
        self.0.is_new.notify_one();
    }

    /// Records permanent failures that an earlier process has stored on an object. No event is posted about them.
    pub fn recall<'a>(
        &self,
        about: impl FnOnce() -> Arc<ObjectRef>,
        (uid, handlers): (&str, impl Iterator<Item = &'a str>),
        labels: impl Fn(&str) -> HandlerLabels,
        now: Timestamp,
    ) {
        let mut table = self.lock();
        let uid = Arc::<str>::from(uid);
        let keys = handlers.map(|it| (Arc::clone(&uid), Arc::<str>::from(it)));
        let mut new = keys.filter(|it| !table.entries.contains_key(it)).collect::<Vec<_>>();
        new.truncate(FAILURES_MAX.saturating_sub(table.entries.len()));
        if new.is_empty() {
            return;
        }
        let about = about();
        for key in new {
            let mut event = FailureEvent::new(Arc::clone(&about), &key.1, now);
            event.failed(String::new(), true, now);
            let (since, due, rested) = (Instant::now(), None, None);
            let labels = labels(&key.1);
            let entry =
                FailureEntry { event, labels, is_change: true, since, due, rested, posts: 0 };
            table.entries.insert(key, entry);
        }
        self.count(&table);
    }

    /// Adds an object whose condition shows a failure of an earlier process.
    pub fn adopt(&self, about: impl FnOnce() -> Arc<ObjectRef>, resource: &Arc<Resource>) {
        let mut table = self.lock();
        if table.conditions.len() < FAILURES_MAX {
            table.conditions.adopt(about(), Arc::clone(resource));
            self.count(&table);
        }
    }

    fn count(&self, table: &FailureTable) {
        let count = table.entries.len().saturating_add(table.conditions.len());
        self.0.count.store(count, Ordering::Relaxed);
    }

    /// Returns whether nothing fails.
    pub fn is_empty(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) == 0
    }

    /// Records that a handler has succeeded.
    pub fn succeeded(&self, uid: &str, handler: &str) {
        self.remove_of(uid, |id, _| id == handler);
        self.recovered(uid);
    }

    /// Records that a change of an object has ended: handlers that wait for a retry are not called any more.
    pub fn change_ended(&self, uid: &str) {
        self.remove_of(uid, |_, it| it.is_change && !it.event.gave_up());
        self.recovered(uid);
    }

    /// Removes an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.remove_of(uid, |_, _| true);
        self.forget_condition(uid);
    }

    /// Stops writing the condition of an object.
    pub fn forget_condition(&self, uid: &str) {
        if !self.is_empty() {
            let mut table = self.lock();
            table.conditions.forget(uid);
            self.count(&table);
        }
    }

    /// Schedules another attempt to write a condition.
    pub fn postpone_condition(&self, due: DueCondition, at: Instant) {
        let mut table = self.lock();
        let uid = due.about.uid.clone();
        table.conditions.adopt(due.about, due.resource);
        table.conditions.postpone(&uid, at);
        self.count(&table);
    }

    /// Schedules the condition of an object, if none of its handlers fails any more.
    fn recovered(&self, uid: &str) {
        if self.is_empty() {
            return;
        }
        let mut table = self.lock();
        if table.worst(uid).is_none() {
            table.conditions.recovered(uid);
            self.count(&table);
            self.0.has_condition.notify_one();
        }
    }

    /// Waits until a condition is due, and returns it.
    pub async fn next_condition(&self) -> DueCondition {
        loop {
            let now = Instant::now();
            let next = {
                let mut table = self.lock();
                let FailureTable { entries, conditions, .. } = &mut *table;
                let due = conditions.take(now, |uid| worst(entries, uid));
                self.count(&table);
                if let Some(due) = due {
                    return due;
                }
                table.conditions.next()
            };
            let changed = self.0.has_condition.notified();
            match next {
                Some(at) => drop(time::timeout_at(at, changed).await),
                None => changed.await,
            }
        }
    }

    /// Removes all handlers except these. Sub-handlers stay with their topmost parent.
    pub fn keep_handlers(&self, is_known: impl Fn(&str) -> bool) {
        let mut table = self.lock();
        let gone = table.entries.keys().filter(|(_, id)| !is_known(top(id)));
        let gone: Vec<_> = gone.cloned().collect();
        self.remove(&mut table, &gone);
        drop(table);
        for (uid, _) in gone {
            self.recovered(&uid);
        }
    }

    /// Returns the numbers by handler; those of sub-handlers count for the topmost parent.
    pub fn counts(&self, now: Instant) -> BTreeMap<HandlerLabels, FailureCounts> {
        let mut counts = BTreeMap::<_, FailureCounts>::new();
        for entry in self.lock().entries.values() {
            let is_over = counts.len() >= COMBINATIONS_MAX && !counts.contains_key(&entry.labels);
            let labels = if is_over { HandlerLabels::other() } else { entry.labels.clone() };
            let of = counts.entry(labels).or_default();
            if entry.event.gave_up() {
                of.failed += 1;
            } else {
                of.retrying += 1;
                of.oldest = of.oldest.max(now.saturating_duration_since(entry.since));
            }
        }
        counts
    }

    /// Waits until an event is due, and returns it with its handler.
    pub async fn next_event(&self) -> (Arc<str>, FailureEvent) {
        loop {
            let next = self.take_due(Instant::now());
            match next {
                Ok(event) => return event,
                Err(Some(later)) => {
                    tokio::select! {
                        biased; // due events come first
                        () = time::sleep_until(later) => {}
                        () = self.0.is_new.notified() => {}
                    }
                }
                Err(None) => self.0.is_new.notified().await,
            }
        }
    }

    /// Takes the next event that is due, or else returns the time of the next one.
    fn take_due(&self, now: Instant) -> Result<(Arc<str>, FailureEvent), Option<Instant>> {
        let mut table = self.lock();
        let (due, key) = table.due.first().cloned().ok_or(None)?;
        if due > now {
            return Err(Some(due));
        }
        table.due.pop_first();
        let entry = table.entries.get_mut(&key).ok_or(Some(now))?;
        entry.due = None;
        entry.rested = Some(now + FailureEvent::pause(entry.posts));
        entry.posts = entry.posts.saturating_add(1);
        let event = entry.event.clone();
        entry.event.is_posted = true;
        Ok((key.1, event))
    }

    /// Records that an event could not be posted, or does not exist any more: the next failure creates a new one.
    pub fn not_posted(&self, uid: &str, handler: &str) {
        let mut table = self.lock();
        let entry = table.entries.get_mut(&(Arc::from(uid), Arc::from(handler)));
        if let Some(entry) = entry {
            entry.event.is_posted = false;
        }
    }

    fn remove_of(&self, uid: &str, is_it: impl Fn(&str, &FailureEntry) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut table = self.lock();
        let first = (Arc::from(uid), Arc::from(""));
        let of_object = table.entries.range(first..).take_while(|((it, _), _)| &**it == uid);
        let gone = of_object.filter(|((_, id), entry)| is_it(id, entry)).map(|(key, _)| key);
        let gone: Vec<_> = gone.cloned().collect();
        self.remove(&mut table, &gone);
    }

    fn remove(&self, table: &mut FailureTable, keys: &[FailureKey]) {
        for key in keys {
            let due = table.entries.remove(key).and_then(|it| it.due);
            due.map(|it| table.due.remove(&(it, key.clone())));
        }
        self.count(table);
    }

    fn lock(&self) -> MutexGuard<'_, FailureTable> {
        self.0.table.lock()
    }
}

impl FailureTable {
    /// Returns the failure of an object that its condition shows.
    fn worst(&self, uid: &str) -> Option<ShownFailure> {
        worst(&self.entries, uid)
    }
}

/// Returns the failure of an object that its condition shows: the first permanent one, or else the first one.
fn worst(entries: &BTreeMap<FailureKey, FailureEntry>, uid: &str) -> Option<ShownFailure> {
    let first = (Arc::from(uid), Arc::from(""));
    let mut of_object = entries.range(first..).take_while(|((it, _), _)| &**it == uid);
    let first = of_object.clone().next();
    let gave_up = of_object.find(|(_, it)| it.event.gave_up());
    let (_, entry) = gave_up.or(first)?;
    Some(ShownFailure { gave_up: entry.event.gave_up(), text: entry.event.text().to_owned() })
}

/// Returns the id of the topmost parent: ids of sub-handlers begin with it.
fn top(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

impl fmt::Debug for OperatorFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failures", self.0.count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        FAILURES_MAX, FailureReport, HandlerLabels, Instant, OperatorFailures, Resource, top,
    };
    use crate::logic::object::ObjectRef;
    use jiff::Timestamp;
    use std::{sync::Arc, time::Duration};
    use tokio::time;

    fn report(uid: &str, handler: &str, gave_up: bool) -> FailureReport {
        FailureReport {
            about: Arc::new(ObjectRef { uid: uid.into(), ..ObjectRef::default() }),
            handler: handler.into(),
            labels: HandlerLabels { handler: top(handler).into(), ..HandlerLabels::default() },
            condition: None,
            is_change: true,
            gave_up,
            text: "no".into(),
        }
    }

    fn counts(failures: &OperatorFailures) -> Vec<(String, i64, i64, u64)> {
        let counts = failures.counts(Instant::now()).into_iter();
        counts.map(|(of, it)| (of.handler, it.retrying, it.failed, it.oldest.as_secs())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn objects_count_by_handler_until_they_succeed_or_are_gone() {
        let (failures, now) = (OperatorFailures::default(), Timestamp::UNIX_EPOCH);
        failures.note(report("a", "create_fn", false), now);
        time::advance(Duration::from_secs(9)).await;
        failures.note(report("a", "create_fn", false), now);
        failures.note(report("b", "create_fn/sub", true), now);
        failures.note(report("b", "other", false), now);
        let found =
            |name: &str, retrying, failed, oldest| (name.to_owned(), retrying, failed, oldest);
        assert_eq!(counts(&failures), [found("create_fn", 1, 1, 9), found("other", 1, 0, 0)]);
        failures.succeeded("a", "create_fn");
        failures.change_ended("b");
        assert_eq!(counts(&failures), [found("create_fn", 0, 1, 0)]);
        failures.keep_handlers(|it| it == "create_fn");
        assert_eq!(counts(&failures).len(), 1);
        failures.forget("b");
        assert_eq!(counts(&failures), []);
        assert_eq!(failures.take_due(Instant::now()).unwrap_err(), None, "no event is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_is_due_at_the_first_failure_when_given_up_and_when_none_is_left() {
        let (failures, now) = (OperatorFailures::default(), Timestamp::UNIX_EPOCH);
        let condition = Some(Arc::<Resource>::default());
        let failed = |handler, gave_up| {
            let condition = condition.clone();
            failures.note(FailureReport { condition, ..report("a", handler, gave_up) }, now);
        };
        let next = async || {
            let due = time::timeout(Duration::from_secs(1), failures.next_condition()).await;
            due.ok().map(|it| it.failure.map(|it| it.gave_up))
        };
        failed("x", false);
        assert_eq!(next().await, Some(Some(false)));
        failed("x", false);
        failed("y", false);
        assert_eq!(next().await, None, "it is no news");
        failed("y", true);
        assert_eq!(next().await, Some(Some(true)));
        failures.succeeded("a", "x");
        assert_eq!(next().await, None, "another handler has failed");
        failures.keep_handlers(|it| it == "x");
        assert_eq!(next().await, Some(None), "its handler was removed");
        assert!(failures.is_empty(), "the object is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_failures_is_limited() {
        let failures = OperatorFailures::default();
        for number in 0..=FAILURES_MAX {
            failures.note(report(&number.to_string(), "x", false), Timestamp::UNIX_EPOCH);
        }
        let max = i64::try_from(FAILURES_MAX).expect("small");
        assert_eq!(counts(&failures), [("x".to_owned(), max, 0, 0)]);
    }
}
