//! The events that wait to be posted, and those being posted.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};

use crate::call::{Logger, LoggerKind, QueuedEvent};
use crate::logic::{
    background::posting::{self, NewEvent},
    handlers::outcome::LogLevel,
    object::{ObjectRef, resource::Resource},
};
use crate::ports::{Clock, Cluster, NewObject};
use crate::settings::PostingSettings;

/// Maximum number of waiting events of all objects. Beyond it, they stay in the queue `call/event_queue.rs`, which drops events
/// when it is full.
const WAITING_MAX: usize = 10_000;
/// Maximum number of waiting events of one object: events that cannot be posted must not block those of other objects.
const WAITING_OF_ONE_MAX: usize = 100;

/// The events of one object.
#[derive(Default)]
struct PostingQueue {
    /// The first one is being posted, or is the next to be.
    events: VecDeque<QueuedEvent>,
    /// Whether an event was dropped since one was posted.
    is_full: bool,
}

/// A dispatcher that posts the events of many objects.
pub(super) struct Dispatcher {
    client: Arc<EventClient>,
    settings: PostingSettings,
    queues: BTreeMap<PostingKey, PostingQueue>,
    /// The objects whose event is next, where the number of concurrent requests is limited.
    ready: VecDeque<PostingKey>,
    posting: FuturesUnordered<BoxFuture<'static, PostingKey>>,
    waiting: usize,
}

/// The identity of an object: its uid, or else its other identifying fields.
type PostingKey = Arc<str>;

struct EventClient {
    cluster: Arc<dyn Cluster>,
    clock: Clock,
    /// The resource of events.
    events: Resource,
}

impl Dispatcher {
    /// Creates a dispatcher without events.
    pub(super) fn new(cluster: Arc<dyn Cluster>, settings: PostingSettings, clock: Clock) -> Self {
        Dispatcher {
            client: Arc::new(EventClient { cluster, clock, events: events() }),
            settings,
            queues: BTreeMap::new(),
            ready: VecDeque::new(),
            posting: FuturesUnordered::new(),
            waiting: 0,
        }
    }

    /// Returns the number of events that are not posted yet.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Returns whether there are no events.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Returns whether one more event can wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX
    }

    /// Accepts an event. It is posted at once if its object has no earlier one.
    pub(super) fn accept(&mut self, post: QueuedEvent) {
        let key = key(&post.about);
        let queue = self.queues.entry(Arc::clone(&key)).or_default();
        if queue.events.len() >= WAITING_OF_ONE_MAX {
            // One line until there is room: a script may post without end.
            if !std::mem::replace(&mut queue.is_full, true) {
                let text = format!(
                    "{WAITING_OF_ONE_MAX} Kubernetes events of this object are waiting to be posted: further ones are dropped \
                     until there is room, starting with {}.",
                    posting::shown(&post.note)
                );
                Logger::of_object(LoggerKind::Local, post.about).log(LogLevel::Warning, &text);
            }
            return;
        }
        queue.events.push_back(post);
        self.waiting = self.waiting.saturating_add(1);
        if queue.events.len() == 1 {
            self.ready.push_back(key);
            self.dispatch();
        }
    }

    /// Waits until one event is posted or dropped after failures. Never completes if none is being posted.
    pub(super) async fn advance(&mut self) {
        let Some(key) = self.posting.next().await else { return std::future::pending().await };
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.events.pop_front();
            queue.is_full = false;
            if queue.events.is_empty() {
                self.queues.remove(&key);
            } else {
                // After the events of other objects, where concurrent requests are limited.
                self.ready.push_back(key);
            }
        }
        self.dispatch();
    }

    /// Posts all waiting events.
    pub(super) async fn finish(&mut self) {
        while !self.is_idle() {
            self.advance().await;
        }
    }

    /// Starts to post the next events, up to the limit of concurrent requests.
    fn dispatch(&mut self) {
        let limit = self.settings.worker_limit.unwrap_or(usize::MAX);
        while self.posting.len() < limit {
            let Some(key) = self.ready.pop_front() else { return };
            if let Some(post) = self.queues.get(&key).and_then(|it| it.events.front()) {
                let (client, post) = (Arc::clone(&self.client), post.clone());
                let default = Some(client.cluster.default_namespace()).filter(|it| !it.is_empty());
                let now = client.clock.now();
                let event = posting::compose(&post.note, &post.about, &self.settings, default, now);
                self.posting.push(Box::pin(async move {
                    if let Some(event) = event {
                        client.post(&post, &event).await;
                    }
                    key
                }));
            }
        }
    }
}

impl EventClient {
    async fn post(&self, post: &QueuedEvent, event: &NewEvent) {
        let request = NewObject {
            resource: &self.events,
            namespace: Some(&event.namespace),
            payload: Bytes::from(event.body.to_string()),
            backoffs: Some(&post.backoffs),
        };
        if let Err(error) = self.cluster.create(request).await {
            let text = posting::failed(error.status, &error.message, &post.note);
            // Not a logger whose lines are posted: that would never end.
            let logger = Logger::of_object(LoggerKind::Local, Arc::clone(&post.about));
            logger.log(LogLevel::Warning, &text);
        }
    }
}

/// Returns the resource of events.
pub(super) fn events() -> Resource {
    Resource {
        version: "v1".into(),
        plural: "events".into(),
        kind: "Event".into(),
        namespaced: true,
        ..Resource::default()
    }
}

fn key(about: &ObjectRef) -> PostingKey {
    if about.uid.is_empty() {
        let namespace = about.namespace.as_deref().unwrap_or_default();
        return format!("{}/{}/{namespace}/{}", about.api_version, about.kind, about.name).into();
    }
    about.uid.as_str().into()
}
