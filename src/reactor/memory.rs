//! What the process remembers about objects between their events.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::conclusion::Unsent;
use crate::features::daemons::{self, LastSeen};
use crate::logic::{
    claim::{Claim, Quiet},
    generation::WaitingHandlers,
    indexing::Failures,
    object::Header,
    throttle::Throttle,
    undecided::Undecided,
};
use crate::ports::Memo;

/// Finds an object in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The usual uid. As bytes it needs no memory of its own, and there is one for every object.
    Uuid([u8; 16]),
    /// An unusual uid.
    Text(Arc<str>),
    /// What else identifies an object without a uid.
    Parts(Arc<str>),
}

/// One object's memory, while its worker has it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The first event was part of a listing: the object is older than this process.
    pub(super) noticed_by_listing: bool,
    /// A cause was handled to its end since this process runs.
    pub(super) handled_once: bool,
    /// Handlers are noted on it that have failed for good.
    pub(super) has_failed: bool,
    /// The server has said that it does not exist any more; the event that says so is to come.
    pub(super) is_gone: bool,
    /// Until when the event of our last request is waited for, since a list has shown an older version. It does not come if a backup
    /// was restored: then the server is asked.
    pub(super) unconfirmed: Option<Instant>,
    /// The version that our last request made, if it is a number: what is older shows less than what was done.
    pub(super) own: Option<NonZeroU64>,
    /// The memo of its handlers; made on first use.
    pub(super) memo: Option<Memo>,
    /// The index handlers that failed for the object; absent while all is well.
    pub(super) unindexed: Option<Box<Failures>>,
    /// The handlers that wait for their retry; absent while none does.
    pub(super) waiting: Option<Box<WaitingHandlers>>,
    /// The handlers that nothing can be decided about for now; absent while there are none.
    pub(super) undecided: Option<Box<Undecided>>,
    /// Pauses after unexpected errors; absent while all is well.
    pub(super) throttle: Option<Box<Throttle>>,
    /// What the last cycle could not send. It is sent again before anything else is done to the object.
    pub(super) unsent: Option<Box<Unsent>>,
    /// Whose finalizer it is that none of our handlers needs.
    pub(super) claim: Claim,
    /// Since when nothing has happened to an object that only a finalizer of somebody else holds; absent while none does.
    pub(super) quiet: Option<Box<Quiet>>,
    /// The version of the object that could not be read, and was reported; absent while all is well.
    pub(super) unreadable: Option<Box<str>>,
    /// Its daemons and timers; absent while there is nothing to know about them.
    pub(super) background: Option<Box<daemons::ObjectDaemons>>,
}

/// The memories of all objects. A worker takes one out while it works and puts it back.
#[derive(Debug, Default)]
pub(super) struct Memories(Mutex<BTreeMap<Key, Kept>>);

/// A memory at rest. An idle object costs this and its key, nothing else.
#[derive(Debug)]
struct Kept {
    noticed_by_listing: bool,
    handled_once: bool,
    has_failed: bool,
    is_gone: bool,
    own: Option<NonZeroU64>,
    claim: Claim,
    memo: Option<Memo>,
    background: Option<Box<daemons::ObjectDaemons>>,
    trouble: Option<Box<Trouble>>,
}

/// The parts of a memory that are absent while all is well.
#[derive(Debug)]
struct Trouble {
    unindexed: Option<Box<Failures>>,
    waiting: Option<Box<WaitingHandlers>>,
    undecided: Option<Box<Undecided>>,
    throttle: Option<Box<Throttle>>,
    unsent: Option<Box<Unsent>>,
    unreadable: Option<Box<str>>,
    quiet: Option<Box<Quiet>>,
}

impl Key {
    /// The key of an object.
    pub(super) fn of(header: &Header) -> Self {
        if let Some(uid) = header.uid.as_deref().filter(|it| !it.is_empty()) {
            return uuid(uid).map_or_else(|| Key::Text(uid.into()), Key::Uuid);
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

    /// The uid of the object, if it has one.
    pub(super) fn uid(&self) -> Option<String> {
        match self {
            Key::Uuid(bytes) => {
                let mut text = format!("{:032x}", u128::from_be_bytes(*bytes));
                for dash in [20, 16, 12, 8] {
                    text.insert(dash, '-');
                }
                Some(text)
            }
            Key::Text(uid) => Some(uid.as_ref().to_owned()),
            Key::Parts(_) => None,
        }
    }
}

/// The bytes that a UUID spells; nothing if it could be spelled otherwise, so that two texts never are one key.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let is_dash = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let is_digit = |it: char| it.is_ascii_digit() || ('a'..='f').contains(&it);
    let is_uuid = text.len() == 36
        && text
            .chars()
            .enumerate()
            .all(|(index, it)| if is_dash(index) { it == '-' } else { is_digit(it) });
    let number = is_uuid.then(|| u128::from_str_radix(&text.replace('-', ""), 16).ok())?;
    number.map(u128::to_be_bytes)
}

impl Memories {
    /// Takes the memory of an object out; a new object gets a fresh one.
    pub(super) fn recall(&self, key: &Key, listed: bool) -> Memory {
        let known = self.0.lock().remove(key);
        let fresh = || Memory { noticed_by_listing: listed, ..Memory::default() };
        known.map_or_else(fresh, Memory::from)
    }

    /// Puts a memory back.
    ///
    /// A memo that nobody wrote into is dropped: an idle object should cost little.
    pub(super) fn keep(&self, key: Key, mut memory: Memory, of_operator: &Memo) {
        memory.memo = memory.memo.filter(|it| !(it.is_spare() && of_operator.is_empty()));
        if let Some(memo) = &memory.memo {
            memo.rest();
        }
        self.0.lock().insert(key, memory.into());
    }

    /// Returns an object as the daemons and timers of these ids saw it last. Not known while its worker is busy, which looks by itself.
    pub(super) fn last_seen(&self, key: &Key, ids: &BTreeSet<Arc<str>>) -> LastSeen {
        let memories = self.0.lock();
        let background = memories.get(key).and_then(|it| it.background.as_ref());
        background.map_or(LastSeen::NotRunning, |it| it.last_seen(ids))
    }

    /// Returns whether handlers have failed for good on an object. Not known while its worker is busy, which looks by itself.
    pub(super) fn has_failed(&self, key: &Key) -> bool {
        self.0.lock().get(key).is_some_and(|it| it.has_failed)
    }

    /// Lets go of an object that is not served any more.
    pub(super) fn forget(&self, key: &Key) -> Option<Memory> {
        self.0.lock().remove(key).map(Memory::from)
    }

    /// How many objects are remembered, without those whose worker is busy.
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.0.lock().len()).unwrap_or(i64::MAX)
    }
}

impl Memory {
    /// The object's memo: at first a copy of the operator's.
    pub(super) fn memo(&mut self, of_operator: &Memo) -> Memo {
        self.memo.get_or_insert_with(|| of_operator.detached()).clone()
    }

    /// Whether handlers for resuming are due.
    pub(super) fn is_initial(&self) -> bool {
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

impl From<Memory> for Kept {
    fn from(memory: Memory) -> Self {
        let Memory { noticed_by_listing, handled_once, has_failed, own, .. } = memory;
        let Memory { is_gone, claim, memo, background, .. } = memory;
        let Memory { unindexed, waiting, undecided, throttle, unsent, .. } = memory;
        let Memory { unreadable, quiet, .. } = memory;
        let trouble =
            Trouble { unindexed, waiting, undecided, throttle, unsent, unreadable, quiet };
        let trouble = (!trouble.is_none()).then(|| Box::new(trouble));
        Kept {
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

impl From<Kept> for Memory {
    fn from(kept: Kept) -> Self {
        let Kept { noticed_by_listing, handled_once, has_failed, is_gone, own, .. } = kept;
        let Kept { claim, memo, background, trouble, .. } = kept;
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
    fn uids_are_told_apart_however_they_are_spelled() {
        let usual = "a70153bc-47c0-43b0-8acd-de145afbe6c4";
        assert!(matches!(key(usual), Key::Uuid(_)));
        assert_eq!(key(usual), key(usual));
        assert_eq!(key(usual).uid().as_deref(), Some(usual));
        assert_ne!(key(usual), key(&usual.to_uppercase()));
        assert_ne!(key("uid-1"), key("uid-2"));
    }

    #[test]
    fn objects_without_a_uid_are_told_apart_by_their_names() {
        let named = |name: &str| Key::of(&Header { name: Some(name.into()), ..Header::default() });
        assert_ne!(named("one"), named("two"));
        assert_eq!(named("one"), named("one"));
    }
}
