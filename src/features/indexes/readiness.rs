//! Whether the tables are complete, and who waits for that.
//!
//! No handler of any object is called before all objects that were there at the start are indexed in the indexes that the script
//! of the handler can use: the listings of the indexed resources must be over, and each listed object must have been through its
//! index handlers once. From then on nobody waits again, except for the objects of resources and namespaces that are found later:
//! they wait for their own listing. A script that uses no index never waits.
//!
//! A new generation of handlers may bring new indexes, and others that are to be filled anew. The old entries of the latter
//! serve until they are replaced: nobody waits. For the new ones only those streams wait that have handlers which were not there
//! before, and not for long: see [`Gate`]. All others go on.
//!
//! It does not matter how indexing ended: an object whose handlers fail keeps nobody waiting.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::logic::{generation::Version, indexing::Owner, object::Header};

/// The ids of indexes.
pub type Ids = BTreeSet<Arc<str>>;

/// The readiness of all tables of one operator. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    /// All streams of the first look at the cluster are known.
    is_started: bool,
    /// All tables were complete once.
    is_reached: bool,
    /// Somebody tells people of it.
    is_told: bool,
    /// The streams whose objects are not indexed yet.
    pending: BTreeMap<u64, Pending>,
    /// How many of them all handlers wait for.
    blocking: usize,
    last: u64,
}

/// A stream whose objects are not indexed yet.
#[derive(Debug)]
struct Pending {
    name: String,
    /// The indexes that are filled from it.
    indexes: Ids,
    waiting: Waiting,
    /// The generation that has brought an index which is new for the stream, if any has.
    version: Option<Version>,
    is_listed: bool,
    /// Those that are waited for.
    objects: BTreeSet<Owner>,
    /// Those that were indexed before the end of the listing, which may still bring them: they must not be waited for again, as
    /// their workers may wait here themselves by then.
    indexed: BTreeSet<Owner>,
}

/// Who waits for the objects of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// All handlers: the stream was there at the start.
    All,
    /// The handlers of these objects: the stream was found later.
    Own,
    /// Nobody but those with a [`Gate`]: the objects are indexed again.
    Nobody,
}

/// The indexes that handlers can use; `None`: all of them.
type Users<'a> = Option<&'a Ids>;

/// What handlers wait for that came with a new generation: its new indexes, but only up to a moment, so that the service goes
/// on whatever becomes of them.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The generation.
    pub version: Version,
    /// Until then; without an end if nothing is served in the moment anyway.
    pub until: Option<Instant>,
}

/// The share of one stream in the readiness: what it waits for, and what others wait for because of it.
#[derive(Debug)]
pub struct Hold {
    readiness: Readiness,
    /// Of streams that are indexed.
    own: Option<u64>,
    name: String,
}

impl Readiness {
    /// Nothing is complete yet; without index handlers, everything is.
    pub fn new(has_indexes: bool) -> Self {
        let state = State { is_reached: !has_indexes, ..State::default() };
        Readiness(Arc::new(watch::Sender::new(state)))
    }

    /// All streams of the first look at the cluster have their holds. Before, no wait ends.
    pub fn started(&self) {
        self.change(|state| state.is_started = true);
    }

    /// Whether nobody tells people of it yet. Who asks does from now on.
    pub fn begin_telling(&self) -> bool {
        let mut was_told = false;
        self.change(|state| was_told = std::mem::replace(&mut state.is_told, true));
        !was_told
    }

    /// The hold of a stream of this name that is not indexed: it only waits.
    pub fn bystander(&self, name: String) -> Hold {
        Hold { readiness: self.clone(), own: None, name }
    }

    /// The hold of a stream of this name from which these indexes are filled. If any of them is new, `version` is
    /// the generation that brought it.
    pub fn indexed(&self, name: String, indexes: Ids, version: Option<Version>) -> Hold {
        let waiting = if self.is_reached() { Waiting::Own } else { Waiting::All };
        self.hold((name, indexes), waiting, version)
    }

    fn hold(
        &self,
        (name, indexes): (String, Ids),
        waiting: Waiting,
        version: Option<Version>,
    ) -> Hold {
        let mut own = 0;
        self.change(|state| {
            state.last += 1;
            own = state.last;
            state.blocking += usize::from(waiting == Waiting::All);
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
        Hold { readiness: self.clone(), own: Some(own), name }
    }

    /// Whether all tables were complete once.
    pub fn is_reached(&self) -> bool {
        self.0.borrow().is_reached
    }

    /// What is missing, a text for each stream.
    pub fn missing(&self) -> Vec<String> {
        self.0.borrow().pending.values().map(Pending::to_text).collect()
    }

    /// Waits until nothing is missing.
    pub async fn settled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`: there is no error to see.
        drop(receiver.wait_for(|state| state.pending.is_empty()).await);
    }

    fn waiting_for(&self, own: u64) -> Option<Waiting> {
        self.0.borrow().pending.get(&own).map(|it| it.waiting)
    }

    /// Tells of changes of all this.
    pub fn changes(&self) -> impl Future<Output = ()> + use<> {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as the operator; without it there is nothing to tell.
        async move { drop(receiver.changed().await) }
    }

    /// Changes the state. Those who wait are woken only if that can help them: there may be many thousands.
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
        self.blocking -= usize::from(removed.is_some_and(|it| it.waiting == Waiting::All));
    }

    /// Whether handlers may be called that can use these indexes; all of them if it is not said.
    fn is_open_to(&self, own: Option<u64>, users: Users<'_>) -> bool {
        if users.is_some_and(Ids::is_empty) {
            return true;
        }
        let is_used = |it: &Pending| it.is_used_by(users);
        let own = own.and_then(|it| self.pending.get(&it));
        let is_missing = |it: &Pending| it.waiting == Waiting::All && is_used(it);
        let is_reached =
            self.is_reached || (self.is_started && !self.pending.values().any(is_missing));
        is_reached && own.is_none_or(|it| it.waiting == Waiting::Nobody || !is_used(it))
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
        let again = if self.waiting == Waiting::Nobody { " again" } else { "" };
        match (self.is_listed, self.objects.len()) {
            (false, _) => format!("{} is not listed{again} yet", self.name),
            (true, 1) => format!("1 object of {} is not indexed{again} yet", self.name),
            (true, count) => format!("{count} objects of {} are not indexed{again} yet", self.name),
        }
    }
}

impl Hold {
    /// An object has come from the stream. If that is before the end of the listing, it is waited for.
    pub fn seen(&self, header: &Header) {
        self.change(|own| {
            let owner = Owner::of(header);
            if !own.is_listed && !own.indexed.contains(&owner) {
                own.objects.insert(owner);
            }
        });
    }

    /// The listing is over: no other objects will be waited for.
    pub fn listed(&self) {
        self.change(|own| {
            own.is_listed = true;
            own.indexed.clear();
        });
    }

    /// An object has been through its index handlers, however that went.
    pub fn indexed(&self, header: &Header) {
        self.change(|own| {
            let owner = Owner::of(header);
            own.objects.remove(&owner);
            if !own.is_listed {
                own.indexed.insert(owner);
            }
        });
    }

    /// An object has been through a cycle, however that went: nobody waits for it any longer.
    pub fn passed(&self, header: &Header) {
        self.change(|own| {
            own.objects.remove(&Owner::of(header));
        });
    }

    /// The stream ends: nobody waits for it any more.
    pub fn end(&self) {
        let Some(own) = self.own else { return };
        self.readiness.change(|state| state.remove(own));
    }

    /// The hold of the same stream when its objects are to be indexed again, for indexes that are new in the generation of this
    /// version, or for others that are filled again. It takes the place of this one.
    #[must_use]
    pub fn renewed(&self, indexes: Ids, version: Option<Version>) -> Hold {
        let before = self.own.and_then(|it| self.readiness.waiting_for(it));
        let name = self.name.clone();
        let hold = self.readiness.hold((name, indexes), before.unwrap_or(Waiting::Nobody), version);
        self.end();
        hold
    }

    /// Whether all handlers may be called now.
    pub fn is_open(&self, gate: Option<&Gate>) -> bool {
        self.is_open_with(gate, None)
    }

    /// Whether handlers may be called now that can use these indexes.
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

    /// Waits until handlers may be called that can use these indexes.
    pub async fn open_to(&self, gate: Option<&Gate>, indexes: &Ids) {
        let users = Some(indexes);
        let mut receiver = self.readiness.0.subscribe();
        // The sender lives as long as `self`: there is no error to see.
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
        // The usual case in the life of a stream, for every event: nothing to do, and no other lock than for reading.
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

impl Drop for Hold {
    fn drop(&mut self) {
        self.end();
    }
}
