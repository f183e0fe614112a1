//! What must be done about objects for which nothing happens, when their handlers have changed.
//!
//! A watch brings what happens, and most edits need no more: the code of a handler matters when it is called the next time.
//! The others need the objects to be looked at again, and each of them as little as it can:
//!
//! | edit | what is looked at again |
//! |---|---|
//! | code, limits or `param` of a change handler or of `on_event`; either of them, removed | nothing, but see `retries.rs`; all objects if handlers have failed for good on any of them |
//! | `on_delete` removed, unless it was optional | all objects: those that it held are let go |
//! | a change handler or `on_event` added, or with other filters | all objects, as after a start |
//! | a daemon or a timer with other code or options, or removed | the objects that it runs for, which are known |
//! | the same where it has ended by itself for some object | all objects |
//! | a daemon or a timer added, or with other filters | all objects |
//! | an index with any handler added, changed or removed | all objects of the resources that fill it |
//! | a function that selects | the resources that it chooses now and did not before: by streams of their own, or all objects |
//! | activities, admission, lifecycle | nothing |
//!
//! Functions of filters and selectors are other ones after each load. That one is as the one before is known by the fingerprints of
//! [`super::handler::Parts`], where there are any.
//!
//! Before: `logic/generation/`. After: `reactor/streams/succession.rs`, which looks.

mod retries;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

pub use self::retries::Waiting;
use super::{
    handler::{Handler, Kind},
    registry::{Registry, ResourceHandlers},
};

/// Which objects of a resource must be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// None.
    Nobody,
    /// Those for which daemons or timers of these ids run. If one of them has ended by itself for some object: all.
    Attended(BTreeSet<Arc<str>>),
    /// All.
    Everybody,
}

/// The handlers that have not seen any object yet, of those that are called for whatever happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The ids of indexes.
    pub indexes: BTreeSet<Arc<str>>,
    /// The ids of handlers of raw events.
    pub watching: BTreeSet<Arc<str>>,
}

/// The indexes that are filled by both generations, but not by the same handlers: all of their content is to be made anew.
pub fn refilled(old: &Registry, new: &Registry) -> BTreeSet<Arc<str>> {
    let of = |registry: &Registry, id: &Arc<str>| {
        let all = registry.handlers().iter().filter(|it| it.kind == Kind::Index && it.id == *id);
        all.cloned().collect::<Vec<_>>()
    };
    let both = old.indexes().into_iter().filter(|it| new.indexes().contains(it));
    both.filter(|id| !are_same(&of(old, id), &of(new, id))).collect()
}

/// Which objects must be looked at again when these handlers take the place of the old ones. What is to be indexed anew is in
/// the news.
pub fn review(old: &ResourceHandlers, new: &ResourceHandlers, news: &News) -> Review {
    let is_new = |(old, new): (&[Arc<Handler>], &[Arc<Handler>])| {
        new.iter().any(|it| !known(old, it).any(|known| known.is_same(it) || sees_same(known, it)))
    };
    let seen = [(&*old.watching, &*new.watching), (&*old.changing, &*new.changing)];
    let spawning = (&*old.spawning, &*new.spawning);
    let lets_go =
        |it: &Arc<Handler>| it.requires_finalizer() && known(&new.changing, it).next().is_none();
    if seen.into_iter().chain([spawning]).any(is_new)
        || old.changing.iter().any(lets_go)
        || new.indexing.iter().any(|it| news.indexes.contains(&it.id))
    {
        return Review::Everybody;
    }
    let is_over = |it: &&Arc<Handler>| !known(&new.spawning, it).any(|new| new.is_same(it));
    let changed = old.spawning.iter().filter(is_over).map(|it| Arc::clone(&it.id));
    let changed = changed.collect::<BTreeSet<_>>();
    if changed.is_empty() { Review::Nobody } else { Review::Attended(changed) }
}

/// Returns whether any handler of changes has other code than before: it may have failed for good on some objects.
pub fn has_edited(old: &ResourceHandlers, new: &ResourceHandlers) -> bool {
    let is_edited = |it: &Arc<Handler>| {
        let mut before = known(&old.changing, it).peekable();
        before.peek().is_some() && !before.any(|before| before.is_same(it))
    };
    new.changing.iter().any(is_edited)
}

/// Whether any of these handlers was not there before as it is now.
pub fn has_news(old: &ResourceHandlers, new: &ResourceHandlers) -> bool {
    let pairs = [
        (&old.watching, &new.watching),
        (&old.changing, &new.changing),
        (&old.spawning, &new.spawning),
    ];
    pairs
        .into_iter()
        .any(|(old, new)| new.iter().any(|it| !known(old, it).any(|known| known.is_same(it))))
}

impl News {
    /// What is new in the handlers of a resource; `indexes` are the indexes of all resources that must be filled anew.
    pub fn between(
        old: &ResourceHandlers,
        new: &ResourceHandlers,
        indexes: &BTreeSet<Arc<str>>,
    ) -> Self {
        let own = new.indexing.iter().map(|it| &it.id).filter(|it| indexes.contains(*it));
        let has_not_seen = |it: &&Arc<Handler>| {
            !known(&old.watching, it).any(|known| known.is_same(it) || sees_same(known, it))
        };
        let watching = new.watching.iter().filter(has_not_seen);
        News {
            indexes: own.cloned().collect(),
            watching: watching.map(|it| Arc::clone(&it.id)).collect(),
        }
    }

    /// Adds what is new since then.
    pub fn absorb(&mut self, later: News) {
        self.indexes.extend(later.indexes);
        self.watching.extend(later.watching);
    }

    /// Whether nothing is new.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.watching.is_empty()
    }
}

/// The handlers that are declared as this one is.
fn known<'a>(
    handlers: &'a [Arc<Handler>],
    one: &'a Handler,
) -> impl Iterator<Item = &'a Arc<Handler>> {
    handlers.iter().filter(move |it| it.is_namesake(one))
}

/// Whether both want the same objects, and hold them alike.
fn sees_same(one: &Handler, other: &Handler) -> bool {
    one.filters_same(other)
        && one.requires_finalizer() == other.requires_finalizer()
        && one.deleted == other.deleted
}

fn are_same(old: &[Arc<Handler>], new: &[Arc<Handler>]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.is_same(new))
}
