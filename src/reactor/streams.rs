//! One task per resource and namespace: brings each event to the queue of its object.
//!
//! Hop 2 of the walk. Before: `cluster/watch.rs`. After: `worker.rs`. The task never waits for a worker, so a slow handler
//! cannot make the server cut our watch. What the events do not tell it finds out itself: an object that a complete listing
//! lacks is gone, and gets the event that it missed.
//!
//! Another generation of handlers takes over in place: connection, queues and what is known of the objects stay. Which of the
//! objects are looked at again is decided in `logic/review.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use futures::{StreamExt as _, stream::BoxStream};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::oneshot,
    task::{self, JoinSet},
    time,
};
use tokio_util::sync::CancellationToken;

use super::{
    backlog::Backlog,
    memory::Key,
    place::{Place, Places},
    post::Post,
    queue::{Event, Queue},
    review::Review,
    seen::Seen,
    serving::Serving,
    standby::Standby,
    stream_log::StreamLog,
    worker::Worker,
};
use crate::features::{daemons::Sight, indexes::Hold};
use crate::logic::{
    indexing::Owner, object::Object, reason::EventType, review, review::News, stopping::StopReason,
};
use crate::ports::{ApiError, Extent, Metrics, Pulse, ResourceLabels, StreamEvent, StreamTarget};

/// After so many events the workers get a turn: a listing comes all at once, and its objects should not all have a worker
/// before the first of them has done its work.
const EVENTS_PER_TURN: usize = 64;

/// Why a stream ends before the operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// Its resource or its namespace is not in the cluster any more, and neither are its objects.
    Gone,
    /// Nobody wants the resource any more; this is what its daemons and timers are told.
    Unserved(StopReason),
    /// Another stream takes over its objects.
    Replaced,
}

/// The events of one stream.
type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// What ends a stream: its own farewell, or the end of the operator.
struct Signals<'a> {
    told: oneshot::Receiver<Farewell>,
    exit: &'a CancellationToken,
}

/// One stream and its workers.
pub(super) struct Streaming {
    /// Where its workers find the handlers of the present generation.
    post: Post,
    /// What has been found there last.
    serving: Arc<Serving>,
    namespace: Option<Arc<str>>,
    /// Of the objects with a worker, and of those that wait for one.
    queues: BTreeMap<Key, Arc<Queue>>,
    workers: JoinSet<Key>,
    places: Places,
    backlog: Backlog,
    seen: Seen,
    /// What to work on if this replica leads.
    standby: Standby,
    /// The look at all objects that goes on.
    review: Option<Review>,
    /// Waits for the list of the stream that goes on.
    listing: Option<Arc<Hold>>,
    /// Nothing more will come.
    is_ending: bool,
}

impl Streaming {
    /// A stream of one namespace, or of the whole cluster.
    pub(super) fn new(post: Post, namespace: Option<Arc<str>>) -> Self {
        let serving = post.get();
        Streaming {
            post,
            places: Places::new(serving.settings.queueing.worker_limit),
            seen: Seen::new(Arc::clone(&serving.resource), &serving.handlers.watching),
            standby: Standby::new(serving.leadership.is_leading()),
            serving,
            namespace,
            queues: BTreeMap::new(),
            workers: JoinSet::new(),
            backlog: Backlog::default(),
            review: None,
            listing: None,
            is_ending: false,
        }
    }

    /// Takes over from a stream of the same target: of the objects that it has seen, none may go unnoticed.
    pub(super) fn inherit(&mut self, seen: Seen) {
        self.seen.inherit(seen);
    }

    /// Runs until it is told to end, or until the operator does; then lets the workers finish. Gives what another stream of
    /// the same target should inherit, if one is to come.
    pub(super) async fn run(
        mut self,
        told: oneshot::Receiver<Farewell>,
        exit: CancellationToken,
    ) -> Option<Seen> {
        let farewell = self.serve(Signals { told, exit: &exit }).await;
        // Nobody waits for it any more, whichever generation it was.
        self.review = None;
        self.serving.hold.end();
        self.post.get().hold.end();
        match farewell {
            Some(Farewell::Replaced) => {
                self.settle(&exit).await;
                Some(self.seen)
            }
            Some(Farewell::Gone) => {
                let known = self.seen.drain();
                let keys = known.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                for (key, object) in known {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                self.settle(&exit).await;
                self.let_go(&keys, StopReason::ResourceDeleted);
                None
            }
            Some(Farewell::Unserved(why)) => {
                self.tell_of_finalizers();
                self.backlog = Backlog::default();
                self.settle(&exit).await;
                let known = self.seen.drain();
                for (_, object) in &known {
                    self.serving.facilities.indexes.remove(&Owner::of(object.header()));
                }
                let keys = known.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
                self.let_go(&keys, why);
                None
            }
            None => {
                self.finish().await;
                None
            }
        }
    }

    /// Takes events until the end, except in pauses; gives the reason, if it is not that of the operator.
    async fn serve(&mut self, mut signals: Signals<'_>) -> Option<Farewell> {
        loop {
            if let ControlFlow::Break(end) = self.sit_out_pause(&mut signals).await {
                return end;
            }
            let pulse = Arc::new(self.pulse());
            let events = self.serving.cluster.stream_with_pulse(self.target(), pulse);
            if let ControlFlow::Break(end) = self.listen(events, &mut signals).await {
                return end;
            }
            if let Some(review) = &mut self.review {
                review.leave_to_stream();
            }
        }
    }

    fn target(&self) -> StreamTarget {
        StreamTarget {
            resource: Arc::clone(&self.serving.resource),
            namespace: self.namespace.clone(),
            extent: Extent::Whole,
            settings: Arc::clone(&self.serving.settings),
            restrictions: None,
        }
    }

    /// Takes events until the end, or until the operator pauses.
    async fn listen(
        &mut self,
        mut events: Events,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<Farewell>> {
        let (pauses, leadership) = (self.serving.pauses.clone(), self.serving.leadership.clone());
        let mut paused = std::pin::pin!(pauses.next(pauses.count()));
        let mut leading = std::pin::pin!(leadership.until_leading());
        let mut log = StreamLog::new(self.name());
        let mut taken = 0_usize;
        loop {
            let replaced = self.serving.replaced.clone();
            let review = async {
                match &mut self.review {
                    Some(review) => review.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased; // the end first: nothing new begins after it; then who is served by whom; then make room; then more work
                () = signals.exit.cancelled() => return ControlFlow::Break(None),
                farewell = &mut signals.told => return ControlFlow::Break(farewell.ok()),
                () = &mut paused => return ControlFlow::Continue(()),
                () = replaced.cancelled() => self.adopt(true),
                () = &mut leading, if self.standby.is_on() => self.take_over(),
                Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
                () = self.places.freed(), if !self.backlog.is_empty() => self.relieve(),
                item = events.next() => {
                    let Some(item) = item else { return ControlFlow::Break(None) };
                    self.take(item, &mut log);
                    self.places.postpone();
                    taken = taken.wrapping_add(1);
                    if taken.is_multiple_of(EVENTS_PER_TURN) {
                        task::yield_now().await;
                    }
                }
                item = review => {
                    self.look(item);
                    taken = taken.wrapping_add(1);
                    if taken.is_multiple_of(EVENTS_PER_TURN) {
                        task::yield_now().await;
                    }
                }
            }
        }
    }

    /// Waits while the operator is paused. Workers finish what they do, and begin nothing.
    async fn sit_out_pause(&mut self, signals: &mut Signals<'_>) -> ControlFlow<Option<Farewell>> {
        let pauses = self.serving.pauses.clone();
        if !pauses.is_paused() {
            return ControlFlow::Continue(());
        }
        let (name, blockers) = (self.name(), pauses.blockers().join(", "));
        tracing::debug!(target: "kopf.watching", "Pausing the watch-stream for {name} (blockers: {blockers}).");
        let mut resumed = std::pin::pin!(pauses.until(false));
        loop {
            let replaced = self.serving.replaced.clone();
            tokio::select! {
                biased; // as in `listen`
                () = signals.exit.cancelled() => return ControlFlow::Break(None),
                farewell = &mut signals.told => return ControlFlow::Break(farewell.ok()),
                () = replaced.cancelled() => self.adopt(false),
                Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
                () = self.places.freed(), if !self.backlog.is_empty() => self.relieve(),
                () = &mut resumed => break,
            }
        }
        tracing::debug!(target: "kopf.watching", "Resuming the watch-stream for {name}.");
        ControlFlow::Continue(())
    }

    /// Other handlers serve from now on. Whatever is under way goes on, and of the objects only those are looked at again that
    /// must be: by what is known of them, or by another list.
    fn adopt(&mut self, is_listening: bool) {
        let now = self.post.get();
        let before = std::mem::replace(&mut self.serving, now);
        let (old, new) = (&before.handlers, Arc::clone(&self.serving.handlers));
        let keeps_steps = !new.watching.is_empty();
        self.queues.values().for_each(|it| it.keep_steps(keeps_steps));
        self.seen.look_for(&new.watching);
        let mut news = self.serving.news_since(&before);
        let mut what = review::review(old, &new, &news);
        if let review::Review::Attended(ids) = &what {
            match self.attended(ids) {
                Some(objects) => self.look_at(objects, &Arc::new(std::mem::take(&mut news))),
                None => what = review::Review::Everybody,
            }
        }
        if what == review::Review::Everybody {
            if let Some(unfinished) = self.review.take() {
                news.absorb(News::clone(&unfinished.news));
            }
            let list = is_listening.then(|| self.serving.cluster.stream(self.target()));
            let hold = Arc::clone(&self.serving.hold);
            self.review = Some(Review::new(list, Arc::new(news), hold));
        }
    }

    /// The objects in whose background any of these daemons and timers runs. Nothing if one has ended for some object, of which
    /// nothing more is known then.
    fn attended(&self, ids: &BTreeSet<Arc<str>>) -> Option<Vec<(Key, Arc<Object>)>> {
        let mut objects = Vec::new();
        for key in self.seen.keys() {
            match self.serving.memories.sight(key, ids) {
                Sight::None => {}
                Sight::Object(object) => objects.push((key.clone(), object)),
                Sight::Lost => return None,
            }
        }
        Some(objects)
    }

    /// Has another look at those of the objects that nothing else brings to the handlers.
    fn look_at(&mut self, objects: Vec<(Key, Arc<Object>)>, news: &Arc<News>) {
        for (key, object) in objects {
            let event = Event::review(object, news);
            match self.queues.get(&key) {
                Some(queue) if !queue.is_closed() => {
                    // What waits is newer, and comes to the same handlers.
                    let _is_needed = queue.push_if_idle(event);
                }
                Some(_) | None => self.dispatch(&key, event),
            }
        }
    }

    /// Takes an item of the list of a look.
    fn look(&mut self, item: Option<Result<StreamEvent, ApiError>>) {
        let Some(review) = &self.review else { return };
        match item {
            Some(Ok(StreamEvent::Object(_, object))) => {
                let key = Key::of(object.header());
                // Those that are not known yet will come by the watch.
                if review.is_touched(&key) || !self.seen.retouch(&key, object.header()) {
                    return;
                }
                review.hold.seen(object.header());
                let event = Event::review(object, &review.news);
                if !self.standby.is_on() {
                    self.dispatch(&key, event);
                } else if !review.news.indexes.is_empty() {
                    self.dispatch(&key, Event { for_indexes: true, ..event });
                }
            }
            Some(Ok(StreamEvent::Listed)) | None => {
                review.hold.listed();
                self.review = None;
            }
            Some(Ok(StreamEvent::Listing | StreamEvent::Alive)) => {}
            Some(Err(error)) => {
                let name = self.name();
                self.review.iter_mut().for_each(|it| it.tell(&name, &error));
            }
        }
    }

    /// From now on this replica acts: on what it has seen so far first.
    fn take_over(&mut self) {
        for (key, event) in self.standby.take_over() {
            self.dispatch(&key, event);
        }
    }

    fn take(&mut self, item: Result<StreamEvent, ApiError>, log: &mut StreamLog) {
        match item {
            Ok(StreamEvent::Object(event_type, object)) => {
                self.serving.hold.seen(object.header());
                let key = Key::of(object.header());
                if event_type == Some(EventType::Deleted) {
                    self.seen.forget(&key);
                } else {
                    self.seen.note(&key, object.header());
                }
                let news = self.review.as_mut().map(|review| {
                    review.touch(&key);
                    Arc::clone(&review.news)
                });
                self.bring(&key, Event { news, ..Event::new(event_type, object) });
            }
            Ok(StreamEvent::Listing) => {
                self.seen.begin();
                self.listing = Some(Arc::clone(&self.serving.hold));
                self.review.iter_mut().for_each(Review::overtake);
            }
            Ok(StreamEvent::Listed) => {
                self.count(|it| &it.listings);
                let missed = self.seen.complete();
                if !missed.is_empty() {
                    tracing::info!(
                        target: "kopf.watching",
                        "{} objects of {} were deleted while they were not watched.",
                        missed.len(),
                        self.name()
                    );
                }
                for (key, object) in missed {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                if let Some(hold) = self.listing.take() {
                    hold.listed();
                }
                self.review.take_if(|it| it.is_overtaken());
            }
            Ok(StreamEvent::Alive) => log.alive(),
            Err(error) => {
                self.count(|it| &it.stream_failures);
                log.failed(&error);
            }
        }
    }

    /// Where the stream tells how it is; gone when the stream is.
    fn pulse(&self) -> Pulse {
        let name = format!("stream/{}", self.name());
        // Each connection is a sound, and a silent one is followed by the next: a healthy stream is never silent for so long.
        let silence_max = self.serving.settings.watching.inactivity_timeout.saturating_mul(3);
        self.serving.health.pulse(&name, Some(silence_max))
    }

    fn count(&self, which: impl FnOnce(&Metrics) -> &Family<ResourceLabels, Counter>) {
        let resource = self.serving.resource.to_string();
        which(self.serving.health.metrics()).get_or_create(&ResourceLabels { resource }).inc();
    }

    /// Brings an event to its queue. A standby notes it, and only keeps its indexes.
    fn bring(&mut self, key: &Key, event: Event) {
        if !self.standby.is_on() {
            return self.dispatch(key, event);
        }
        self.standby.note(key, &event);
        if !self.serving.handlers.indexing.is_empty() {
            self.dispatch(key, Event { for_indexes: true, ..event });
        }
    }

    fn dispatch(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        let refused = match self.queues.get(key) {
            Some(queue) => queue.push(event).err(),
            None => Some(event),
        };
        match refused {
            Some(event) => self.open(key, event),
            // It may have waited as one of a listing.
            None if is_live && self.backlog.has(key) => self.backlog.add(key, true),
            None => {}
        }
    }

    /// A new queue, and a worker as soon as there is a place.
    fn open(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        // Those who call handlers of raw events must see each.
        let queue = Arc::new(Queue::new(!self.serving.handlers.watching.is_empty()));
        // A fresh queue refuses nothing.
        drop(queue.push(event));
        self.queues.insert(key.clone(), queue);
        match self.places.try_take().filter(|_| self.backlog.is_empty()) {
            Some(place) => self.hire(key.clone(), place),
            None => self.backlog.add(key, is_live),
        }
    }

    /// Gives free places to those who wait.
    fn relieve(&mut self) {
        while !self.backlog.is_empty() {
            let Some(place) = self.places.try_take() else { return };
            let Some(key) = self.backlog.next() else { return };
            self.hire(key, place);
        }
    }

    fn hire(&mut self, key: Key, place: Place) {
        let Some(queue) = self.queues.get(&key).map(Arc::clone) else { return };
        if self.is_ending {
            queue.end();
        }
        let lingers = !self.places.are_limited();
        let post = self.post.clone();
        let worker = Worker { post, key: key.clone(), queue, place, lingers };
        let busy = self.serving.health.metrics().busy();
        // In a box of its own: tasks are aligned to cache lines, which leaves holes between big ones when thousands come and go.
        self.workers.spawn(Box::pin(async move {
            let _busy = busy;
            worker.run().await;
            key
        }));
    }

    /// Drops the queue of a worker that has ended, unless its successor already works.
    fn forget(&mut self, ended: Option<Key>) {
        let Some(key) = ended else { return };
        if self.queues.get(&key).is_some_and(|it| it.is_closed()) {
            self.queues.remove(&key);
        }
    }

    /// Ends within a running operator: workers finish what there is to do, in their own time.
    async fn settle(&mut self, exit: &CancellationToken) {
        self.is_ending = true;
        self.queues.values().for_each(|it| it.end());
        loop {
            // One leaves, another one comes.
            self.relieve();
            tokio::select! {
                biased; // the end of the operator cuts it short
                () = exit.cancelled() => return self.finish().await,
                ended = self.workers.join_next() => match ended {
                    Some(ended) => self.forget(ended.ok()),
                    None => return,
                },
                () = self.places.freed(), if !self.backlog.is_empty() => {}
            }
        }
    }

    /// Nobody takes the finalizer off objects that are not watched. Neither does a restart, but there it is less of a surprise.
    fn tell_of_finalizers(&self) {
        let handlers = &self.serving.handlers;
        let mut all = handlers.changing.iter().chain(&handlers.spawning);
        if all.any(|it| it.requires_finalizer()) {
            tracing::warn!(
                target: "kopf.watching",
                "No handler wants {} any more. Its objects keep the finalizer {} until one does, and cannot be deleted \
                 before: declare any handler of it, and they are let go.",
                self.name(),
                self.serving.settings.persistence.finalizer
            );
        }
    }

    /// Nothing remains of objects that are not served any more.
    fn let_go(&self, keys: &[Key], why: StopReason) {
        let forgotten = keys.iter().filter_map(|it| self.serving.memories.forget(it));
        for background in forgotten.filter_map(|it| it.background) {
            background.dismiss(&self.serving.background, why);
        }
    }

    /// Ends with the operator: workers finish what they do, but not for long.
    async fn finish(&mut self) {
        self.queues.values().for_each(|it| it.end());
        let all_ended = async { while self.workers.join_next().await.is_some() {} };
        let timeout = self.serving.settings.queueing.exit_timeout;
        if time::timeout(timeout, all_ended).await.is_err() {
            let left = self.workers.len();
            tracing::warn!(
                target: "kopf.queueing",
                "Unprocessed streams left for {left} objects of {}: their handlers are interrupted.",
                self.serving.resource
            );
            self.workers.shutdown().await;
        }
    }

    /// The resource and where it is watched.
    fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} in '{namespace}'", self.serving.resource),
            None => format!("{} cluster-wide", self.serving.resource),
        }
    }
}
