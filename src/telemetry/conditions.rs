//! The objects whose condition shows, or must show, that handlers fail.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::time::Instant;

use crate::logic::{
    background::failures::FailureEvent,
    object::{ObjectRef, resource::Resource},
};

/// The uid of an object.
pub(super) type Uid = Arc<str>;

/// The objects with conditions, and when to write which.
#[derive(Default)]
pub(super) struct Conditions {
    objects: BTreeMap<Uid, Shown>,
    due: BTreeSet<(Instant, Uid)>,
}

/// The condition of one object.
struct Shown {
    about: Arc<ObjectRef>,
    resource: Arc<Resource>,
    /// The last known content: whether a handler has failed permanently, or only fails; `None` if no handler fails.
    gave_up: Option<bool>,
    due: Option<Instant>,
    /// Not before this time, unless there is news.
    rested: Option<Instant>,
    writes: u32,
}

/// A condition to write.
#[derive(Clone, Debug)]
pub struct DueCondition {
    /// The object that has the condition.
    pub about: Arc<ObjectRef>,
    /// The resource of the object.
    pub resource: Arc<Resource>,
    /// The failure to show; `None` if no handler fails any more.
    pub failure: Option<ShownFailure>,
}

/// The failure that a condition shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFailure {
    /// The operator will not try again.
    pub gave_up: bool,
    /// The failure, in one sentence.
    pub text: String,
}

impl Conditions {
    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns when the next condition is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Adds an object whose condition shows a failure of an earlier process.
    pub(super) fn adopt(&mut self, about: Arc<ObjectRef>, resource: Arc<Resource>) {
        let uid = Arc::from(about.uid.as_str());
        let new = Shown::new(about, resource, Some(false));
        self.objects.entry(uid).or_insert(new);
    }

    /// Schedules the condition of an object whose handler has failed.
    pub(super) fn failed(
        &mut self,
        about: &Arc<ObjectRef>,
        resource: Arc<Resource>,
        gave_up: bool,
    ) {
        let uid = Arc::<str>::from(about.uid.as_str());
        let new = || Shown::new(Arc::clone(about), resource, None);
        let shown = self.objects.entry(Arc::clone(&uid)).or_insert_with(new);
        let now = Instant::now();
        // Another failure of an object that fails already changes nothing, unless the failure is permanent.
        let is_news = shown.gave_up.is_none_or(|it| !it && gave_up);
        let at = if is_news { now } else { shown.rested.map_or(now, |it| it.max(now)) };
        self.schedule(&uid, at);
    }

    /// Schedules the condition of an object no handler of which fails any more.
    pub(super) fn recovered(&mut self, uid: &str) {
        let Some(shown) = self.objects.get(uid) else { return };
        if shown.gave_up.is_none() {
            // It was never written.
            self.forget(uid);
        } else {
            self.schedule(&Arc::from(uid), Instant::now());
        }
    }

    /// Writes a condition later that could not be written.
    pub(super) fn postpone(&mut self, uid: &str, at: Instant) {
        if let Some(shown) = self.objects.get_mut(uid) {
            // Its content is not known.
            shown.gave_up = shown.gave_up.or(Some(false));
            self.schedule(&Arc::from(uid), at);
        }
    }

    /// Removes an object and its condition.
    pub(super) fn forget(&mut self, uid: &str) {
        if let Some((uid, shown)) = self.objects.remove_entry(uid) {
            shown.due.map(|it| self.due.remove(&(it, uid)));
        }
    }

    fn schedule(&mut self, uid: &Uid, at: Instant) {
        let Some(shown) = self.objects.get_mut(uid) else { return };
        let before = shown.due;
        let at = before.map_or(at, |it| it.min(at));
        shown.due = Some(at);
        before.map(|it| self.due.remove(&(it, Arc::clone(uid))));
        self.due.insert((at, Arc::clone(uid)));
    }

    /// Takes the next condition that is due; `failure` returns the worst failure of an object.
    pub(super) fn take(
        &mut self,
        now: Instant,
        failure: impl FnOnce(&str) -> Option<ShownFailure>,
    ) -> Option<DueCondition> {
        self.next().filter(|it| *it <= now)?;
        let (_, uid) = self.due.pop_first()?;
        let shown = self.objects.get_mut(&uid)?;
        shown.due = None;
        let failure = failure(&uid);
        let (about, resource) = (Arc::clone(&shown.about), Arc::clone(&shown.resource));
        shown.gave_up = failure.as_ref().map(|it| it.gave_up);
        shown.rested = Some(now + FailureEvent::pause(shown.writes));
        shown.writes = shown.writes.saturating_add(1);
        if failure.is_none() {
            self.objects.remove(&uid);
        }
        Some(DueCondition { about, resource, failure })
    }
}

impl Shown {
    fn new(about: Arc<ObjectRef>, resource: Arc<Resource>, gave_up: Option<bool>) -> Self {
        Shown { about, resource, gave_up, due: None, rested: None, writes: 0 }
    }
}
