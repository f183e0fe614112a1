//! State of objects that the process keeps between their events.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::conclusion::Unsent;
use crate::call::Memo;
use crate::features::daemons::{self, LastSeen};
use crate::heap;
use crate::logic::{
    background::{indexing::IndexFailures, throttle::Throttle},
    change::{
        claim::{Claim, Quiet},
        undecided::Undecided,
    },
    generation::WaitingHandlers,
    object::Header,
    text::uid,
};

/// The identity of an object in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::reactor) enum Key {
    /// A uid in the usual form. As bytes it needs no allocation, and there is one for every object.
    Uuid(Uuid),
    /// A uid in another form.
    Text(Arc<str>),
    /// Other identifying fields, for an object without a uid.
    Parts(Arc<str>),
}

/// The memory of one object while its worker uses it.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Memory {
    /// The first event came from a listing: the object is older than this process.
    pub(in crate::reactor) noticed_by_listing: bool,
    /// A cause was handled completely since this process started.
    pub(in crate::reactor) handled_once: bool,
    /// The object has records of handlers that have failed permanently.
    pub(in crate::reactor) has_failed: bool,
    /// The server has reported that the object does not exist any more; the event of its deletion has not arrived yet.
    pub(in crate::reactor) is_gone: bool,
    /// Set when a list has shown an older version than the operator's last request: the time until which its event is awaited. The event
    /// never arrives if a backup was restored; then the object is read from the server.
    pub(in crate::reactor) unconfirmed: Option<Instant>,
    /// The version made by the operator's last request, if it is a number: older versions do not contain its changes.
    pub(in crate::reactor) own: Option<NonZeroU64>,
    /// The memo of the object's handlers; created on first use.
    pub(in crate::reactor) memo: Option<Memo>,
    /// The index handlers that failed for the object; `None` without failures.
    pub(in crate::reactor) unindexed: Option<Box<IndexFailures>>,
    /// The handlers that wait for their retry; `None` without any.
    pub(in crate::reactor) waiting: Option<Box<WaitingHandlers>>,
    /// The handlers that cannot be decided for now; `None` without any.
    pub(in crate::reactor) undecided: Option<Box<Undecided>>,
    /// Pauses after unexpected errors; `None` without errors.
    pub(in crate::reactor) throttle: Option<Box<Throttle>>,
    /// The changes that the last cycle could not send. They are sent before anything else is done to the object.
    pub(in crate::reactor) unsent: Option<Box<Unsent>>,
    /// The owner of a finalizer that no handler of this operator requires.
    pub(in crate::reactor) claim: Claim,
    /// Since when nothing has happened to an object that only another operator's finalizer holds; `None` otherwise.
    pub(in crate::reactor) quiet: Option<Box<Quiet>>,
    /// The version of the object that could not be read and was reported; `None` if the object is readable.
    pub(in crate::reactor) unreadable: Option<Box<str>>,
    /// The object's daemons and timers; `None` while there is no state to keep of them.
    pub(in crate::reactor) background: MemoryDaemons,
}

/// The parts of a memory that the handling of a change uses. Daemons and timers may start meanwhile.
pub(in crate::reactor) struct ChangeMemory<'a> {
    pub(in crate::reactor) handled_once: &'a mut bool,
    pub(in crate::reactor) has_failed: bool,
    pub(in crate::reactor) waiting: &'a mut Option<Box<WaitingHandlers>>,
    pub(in crate::reactor) undecided: &'a mut Option<Box<Undecided>>,
}

/// The daemons and timers of an object, as stored in its memory.
pub(in crate::reactor) type MemoryDaemons = Option<Box<daemons::ObjectDaemons>>;

/// The memories of all objects. A worker takes a memory out while it works, and puts it back.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Memories {
    kept: Mutex<BTreeMap<Key, IdleMemory>>,
    /// The memos that workers have taken out; `None` until [`Memories::lend`].
    lent: Mutex<Option<Lent>>,
}

/// The memos of objects whose workers are busy: admission handlers use them at the same time.
#[derive(Debug)]
struct Lent {
    memos: BTreeMap<Key, Memo>,
    of_operator: Memo,
}

/// The memory of an idle object. Such an object takes only this and its key.
#[derive(Debug)]
struct IdleMemory {
    noticed_by_listing: bool,
    handled_once: bool,
    has_failed: bool,
    is_gone: bool,
    own: Option<NonZeroU64>,
    claim: Claim,
    memo: Option<Memo>,
    background: MemoryDaemons,
    trouble: Option<Box<Trouble>>,
}

/// The parts of a memory that are absent without errors.
#[derive(Debug)]
struct Trouble {
    unindexed: Option<Box<IndexFailures>>,
    waiting: Option<Box<WaitingHandlers>>,
    undecided: Option<Box<Undecided>>,
    throttle: Option<Box<Throttle>>,
    unsent: Option<Box<Unsent>>,
    unreadable: Option<Box<str>>,
    quiet: Option<Box<Quiet>>,
}

impl Key {
    /// Returns the key of an object.
    pub(in crate::reactor) fn of(header: &Header) -> Self {
        if let Some(uid) = header.uid.as_deref().filter(|it| !it.is_empty()) {
            return uid::parse(uid).map_or_else(|| Key::Text(uid.into()), Key::Uuid);
        }
        let part = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".into());
        let parts = [
            header.kind.clone(),
            header.api_version.clone(),
            part(&header.name),
            part(&header.namespace),
            part(&header.creation_timestamp),
        ];
        Key::Parts(parts.join("//").into())
    }

    /// Returns the uid of the object, if it has one.
    pub(in crate::reactor) fn uid(&self) -> Option<String> {
        match self {
            Key::Uuid(uid) => Some(uid.to_string()),
            Key::Text(uid) => Some(uid.as_ref().to_owned()),
            Key::Parts(_) => None,
        }
    }
}

impl Memories {
    /// Takes the memory of an object out; a new object gets an empty one.
    pub(in crate::reactor) fn recall(&self, key: &Key, listed: bool) -> Memory {
        let mut kept = self.kept.lock();
        let known = kept.remove(key);
        let fresh = || Memory { noticed_by_listing: listed, ..Memory::default() };
        let mut memory = known.map_or_else(fresh, Memory::from);
        if let Some(Lent { memos, of_operator }) = &mut *self.lent.lock() {
            memos.insert(key.clone(), memory.memo(of_operator));
        }
        memory
    }

    /// Makes [`Memories::memo`] return memos, also those of objects whose workers start after this call.
    pub(in crate::reactor) fn lend(&self, of_operator: &Memo) {
        let fresh = || Lent { memos: BTreeMap::new(), of_operator: of_operator.clone() };
        self.lent.lock().get_or_insert_with(fresh);
    }

    /// Returns the memo of a known object; `None` before [`Memories::lend`].
    pub(in crate::reactor) fn memo(&self, key: &Key) -> Option<Memo> {
        let mut kept = self.kept.lock();
        let lent = self.lent.lock();
        let Lent { memos, of_operator } = lent.as_ref()?;
        let idle = kept
            .get_mut(key)
            .map(|it| it.memo.get_or_insert_with(|| of_operator.detached()).clone());
        idle.or_else(|| memos.get(key).cloned())
    }

    fn take_back(&self, key: &Key) {
        if let Some(lent) = &mut *self.lent.lock() {
            lent.memos.remove(key);
        }
    }

    /// Puts a memory back.
    ///
    /// Drops a memo that has no content, to save the memory of idle objects.
    pub(in crate::reactor) fn keep(&self, key: Key, mut memory: Memory, of_operator: &Memo) {
        let mut kept = self.kept.lock();
        self.take_back(&key);
        memory.memo = memory.memo.filter(|it| !(it.is_spare() && of_operator.is_empty()));
        if let Some(memo) = &memory.memo {
            memo.rest();
        }
        heap::lasting(|| kept.insert(key, memory.into()));
    }

    /// Returns the object as the daemons and timers of these ids saw it last; `NotRunning` while its worker is busy, which checks this by
    /// itself.
    pub(in crate::reactor) fn last_seen(&self, key: &Key, ids: &BTreeSet<Arc<str>>) -> LastSeen {
        let memories = self.kept.lock();
        let background = memories.get(key).and_then(|it| it.background.as_ref());
        background.map_or(LastSeen::NotRunning, |it| it.last_seen(ids))
    }

    /// Returns whether handlers have failed permanently on an object; false while its worker is busy, which checks this by itself.
    pub(in crate::reactor) fn has_failed(&self, key: &Key) -> bool {
        self.kept.lock().get(key).is_some_and(|it| it.has_failed)
    }

    /// Removes an object that is no longer served.
    pub(in crate::reactor) fn forget(&self, key: &Key) -> Option<Memory> {
        let mut kept = self.kept.lock();
        self.take_back(key);
        kept.remove(key).map(Memory::from)
    }

    /// Returns the number of known objects, without those whose worker is busy.
    pub(in crate::reactor) fn count(&self) -> i64 {
        i64::try_from(self.kept.lock().len()).unwrap_or(i64::MAX)
    }
}

impl Memory {
    /// Returns the object's memo, initially a copy of the operator's memo.
    pub(in crate::reactor) fn memo(&mut self, of_operator: &Memo) -> Memo {
        self.memo.get_or_insert_with(|| heap::lasting(|| of_operator.detached())).clone()
    }

    /// Returns the parts that the handling of a change uses, and the daemons and timers.
    pub(in crate::reactor) fn for_change(&mut self) -> (ChangeMemory<'_>, &mut MemoryDaemons) {
        let Memory { handled_once, has_failed, waiting, undecided, background, .. } = self;
        (ChangeMemory { handled_once, has_failed: *has_failed, waiting, undecided }, background)
    }

    /// Returns whether nothing is left to do that only the memory knows of.
    pub(in crate::reactor) fn is_well(&self) -> bool {
        let Memory { has_failed, is_gone, unindexed, waiting, undecided, .. } = self;
        let Memory { unsent, claim, quiet, background, .. } = self;
        let is_handled = !has_failed && !is_gone && waiting.is_none() && undecided.is_none();
        let is_sent = unsent.is_none() && unindexed.is_none() && background.is_none();
        is_handled && is_sent && quiet.is_none() && *claim == Claim::default()
    }

    /// Returns whether resume handlers are due.
    pub(in crate::reactor) fn is_initial(&self) -> bool {
        self.noticed_by_listing && !self.handled_once
    }
}

impl Trouble {
    fn is_none(&self) -> bool {
        let Trouble { unindexed, waiting, undecided, throttle, unsent, unreadable, quiet } = self;
        let is_well =
            waiting.is_none() && unindexed.is_none() && throttle.is_none() && unsent.is_none();
        is_well && undecided.is_none() && unreadable.is_none() && quiet.is_none()
    }
}

impl From<Memory> for IdleMemory {
    fn from(memory: Memory) -> Self {
        let Memory { noticed_by_listing, handled_once, has_failed, own, .. } = memory;
        let Memory { is_gone, claim, memo, background, .. } = memory;
        let Memory { unindexed, waiting, undecided, throttle, unsent, .. } = memory;
        let Memory { unreadable, quiet, .. } = memory;
        let trouble =
            Trouble { unindexed, waiting, undecided, throttle, unsent, unreadable, quiet };
        let trouble = (!trouble.is_none()).then(|| Box::new(trouble));
        IdleMemory {
            noticed_by_listing,
            handled_once,
            has_failed,
            is_gone,
            own,
            claim,
            memo,
            background,
            trouble,
        }
    }
}

impl From<IdleMemory> for Memory {
    fn from(kept: IdleMemory) -> Self {
        let IdleMemory { noticed_by_listing, handled_once, has_failed, is_gone, own, .. } = kept;
        let IdleMemory { claim, memo, background, trouble, .. } = kept;
        let well = Memory {
            noticed_by_listing,
            handled_once,
            has_failed,
            is_gone,
            own,
            memo,
            claim,
            background,
            ..Memory::default()
        };
        let Some(trouble) = trouble else { return well };
        let Trouble { unindexed, waiting, undecided, throttle, unsent, unreadable, quiet } =
            *trouble;
        Memory { unindexed, waiting, undecided, throttle, unsent, quiet, unreadable, ..well }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;
    use crate::logic::object::Header;

    fn key(uid: &str) -> Key {
        Key::of(&Header { uid: Some(uid.into()), ..Header::default() })
    }

    #[test]
    fn uids_differ_if_their_spelling_differs() {
        let usual = "a70153bc-47c0-43b0-8acd-de145afbe6c4";
        assert!(matches!(key(usual), Key::Uuid(_)));
        assert_eq!(key(usual), key(usual));
        assert_eq!(key(usual).uid().as_deref(), Some(usual));
        assert_ne!(key(usual), key(&usual.to_uppercase()));
        assert_ne!(key("uid-1"), key("uid-2"));
    }

    #[test]
    fn objects_without_a_uid_differ_by_their_names() {
        let named = |name: &str| Key::of(&Header { name: Some(name.into()), ..Header::default() });
        assert_ne!(named("one"), named("two"));
        assert_eq!(named("one"), named("one"));
    }
}
