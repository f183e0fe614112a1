//! The events that wait for their turn, and those on their way.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};

use crate::logic::{
    object::ObjectRef,
    outcome::LogLevel,
    posting::{self, NewEvent},
    resource::Resource,
};
use crate::ports::{Clock, Cluster, Logger, LoggerKind, NewObject, Post};
use crate::settings::Posting;

/// The most events that wait, of all objects. Beyond it they stay in the queue before us, which drops what it cannot hold.
const WAITING_MAX: usize = 10_000;
/// The most events of one object that wait: one that cannot be posted should not fill the place of all others.
const WAITING_OF_ONE_MAX: usize = 100;

/// One object's events: the first of them is on its way, or waits for a place.
type Line = VecDeque<Post>;

/// Posts events of many objects.
pub(super) struct Desk {
    outlet: Arc<Outlet>,
    settings: Posting,
    lines: BTreeMap<Key, Line>,
    /// Whose turn is next, where the number of posters is limited.
    ready: VecDeque<Key>,
    posting: FuturesUnordered<BoxFuture<'static, Key>>,
    waiting: usize,
}

/// Identifies an object: by the uid, or by what else there is.
type Key = Arc<str>;

struct Outlet {
    cluster: Arc<dyn Cluster>,
    clock: Clock,
    /// Where events are created.
    events: Resource,
}

impl Desk {
    /// A desk without events.
    pub(super) fn new(cluster: Arc<dyn Cluster>, settings: Posting, clock: Clock) -> Self {
        let events = Resource {
            version: "v1".into(),
            plural: "events".into(),
            kind: "Event".into(),
            namespaced: true,
            ..Resource::default()
        };
        Desk {
            outlet: Arc::new(Outlet { cluster, clock, events }),
            settings,
            lines: BTreeMap::new(),
            ready: VecDeque::new(),
            posting: FuturesUnordered::new(),
            waiting: 0,
        }
    }

    /// How many events are not posted yet.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether there is none.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Whether one more can wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < WAITING_MAX
    }

    /// Takes an event. It goes out at once if none of its object is before it.
    pub(super) fn accept(&mut self, post: Post) {
        let key = key(&post.about);
        let line = self.lines.entry(Arc::clone(&key)).or_default();
        if line.len() >= WAITING_OF_ONE_MAX {
            let text = format!(
                "{WAITING_OF_ONE_MAX} Kubernetes events of this object are waiting to be posted: dropped {}.",
                posting::shown(&post.note)
            );
            Logger::of_object(LoggerKind::Local, post.about).log(LogLevel::Warning, &text);
            return;
        }
        line.push_back(post);
        self.waiting = self.waiting.saturating_add(1);
        if line.len() == 1 {
            self.ready.push_back(key);
            self.dispatch();
        }
    }

    /// Waits until one event is posted, or given up. For ever if none is on its way.
    pub(super) async fn advance(&mut self) {
        let Some(key) = self.posting.next().await else { return std::future::pending().await };
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&key) {
            line.pop_front();
            if line.is_empty() {
                self.lines.remove(&key);
            } else {
                // Behind the others, where places are few.
                self.ready.push_back(key);
            }
        }
        self.dispatch();
    }

    /// Posts everything that waits.
    pub(super) async fn finish(&mut self) {
        while !self.is_idle() {
            self.advance().await;
        }
    }

    /// Sends the next events on their way, as far as there are places.
    fn dispatch(&mut self) {
        let places = self.settings.worker_limit.unwrap_or(usize::MAX);
        while self.posting.len() < places {
            let Some(key) = self.ready.pop_front() else { return };
            if let Some(post) = self.lines.get(&key).and_then(VecDeque::front) {
                let (outlet, post) = (Arc::clone(&self.outlet), post.clone());
                let default = Some(outlet.cluster.default_namespace()).filter(|it| !it.is_empty());
                let now = outlet.clock.now();
                let event = posting::compose(&post.note, &post.about, &self.settings, default, now);
                self.posting.push(Box::pin(async move {
                    if let Some(event) = event {
                        outlet.post(&post, &event).await;
                    }
                    key
                }));
            }
        }
    }
}

impl Outlet {
    async fn post(&self, post: &Post, event: &NewEvent) {
        let request = NewObject {
            resource: &self.events,
            namespace: Some(&event.namespace),
            payload: Bytes::from(event.body.to_string()),
            backoffs: Some(&post.backoffs),
        };
        if let Err(error) = self.cluster.create(request).await {
            let text = posting::failed(error.status, &error.message, &post.note);
            // Never a logger whose lines are posted: that would not end.
            let logger = Logger::of_object(LoggerKind::Local, Arc::clone(&post.about));
            logger.log(LogLevel::Warning, &text);
        }
    }
}

fn key(about: &ObjectRef) -> Key {
    if about.uid.is_empty() {
        let namespace = about.namespace.as_deref().unwrap_or_default();
        return format!("{}/{}/{namespace}/{}", about.api_version, about.kind, about.name).into();
    }
    about.uid.as_str().into()
}
