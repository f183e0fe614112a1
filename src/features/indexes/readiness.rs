//! Tracks whether the indexes are complete, and which handlers wait for that.
//!
//! A handler is called only after all objects that existed at the start are in the indexes that its script may use: the listings of
//! the indexed resources must be complete, and each listed object must have passed its index handlers once. After that nothing
//! waits again, except for objects of resources and namespaces that are found later: they wait for their own listing. A script that
//! uses no index never waits.
//!
//! A new generation of handlers may add new indexes, and others that must be filled again. The old entries of the latter stay until
//! they are replaced, so nothing waits for these. For the new indexes, only streams with new handlers wait, and only for a limited
//! time: see [`Gate`]. All others continue.
//!
//! The outcome of indexing does not matter: an object whose handlers fail holds nothing up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::logic::{background::indexing::Owner, generation::Version, object::Header};

/// The ids of indexes.
pub type Ids = BTreeSet<Arc<str>>;

/// The readiness of all indexes of one operator. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    /// Whether all streams of the first discovery are known.
    is_started: bool,
    /// Whether all indexes were complete once.
    is_reached: bool,
    /// Whether the readiness is being reported.
    is_reported: bool,
    /// The streams whose objects are not indexed yet.
    pending: BTreeMap<u64, Pending>,
    /// The number of these streams that all handlers wait for.
    blocking: usize,
    last: u64,
}

/// A stream whose objects are not indexed yet.
#[derive(Debug)]
struct Pending {
    name: String,
    /// The indexes that the stream fills.
    indexes: Ids,
    waiting: StreamWaiters,
    /// The generation that has added an index that is new for the stream, if any.
    version: Option<Version>,
    is_listed: bool,
    /// The objects to wait for.
    objects: BTreeSet<Owner>,
    /// The objects that were indexed before the listing was complete. The listing may still return them; they must not be waited
    /// for again, because their workers may be waiting here themselves by then.
    indexed: BTreeSet<Owner>,
}

/// The handlers that wait for the objects of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamWaiters {
    /// All handlers: the stream existed at the start.
    All,
    /// The handlers of these objects: the stream was found later.
    Own,
    /// Only handlers with a [`Gate`]: the objects are indexed again.
    Nobody,
}

/// The indexes that handlers may use; `None` means all.
type Users<'a> = Option<&'a Ids>;

/// A gate that holds the handlers of a new generation back until its new indexes are complete, but only up to a moment, so that the service
/// continues in any case.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The generation whose handlers are held back.
    pub version: Version,
    /// The end of the wait; `None` means no limit, if nothing is served at present anyway.
    pub until: Option<Instant>,
}

/// The part of one stream in the readiness: what it waits for, and the objects that others wait for.
#[derive(Debug)]
pub struct ReadinessHold {
    readiness: Readiness,
    /// The entry of a stream that is indexed.
    own: Option<u64>,
    name: String,
}

impl Readiness {
    /// Creates a readiness with nothing complete; without index handlers, everything is complete.
    pub fn new(has_indexes: bool) -> Self {
        let state = State { is_reached: !has_indexes, ..State::default() };
        Readiness(Arc::new(watch::Sender::new(state)))
    }

    /// Notes that all streams of the first discovery have their holds. Before that, no wait ends.
    pub fn started(&self) {
        self.change(|state| state.is_started = true);
    }

    /// Returns whether nothing reports the readiness yet; the caller must do so from now on.
    pub fn begin_reporting(&self) -> bool {
        let mut was_reported = false;
        self.change(|state| was_reported = std::mem::replace(&mut state.is_reported, true));
        !was_reported
    }

    /// Returns the hold of a stream that is not indexed: it only waits.
    pub fn unindexed(&self, name: String) -> ReadinessHold {
        ReadinessHold { readiness: self.clone(), own: None, name }
    }

    /// Returns the hold of a stream that fills these indexes. If any of them is new, `version` is the generation that added it.
    pub fn indexed(&self, name: String, indexes: Ids, version: Option<Version>) -> ReadinessHold {
        let waiting = if self.is_reached() { StreamWaiters::Own } else { StreamWaiters::All };
        self.hold((name, indexes), waiting, version)
    }

    fn hold(
        &self,
        (name, indexes): (String, Ids),
        waiting: StreamWaiters,
        version: Option<Version>,
    ) -> ReadinessHold {
        let mut own = 0;
        self.change(|state| {
            state.last += 1;
            own = state.last;
            state.blocking += usize::from(waiting == StreamWaiters::All);
            let pending = Pending {
                name: name.clone(),
                indexes,
                waiting,
                version,
                is_listed: false,
                objects: BTreeSet::new(),
                indexed: BTreeSet::new(),
            };
            state.pending.insert(own, pending);
        });
        ReadinessHold { readiness: self.clone(), own: Some(own), name }
    }

    /// Returns whether all indexes were complete once.
    pub fn is_reached(&self) -> bool {
        self.0.borrow().is_reached
    }

    /// Returns the missing parts, one string per stream.
    pub fn missing(&self) -> Vec<String> {
        self.0.borrow().pending.values().map(Pending::to_text).collect()
    }

    /// Returns whether every stream has been indexed completely.
    pub fn is_complete(&self) -> bool {
        self.0.borrow().pending.is_empty()
    }

    /// Returns whether any stream that fills these indexes has not been indexed completely.
    pub fn lacks(&self, indexes: &Ids) -> bool {
        self.0.borrow().pending.values().any(|it| it.is_used_by(Some(indexes)))
    }

    /// Waits until nothing is missing.
    pub async fn settled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender exists as long as `self`: there is no error to handle.
        drop(receiver.wait_for(|state| state.pending.is_empty()).await);
    }

    fn waiting_for(&self, own: u64) -> Option<StreamWaiters> {
        self.0.borrow().pending.get(&own).map(|it| it.waiting)
    }

    /// Waits for the next change of the readiness.
    pub fn changes(&self) -> impl Future<Output = ()> + use<> {
        let mut receiver = self.0.subscribe();
        // The sender exists as long as the operator; without it, there is nothing to report.
        async move { drop(receiver.changed().await) }
    }

    /// Changes the state. Waiting tasks are woken only if the change may help them: there may be many thousands.
    fn change(&self, change: impl FnOnce(&mut State)) {
        self.0.send_if_modified(|state| {
            let before = (state.is_started, state.pending.len());
            change(state);
            state.is_reached |= state.is_started && state.blocking == 0;
            before != (state.is_started, state.pending.len())
        });
    }
}

impl State {
    fn remove(&mut self, own: u64) {
        let removed = self.pending.remove(&own);
        self.blocking -= usize::from(removed.is_some_and(|it| it.waiting == StreamWaiters::All));
    }

    /// Returns whether handlers that may use these indexes may be called; `None` means all indexes.
    fn is_open_to(&self, own: Option<u64>, users: Users<'_>) -> bool {
        if users.is_some_and(Ids::is_empty) {
            return true;
        }
        let is_used = |it: &Pending| it.is_used_by(users);
        let own = own.and_then(|it| self.pending.get(&it));
        let is_missing = |it: &Pending| it.waiting == StreamWaiters::All && is_used(it);
        let is_reached =
            self.is_reached || (self.is_started && !self.pending.values().any(is_missing));
        is_reached && own.is_none_or(|it| it.waiting == StreamWaiters::Nobody || !is_used(it))
    }

    fn has_brought_all(&self, version: Version, users: Users<'_>) -> bool {
        !self.pending.values().any(|it| it.version == Some(version) && it.is_used_by(users))
    }
}

impl Pending {
    fn is_used_by(&self, users: Users<'_>) -> bool {
        users.is_none_or(|it| !it.is_disjoint(&self.indexes))
    }

    fn to_text(&self) -> String {
        let again = if self.waiting == StreamWaiters::Nobody { " again" } else { "" };
        match (self.is_listed, self.objects.len()) {
            (false, _) => format!("{} is not listed{again} yet", self.name),
            (true, 1) => format!("1 object of {} is not indexed{again} yet", self.name),
            (true, count) => format!("{count} objects of {} are not indexed{again} yet", self.name),
        }
    }
}

impl ReadinessHold {
    /// Notes an object of the stream. Before the end of the listing, it will be waited for.
    pub fn seen(&self, header: &Header) {
        self.change(|own| {
            let owner = Owner::of(header);
            if !own.is_listed && !own.indexed.contains(&owner) {
                own.objects.insert(owner);
            }
        });
    }

    /// Notes that the listing is complete: no other objects will be waited for.
    pub fn listed(&self) {
        self.change(|own| {
            own.is_listed = true;
            own.indexed.clear();
        });
    }

    /// Notes that an object has passed its index handlers, with any outcome.
    pub fn indexed(&self, header: &Header) {
        self.change(|own| {
            let owner = Owner::of(header);
            own.objects.remove(&owner);
            if !own.is_listed {
                own.indexed.insert(owner);
            }
        });
    }

    /// Notes that an object has passed a cycle, with any outcome: it is no longer waited for.
    pub fn passed(&self, header: &Header) {
        self.change(|own| {
            own.objects.remove(&Owner::of(header));
        });
    }

    /// Ends the stream: it is no longer waited for.
    pub fn end(&self) {
        let Some(own) = self.own else { return };
        self.readiness.change(|state| state.remove(own));
    }

    /// Returns the hold that replaces this one when the objects of the stream must be indexed again: for indexes that the
    /// generation of this version has added, or for others that are filled again.
    #[must_use]
    pub fn renewed(&self, indexes: Ids, version: Option<Version>) -> ReadinessHold {
        let before = self.own.and_then(|it| self.readiness.waiting_for(it));
        let name = self.name.clone();
        let hold =
            self.readiness.hold((name, indexes), before.unwrap_or(StreamWaiters::Nobody), version);
        self.end();
        hold
    }

    /// Returns whether all handlers may be called now.
    pub fn is_open(&self, gate: Option<&Gate>) -> bool {
        self.is_open_with(gate, None)
    }

    /// Returns whether handlers that may use these indexes may be called now.
    pub fn is_open_to(&self, gate: Option<&Gate>, indexes: &Ids) -> bool {
        self.is_open_with(gate, Some(indexes))
    }

    fn is_open_with(&self, gate: Option<&Gate>, users: Users<'_>) -> bool {
        let state = self.readiness.0.borrow();
        state.is_open_to(self.own, users)
            && gate.is_none_or(|it| {
                state.has_brought_all(it.version, users)
                    || it.until.is_some_and(|it| it <= Instant::now())
            })
    }

    /// Waits until handlers that may use these indexes may be called.
    pub async fn open_to(&self, gate: Option<&Gate>, indexes: &Ids) {
        let users = Some(indexes);
        let mut receiver = self.readiness.0.subscribe();
        // The sender exists as long as `self`: there is no error to handle.
        drop(receiver.wait_for(|state| state.is_open_to(self.own, users)).await);
        if let Some(Gate { version, until }) = gate {
            let opened = receiver.wait_for(|state| state.has_brought_all(*version, users));
            match until {
                Some(until) => drop(timeout_at(*until, opened).await),
                None => drop(opened.await),
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        let Some(own) = self.own else { return };
        // The usual case in a running stream, for every event: nothing to do, and only a read lock.
        if !self.readiness.0.borrow().pending.contains_key(&own) {
            return;
        }
        self.readiness.change(|state| {
            let Some(pending) = state.pending.get_mut(&own) else { return };
            change(pending);
            if pending.is_listed && pending.objects.is_empty() {
                state.remove(own);
            }
        });
    }
}

impl Drop for ReadinessHold {
    fn drop(&mut self) {
        self.end();
    }
}
