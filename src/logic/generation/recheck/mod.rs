//! Determines which objects must be checked again when their handlers have changed, although the objects have not.
//!
//! A watch reports changes, and most edits need no more: the code of a handler matters when it is called the next time. For all
//! other edits, [`effect`] is the table. `tests.rs` covers each row, and compares this text with it:
//!
//! | handlers | edit | objects to check again |
//! |---|---|---|
//! | changing | edited | all objects, if handlers have failed permanently on any of them |
//! | changing | added | all objects |
//! | changing | removed | all objects, if it needed the finalizer |
//! | watching | edited | nothing |
//! | watching | added | all objects |
//! | watching | removed | nothing |
//! | spawning | edited | the objects that it runs for |
//! | spawning | added | all objects |
//! | spawning | removed | the objects that it runs for |
//! | indexing | edited | all objects of the resources that fill the index |
//! | indexing | added | all objects of the resources that fill the index |
//! | indexing | removed | all objects of the resources that fill the index |
//!
//! A handler with new filters counts as added. If a daemon or timer has ended by itself, the objects that it runs for are not
//! known, so all objects are checked. A selector function counts by the resources that it selects: those that it selects now get
//! new streams, or count as added. Activities, webhooks and lifecycles do not concern objects.
//!
//! Every load creates new function references; the fingerprints of [`crate::logic::handlers::handler::Parts`] show which functions of
//! filters and selectors are unchanged.
//!
//! After: `reactor/generation/handover.rs`, which does the checks.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::logic::{
    change::registry::{Registry, ResourceHandlers},
    handlers::handler::{Category, Handler, Kind},
};
use crate::sorted::CollectSorted as _;

/// The categories of handlers that are called for objects as they are.
const CATEGORIES: [Category; 4] =
    [Category::Changing, Category::Watching, Category::Spawning, Category::Indexing];

/// The change of one handler by an edit of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandlerEdit {
    /// Unchanged.
    Unchanged,
    /// Has other code or other options, and the same filters.
    Edited,
    /// Did not exist before, or had other filters.
    Added,
    /// Is no longer declared.
    Removed,
}

/// The objects that an edit of one handler concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditEffect {
    /// None.
    Nothing,
    /// All, if handlers have failed permanently on any of them.
    IfFailed,
    /// All, if it required the finalizer: it may be removed now.
    IfHeld,
    /// Those that it runs for.
    Running,
    /// Those of all resources that fill the same index.
    Refill,
    /// All.
    All,
}

/// The objects of a resource that must be checked again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recheck {
    /// All objects of the resource.
    pub all: bool,
    /// All objects, if handlers have failed permanently on any of them.
    pub all_if_failed: bool,
    /// Those for which daemons or timers of these ids run. If one of them has ended by itself for any object: all objects.
    pub daemons: BTreeSet<Arc<str>>,
}

/// The handlers that have not seen any object yet, among those that are called for every event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewHandlers {
    /// The ids of indexes.
    pub indexes: BTreeSet<Arc<str>>,
    /// The ids of handlers of raw events.
    pub watching: BTreeSet<Arc<str>>,
}

/// Returns which objects an edit of a handler of this category concerns.
fn effect(category: Category, edit: HandlerEdit) -> EditEffect {
    match (category, edit) {
        (_, HandlerEdit::Unchanged)
        | (Category::Activity | Category::Admission | Category::Conversion, _)
        | (Category::Watching, HandlerEdit::Edited | HandlerEdit::Removed) => EditEffect::Nothing,
        (Category::Changing, HandlerEdit::Edited) => EditEffect::IfFailed,
        (Category::Changing, HandlerEdit::Removed) => EditEffect::IfHeld,
        (Category::Spawning, HandlerEdit::Edited | HandlerEdit::Removed) => EditEffect::Running,
        (Category::Indexing, HandlerEdit::Edited | HandlerEdit::Added | HandlerEdit::Removed) => {
            EditEffect::Refill
        }
        (Category::Changing | Category::Watching | Category::Spawning, HandlerEdit::Added) => {
            EditEffect::All
        }
    }
}

/// Returns the indexes that both generations fill, but not with the same handlers: their content is outdated.
pub fn refilled(old: &Registry, new: &Registry) -> BTreeSet<Arc<str>> {
    let of = |registry: &Registry, id: &Arc<str>| {
        let all = registry.handlers().iter().filter(|it| it.kind == Kind::Index && it.id == *id);
        all.cloned().collect::<Vec<_>>()
    };
    let both = old.indexes().into_iter().filter(|it| new.indexes().contains(it));
    both.filter(|id| !are_same(&of(old, id), &of(new, id))).collect_set()
}

/// Returns whether any of these handlers is new or was edited.
pub fn has_new(old: &ResourceHandlers, new: &ResourceHandlers) -> bool {
    let mut objects = CATEGORIES.into_iter().filter(|it| *it != Category::Indexing);
    objects.any(|it| {
        let old = of_category(old, it);
        of_category(new, it).iter().any(|it| edit_of_new(old, it) != HandlerEdit::Unchanged)
    })
}

impl Recheck {
    /// Returns which objects must be checked again when these handlers replace the old ones. `indexes` are the indexes of the new
    /// handlers that must be filled again.
    pub fn between(
        old: &ResourceHandlers,
        new: &ResourceHandlers,
        indexes: &BTreeSet<Arc<str>>,
    ) -> Self {
        let mut recheck = Recheck::default();
        for category in CATEGORIES {
            let (before, now) = (of_category(old, category), of_category(new, category));
            let edits = now.iter().map(|it| (it, edit_of_new(before, it)));
            let edits = edits.chain(before.iter().map(|it| (it, edit_of_old(now, it))));
            for (handler, edit) in edits {
                recheck.add(handler, effect(category, edit));
            }
        }
        // Handlers of several resources fill an index, and an edit of one of them concerns all.
        recheck.all |= new.indexing.iter().any(|it| indexes.contains(&it.id));
        if recheck.all { Recheck { all: true, ..Recheck::default() } } else { recheck }
    }

    fn add(&mut self, handler: &Handler, effect: EditEffect) {
        match effect {
            EditEffect::Nothing | EditEffect::Refill => {}
            EditEffect::IfFailed => self.all_if_failed = true,
            EditEffect::IfHeld => self.all |= handler.requires_finalizer(),
            EditEffect::Running => drop(self.daemons.insert(Arc::clone(&handler.id))),
            EditEffect::All => self.all = true,
        }
    }
}

impl NewHandlers {
    /// Returns the new handlers of a resource; `indexes` are the indexes of all resources that must be filled again.
    pub fn between(
        old: &ResourceHandlers,
        new: &ResourceHandlers,
        indexes: &BTreeSet<Arc<str>>,
    ) -> Self {
        let own = new.indexing.iter().map(|it| &it.id).filter(|it| indexes.contains(*it));
        let is_added = |it: &&Arc<Handler>| edit_of_new(&old.watching, it) == HandlerEdit::Added;
        let watching = new.watching.iter().filter(is_added);
        NewHandlers {
            indexes: own.cloned().collect_set(),
            watching: watching.map(|it| Arc::clone(&it.id)).collect_set(),
        }
    }

    /// Adds handlers of a later version.
    pub fn add(&mut self, later: NewHandlers) {
        self.indexes.extend(later.indexes);
        self.watching.extend(later.watching);
    }

    /// Returns whether no handler is new.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.watching.is_empty()
    }
}

impl fmt::Display for EditEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EditEffect::Nothing => "nothing",
            EditEffect::IfFailed => {
                "all objects, if handlers have failed permanently on any of them"
            }
            EditEffect::IfHeld => "all objects, if it needed the finalizer",
            EditEffect::Running => "the objects that it runs for",
            EditEffect::Refill => "all objects of the resources that fill the index",
            EditEffect::All => "all objects",
        })
    }
}

fn of_category(handlers: &ResourceHandlers, category: Category) -> &[Arc<Handler>] {
    match category {
        Category::Changing => &handlers.changing,
        Category::Watching => &handlers.watching,
        Category::Spawning => &handlers.spawning,
        Category::Indexing => &handlers.indexing,
        Category::Activity | Category::Admission | Category::Conversion => &[],
    }
}

/// Returns how a handler differs from the old ones with the same declaration.
fn edit_of_new(old: &[Arc<Handler>], handler: &Handler) -> HandlerEdit {
    let mut edit = HandlerEdit::Added;
    for before in declared_like(old, handler) {
        if before.is_same(handler) {
            return HandlerEdit::Unchanged;
        }
        if sees_same(before, handler) {
            edit = HandlerEdit::Edited;
        }
    }
    edit
}

/// Returns how an old handler was edited; one that is declared with other filters counts as edited, too.
fn edit_of_old(new: &[Arc<Handler>], handler: &Handler) -> HandlerEdit {
    let mut now = declared_like(new, handler).peekable();
    if now.peek().is_none() {
        HandlerEdit::Removed
    } else if now.any(|it| it.is_same(handler)) {
        HandlerEdit::Unchanged
    } else {
        HandlerEdit::Edited
    }
}

fn declared_like<'a>(
    handlers: &'a [Arc<Handler>],
    one: &'a Handler,
) -> impl Iterator<Item = &'a Arc<Handler>> {
    handlers.iter().filter(move |it| it.is_namesake(one))
}

/// Returns whether both select the same objects, and use the finalizer in the same way.
fn sees_same(one: &Handler, other: &Handler) -> bool {
    one.filters_same(other)
        && one.requires_finalizer() == other.requires_finalizer()
        && one.deleted == other.deleted
}

fn are_same(old: &[Arc<Handler>], new: &[Arc<Handler>]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.is_same(new))
}
