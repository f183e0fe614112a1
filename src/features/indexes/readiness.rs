//! Whether the tables are complete, and who waits for that.
//!
//! No handler of any object is called before all objects that were there at the start are indexed: the listings of all indexed
//! resources must be over, and each listed object must have been through its index handlers once. From then on nobody waits
//! again, except for the objects of resources and namespaces that are found later: they wait for their own listing.
//!
//! It does not matter how indexing ended: an object whose handlers fail keeps nobody waiting.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::sync::watch;

use crate::logic::{indexing::Owner, object::Header};

/// The readiness of all tables of one operator. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    /// All streams of the first look at the cluster are known.
    is_started: bool,
    /// All tables were complete once.
    is_reached: bool,
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
    /// Found when the tables were complete already.
    is_late: bool,
    is_listed: bool,
    objects: BTreeSet<Owner>,
}

/// The share of one stream in the readiness: what it waits for, and what others wait for because of it.
#[derive(Debug)]
pub struct Hold {
    readiness: Readiness,
    /// Of streams that are indexed.
    own: Option<u64>,
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

    /// The hold of a stream that is not indexed: it only waits.
    pub fn bystander(&self) -> Hold {
        Hold { readiness: self.clone(), own: None }
    }

    /// The hold of an indexed stream of this name.
    pub fn indexed(&self, name: String) -> Hold {
        let mut own = 0;
        self.change(|state| {
            state.last += 1;
            own = state.last;
            let is_late = state.is_reached;
            state.blocking += usize::from(!is_late);
            let objects = BTreeSet::new();
            state.pending.insert(own, Pending { name, is_late, is_listed: false, objects });
        });
        Hold { readiness: self.clone(), own: Some(own) }
    }

    /// Whether all tables were complete once.
    pub fn is_reached(&self) -> bool {
        self.0.borrow().is_reached
    }

    /// What is missing, a text for each stream.
    pub fn missing(&self) -> Vec<String> {
        self.0.borrow().pending.values().map(Pending::to_text).collect()
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
        self.blocking -= usize::from(removed.is_some_and(|it| !it.is_late));
    }

    fn is_open_to(&self, own: Option<u64>) -> bool {
        self.is_reached && own.is_none_or(|it| !self.pending.contains_key(&it))
    }
}

impl Pending {
    fn to_text(&self) -> String {
        match (self.is_listed, self.objects.len()) {
            (false, _) => format!("{} is not listed yet", self.name),
            (true, 1) => format!("1 object of {} is not indexed yet", self.name),
            (true, count) => format!("{count} objects of {} are not indexed yet", self.name),
        }
    }
}

impl Hold {
    /// An object has come from the stream. If that is before the end of the listing, it is waited for.
    pub fn seen(&self, header: &Header) {
        self.change(|own| {
            if !own.is_listed {
                own.objects.insert(Owner::of(header));
            }
        });
    }

    /// The listing is over: no other objects will be waited for.
    pub fn listed(&self) {
        self.change(|own| own.is_listed = true);
    }

    /// An object has been through its index handlers, however that went.
    pub fn indexed(&self, header: &Header) {
        self.change(|own| {
            own.objects.remove(&Owner::of(header));
        });
    }

    /// The stream ends: nobody waits for it any more.
    pub fn end(&self) {
        let Some(own) = self.own else { return };
        self.readiness.change(|state| state.remove(own));
    }

    /// Whether handlers may be called now.
    pub fn is_open(&self) -> bool {
        self.readiness.0.borrow().is_open_to(self.own)
    }

    /// Waits until handlers may be called.
    pub async fn open(&self) {
        let mut receiver = self.readiness.0.subscribe();
        // The sender lives as long as `self`: there is no error to see.
        drop(receiver.wait_for(|state| state.is_open_to(self.own)).await);
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
