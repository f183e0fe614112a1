//! The queue of Kubernetes events to be posted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::logic::{
    background::posting::{self, Note},
    handlers::outcome::LogLevel,
    object::ObjectRef,
};
use crate::settings::{PostingSettings, Settings};

/// Maximum number of events in the queue. Beyond it, new events are dropped with a warning: scripts never wait for the queue.
const QUEUE_MAX: usize = 1024;
/// A threshold that no log level reaches: no line of a logger is posted.
const NEVER: u32 = u32::MAX;

/// A queue of events that returns at once; they are posted in the background. Clones share the queue.
#[derive(Clone)]
pub struct EventQueue(Arc<Shared>);

/// A Kubernetes event to be posted.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedEvent {
    /// The object that the event is about.
    pub about: Arc<ObjectRef>,
    /// The content of the event.
    pub note: Note,
    /// Pauses between the attempts to post it.
    pub backoffs: Vec<Duration>,
}

/// The receiving end of the queue.
pub type EventReceiver = mpsc::Receiver<QueuedEvent>;

struct Shared {
    settings: Arc<Mutex<Settings>>,
    queue: mpsc::Sender<QueuedEvent>,
    /// Present until it is taken.
    inbox: Mutex<Option<EventReceiver>>,
    /// The lowest log level whose lines are posted.
    threshold: AtomicU32,
    /// The queue is full, and the warning has been logged.
    is_full: AtomicBool,
}

impl EventQueue {
    /// Creates a queue for an operator with these settings.
    pub fn new(settings: Arc<Mutex<Settings>>) -> Self {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        EventQueue(Arc::new(Shared {
            settings,
            queue,
            inbox: Mutex::new(Some(inbox)),
            threshold: AtomicU32::new(NEVER),
            is_full: AtomicBool::new(false),
        }))
    }

    /// Returns the present settings.
    pub fn settings(&self) -> PostingSettings {
        self.0.settings.lock().posting.clone()
    }

    /// Returns whether objects have a condition about failures.
    pub fn has_condition(&self) -> bool {
        self.0.settings.lock().posting.condition.is_some()
    }

    /// Starts to post the lines of loggers, if the settings enable it.
    pub fn listen(&self) {
        let settings = self.settings();
        let is_on = settings.enabled && settings.loggers;
        self.0.threshold.store(if is_on { settings.level } else { NEVER }, Ordering::Relaxed);
    }

    /// Returns whether a line of this level would be posted; for loggers that have an object.
    pub fn wants(&self, level: LogLevel) -> bool {
        level.number() >= self.0.threshold.load(Ordering::Relaxed)
    }

    /// Queues a line of a logger.
    pub fn log(&self, about: &Arc<ObjectRef>, level: LogLevel, text: &str) {
        let settings = self.settings();
        if let Some(note) = posting::of_log(&settings, level.number(), &posting::shortened(text)) {
            self.post(QueuedEvent {
                about: Arc::clone(about),
                note,
                backoffs: settings.logging_backoffs.clone(),
            });
        }
    }

    /// Queues an event; drops it if the queue is full.
    pub fn post(&self, post: QueuedEvent) {
        let is_full = self.0.queue.try_send(post).is_err();
        let was_full = self.0.is_full.swap(is_full, Ordering::Relaxed);
        if is_full && !was_full {
            tracing::warn!(
                target: "kopf.events",
                "{QUEUE_MAX} Kubernetes events are waiting to be posted: further ones are dropped until there is room."
            );
        }
    }

    /// Takes the receiving end; only the first call returns it.
    pub fn take(&self) -> Option<EventReceiver> {
        self.0.inbox.lock().take()
    }
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue::new(Arc::default())
    }
}

impl fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue").finish_non_exhaustive()
    }
}
