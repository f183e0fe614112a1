//! One task per resource and namespace: brings each event to the queue of its object.
//!
//! Hop 2 of the walk. Before: `cluster/watch.rs`. After: `worker.rs`. The task never waits for a worker, so a slow handler
//! cannot make the server cut our watch.
//!
//! | file | does |
//! |---|---|
//! | `mod.rs` | waits: for events, for the end of workers, for pauses, for what ends it |
//! | `taking.rs` | what each event means: who came, who is gone, who is to be told |
//! | `succession.rs` | other handlers take over |
//! | `crew.rs` | the queues and the workers |
//! | `farewell.rs` | the end, and what becomes of the objects |

mod crew;
mod farewell;
mod succession;
mod taking;

use std::{ops::ControlFlow, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{sync::oneshot, task};
use tokio_util::sync::CancellationToken;

use self::crew::{Crew, Retired};
pub(super) use self::farewell::Farewell;
use super::{
    post::Post, review::Review, seen::Seen, serving::Serving, standby::Standby,
    stream_log::StreamLog,
};
use crate::features::indexes::Hold;
use crate::ports::{ApiError, Extent, Metrics, Pulse, ResourceLabels, StreamEvent, StreamTarget};

/// After so many events the workers get a turn: a listing comes all at once, and its objects should not all have a worker
/// before the first of them has done its work.
const EVENTS_PER_TURN: usize = 64;

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
    crew: Crew,
    seen: Seen,
    /// What to work on if this replica leads.
    standby: Standby,
    /// The look at all objects that goes on.
    review: Option<Review>,
    /// Waits for the list of the stream that goes on.
    listing: Option<Arc<Hold>>,
}

impl Streaming {
    /// A stream of one namespace, or of the whole cluster.
    pub(super) fn new(post: Post, namespace: Option<Arc<str>>) -> Self {
        let serving = post.get();
        Streaming {
            crew: Crew::new(post.clone()),
            post,
            seen: Seen::new(Arc::clone(&serving.resource), &serving.handlers.watching),
            standby: Standby::new(serving.leadership.is_leading()),
            serving,
            namespace,
            review: None,
            listing: None,
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
        self.part(farewell, &exit).await
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
                retired = self.crew.tend() => self.retire(retired),
                item = events.next() => {
                    let Some(item) = item else { return ControlFlow::Break(None) };
                    self.take(item, &mut log);
                    self.crew.postpone();
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
                retired = self.crew.tend() => self.retire(retired),
                () = &mut resumed => break,
            }
        }
        tracing::debug!(target: "kopf.watching", "Resuming the watch-stream for {name}.");
        ControlFlow::Continue(())
    }

    /// A worker has ended: what it knows of its object is kept.
    fn retire(&mut self, retired: Option<Retired>) {
        if let Some(Retired { key, shown }) = retired {
            self.seen.show(&key, shown);
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

    /// The resource and where it is watched.
    fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} in '{namespace}'", self.serving.resource),
            None => format!("{} cluster-wide", self.serving.resource),
        }
    }
}
