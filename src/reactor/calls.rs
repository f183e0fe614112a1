//! Which handlers of raw events and of indexes an event is still to come to.
//!
//! Each is called once for each event: a repetition of its cycle calls those that came with another generation of handlers in
//! between, and no others. And an object for which nothing happens comes to new handlers once, whoever brings it: a worker that
//! was busy with it when they came, or the look of the stream at all its objects. So both note how far they are, as a [`Turn`].

use std::{collections::BTreeSet, sync::Arc};

use super::{
    queue::Event,
    serving::{Serving, Turn},
};
use crate::logic::review::News;

/// Handlers of one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// All of them.
    All,
    /// Those of these ids, as they have seen nothing of the object yet.
    Only(BTreeSet<Arc<str>>),
}

/// Who is still to be called for one event, beside handlers of changes, daemons and timers.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    /// Handlers of indexes.
    pub(super) indexing: Whom,
    /// Handlers of raw events.
    pub(super) watching: Whom,
    /// The handlers that have seen the object when these were called, and all before them.
    pub(super) turn: Turn,
}

impl Whom {
    fn nobody() -> Self {
        Whom::Only(BTreeSet::new())
    }

    /// Whether nobody is left.
    pub(super) fn is_nobody(&self) -> bool {
        matches!(self, Whom::Only(ids) if ids.is_empty())
    }

    fn add(&mut self, ids: BTreeSet<Arc<str>>) {
        match self {
            Whom::All => {}
            Whom::Only(known) => known.extend(ids),
        }
    }
}

impl Calls {
    /// For an event that comes to its first cycle, of these handlers. `shown`: those that have seen the object already.
    pub(super) fn of(event: &Event, serving: &Serving, shown: Turn) -> Self {
        let Some(turn) = event.review else {
            return Calls { indexing: Whom::All, watching: Whom::All, turn: serving.turn };
        };
        let mut calls = Calls { indexing: Whom::nobody(), watching: Whom::nobody(), turn };
        match &event.news {
            // While it was on its way, the object has come to them otherwise.
            Some(_) if shown >= turn => calls.turn = shown,
            Some(news) => calls.add(News::clone(news)),
            None => {}
        }
        calls
    }

    /// Adds what is new if another generation has come in between.
    pub(super) fn renew(&mut self, before: &Serving, now: &Serving) {
        // The look of the stream brings what was missed before.
        if now.turn == before.turn || self.turn != before.turn {
            return;
        }
        self.add(now.news_since(before));
        self.turn = now.turn;
    }

    /// All have had their call.
    pub(super) fn end(&mut self) {
        self.indexed();
        self.watching = Whom::nobody();
    }

    /// Those of indexes have had it.
    pub(super) fn indexed(&mut self) {
        self.indexing = Whom::nobody();
    }

    /// Those of raw events have it now.
    pub(super) fn take_watching(&mut self) -> Whom {
        std::mem::replace(&mut self.watching, Whom::nobody())
    }

    fn add(&mut self, news: News) {
        self.indexing.add(news.indexes);
        self.watching.add(news.watching);
    }
}
