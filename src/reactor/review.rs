//! A look at all objects of a stream beside its watch, because other handlers want to see them.
//!
//! One list is asked for while the watch goes on, so that no event is missed. What the list shows of an object may be older than
//! what the watch has brought in the meantime, and is not needed then: only those objects are taken from it that are known, and
//! that have not come to the new handlers otherwise. A list that the stream itself begins later does as well.
//!
//! If other handlers come before it is complete, it begins again for both: those objects that the first ones have seen come to
//! the second ones only.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};

use super::serving::Turn;
use crate::features::indexes::Hold;
use crate::logic::review::News;
use crate::ports::{ApiError, StreamEvent};

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// A look that is not complete.
pub(super) struct Review {
    /// The list; `None` if that of the stream itself will do, which is to come.
    list: Option<Events>,
    /// For whom it is.
    audience: Audience,
    /// Waits for it.
    pub(super) hold: Arc<Hold>,
    /// The stream has begun a list of its own since then.
    is_overtaken: bool,
    /// The failure that was told last.
    told: String,
}

/// Handlers that are to see all objects; never none.
pub(super) struct Audience {
    /// By the turn with which they have come, in this order.
    news: Vec<(Turn, News)>,
    /// All of it.
    all: Arc<News>,
    turn: Turn,
}

impl Audience {
    /// What is new with this turn.
    pub(super) fn new(turn: Turn, news: News) -> Self {
        Audience { all: Arc::new(news.clone()), news: vec![(turn, news)], turn }
    }

    /// The same, and those of an earlier look that was not completed.
    #[must_use]
    pub(super) fn after(self, earlier: Audience) -> Self {
        let mut all = News::clone(&earlier.all);
        all.absorb(News::clone(&self.all));
        let news = earlier.news.into_iter().chain(self.news).collect();
        Audience { news, all: Arc::new(all), turn: self.turn }
    }

    /// The latest turn of them.
    pub(super) fn turn(&self) -> Turn {
        self.turn
    }

    /// All of them.
    pub(super) fn all(&self) -> &Arc<News> {
        &self.all
    }

    /// Those that have not seen an object yet which the handlers of this turn have seen.
    pub(super) fn since(&self, shown: Turn) -> Arc<News> {
        if self.news.iter().all(|(turn, _)| *turn > shown) {
            return Arc::clone(&self.all);
        }
        let mut since = News::default();
        for (_, news) in self.news.iter().filter(|(turn, _)| *turn > shown) {
            since.absorb(news.clone());
        }
        Arc::new(since)
    }
}

impl Review {
    /// One that begins with this list, or with the next of the stream itself.
    pub(super) fn new(list: Option<Events>, audience: Audience, hold: Arc<Hold>) -> Self {
        Review { list, audience, hold, is_overtaken: false, told: String::new() }
    }

    /// For whom it is.
    pub(super) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// It is given up: others go on for those for whom it was.
    pub(super) fn give_up(self) -> Audience {
        self.audience
    }

    /// The next item of its list.
    pub(super) async fn next(&mut self) -> Option<Result<StreamEvent, ApiError>> {
        match &mut self.list {
            Some(list) => list.next().await,
            None => std::future::pending().await,
        }
    }

    /// The watch is not read any more: the list with which it begins again will do.
    pub(super) fn leave_to_stream(&mut self) {
        self.list = None;
    }

    /// Tells that it has failed; the list is tried again by itself.
    pub(super) fn tell(&mut self, name: &str, error: &ApiError) {
        if self.told != error.message {
            tracing::warn!(
                target: "kopf.watching",
                "The objects of {name} cannot be listed for the handlers that have changed, which will be tried again: {error}."
            );
            self.told.clone_from(&error.message);
        }
    }

    /// The stream begins a list of its own.
    pub(super) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    /// Whether the list of the stream that is complete now shows everything that this one would.
    pub(super) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::{Audience, News};

    fn news(id: &str) -> News {
        News { watching: [id.into()].into(), ..News::default() }
    }

    #[test]
    fn who_has_seen_an_object_is_not_shown_it_again() {
        let audience = Audience::new(4, news("b")).after(Audience::new(2, news("a")));
        let ids = |shown| audience.since(shown).watching.iter().cloned().collect::<Vec<_>>();
        assert_eq!(ids(1), ["a".into(), "b".into()]);
        assert_eq!((ids(2), ids(3)), (vec!["b".into()], vec!["b".into()]));
        assert!(ids(4).is_empty());
        assert_eq!((audience.turn(), audience.all().watching.len()), (4, 2));
    }
}
