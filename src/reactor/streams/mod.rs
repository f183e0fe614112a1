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

use std::{ops::ControlFlow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::oneshot,
    task,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use self::crew::{Crew, Retired};
pub(super) use self::farewell::Farewell;
use super::{
    post::Post, review::Review, seen::Seen, serving::Serving, stream_log::StreamLog,
    worker::panic_text,
};
use crate::features::indexes::Hold;
use crate::ports::{
    ApiError, Extent, HealthState, Metrics, Pulse, ResourceLabels, StreamEvent, StreamTarget,
};

/// After so many events the workers get a turn: a listing comes all at once, and its objects should not all have a worker
/// before the first of them has done its work.
const EVENTS_PER_TURN: usize = 64;

/// The first pause before a stream begins again that has ended unexpectedly; it doubles each time.
const RESTART_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of these pauses.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The events of one stream.
type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// What ends a stream: its own farewell, or the end of the operator.
struct Signals<'a> {
    told: oneshot::Receiver<Farewell>,
    exit: &'a CancellationToken,
}

/// The events have ended, which they never should.
struct Ended;

/// One stream and its workers.
pub(super) struct Streaming {
    /// Where its workers find the handlers of the present generation.
    post: Post,
    /// What has been found there last.
    serving: Arc<Serving>,
    namespace: Option<Arc<str>>,
    crew: Crew,
    seen: Seen,
    /// Another replica leads: of the events, only the indexes of this one are kept up to date.
    is_standby: bool,
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
            is_standby: !serving.leadership.is_leading(),
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

    /// Runs until it is told to end, or until the operator does; then lets the workers finish. Returns what another stream of
    /// the same target should inherit, if one is to come.
    ///
    /// A bug must not end it silently: it is logged, and the stream begins again after a pause, with another list.
    pub(super) async fn run(
        mut self,
        told: oneshot::Receiver<Farewell>,
        exit: CancellationToken,
    ) -> Option<Seen> {
        let mut signals = Signals { told, exit: &exit };
        let mut failures = 0_u32;
        let farewell = loop {
            let begun = Instant::now();
            let served = AssertUnwindSafe(self.serve(&mut signals)).catch_unwind().await;
            let reason = match served {
                Ok(Ok(farewell)) => break farewell,
                Ok(Err(Ended)) => "the stream has ended".to_owned(),
                Err(panic) => panic_text(panic.as_ref()),
            };
            failures = if begun.elapsed() > RESTART_PAUSE_MAX { 1 } else { failures + 1 };
            if let ControlFlow::Break(farewell) =
                self.pause_after(&reason, failures, &mut signals).await
            {
                break farewell;
            }
        };
        self.part(farewell, &exit).await
    }

    /// Waits before the stream begins again after an unexpected end. Workers continue.
    async fn pause_after(
        &mut self,
        reason: &str,
        failures: u32,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<Farewell>> {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        let pause = RESTART_PAUSE_MIN.saturating_mul(factor).min(RESTART_PAUSE_MAX);
        tracing::error!(
            target: "kopf.watching",
            "Watching {} failed unexpectedly ({failures} times in a row), restarting in {} s: {reason}",
            self.name(),
            pause.as_secs()
        );
        // The part is unready as long as this pulse lives.
        let pulse = self.pulse();
        pulse.say(HealthState::Unready, reason);
        self.leave_to_stream();
        self.wait(time::sleep(pause), signals).await
    }

    /// Takes events until the end, except in pauses; returns the reason, if it is not that of the operator.
    async fn serve(&mut self, signals: &mut Signals<'_>) -> Result<Option<Farewell>, Ended> {
        loop {
            if let ControlFlow::Break(end) = self.sit_out_pause(signals).await {
                return Ok(end);
            }
            self.is_standby = !self.serving.leadership.is_leading();
            let pulse = Arc::new(self.pulse());
            let events = self.serving.cluster.stream_with_pulse(self.target(), pulse);
            if let ControlFlow::Break(end) = self.listen(events, signals).await {
                return end;
            }
            self.leave_to_stream();
        }
    }

    /// The next list of the stream shows all objects to a review that is not complete.
    fn leave_to_stream(&mut self) {
        if let Some(review) = &mut self.review {
            review.leave_to_stream();
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

    /// Takes events until the end, until the operator pauses, or until this replica leads.
    ///
    /// A takeover begins with another list: what a watch has shown so far may be older than what the former leader has finished.
    async fn listen(
        &mut self,
        mut events: Events,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Result<Option<Farewell>, Ended>> {
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
                () = signals.exit.cancelled() => return ControlFlow::Break(Ok(None)),
                farewell = &mut signals.told => return ControlFlow::Break(Ok(farewell.ok())),
                () = &mut paused => return ControlFlow::Continue(()),
                () = replaced.cancelled() => self.adopt(true),
                () = &mut leading, if self.is_standby => return ControlFlow::Continue(()),
                retired = self.crew.tend() => self.retire(retired),
                item = events.next() => {
                    let Some(item) = item else { return ControlFlow::Break(Err(Ended)) };
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
        self.wait(pauses.until(false), signals).await?;
        tracing::debug!(target: "kopf.watching", "Resuming the watch-stream for {name}.");
        ControlFlow::Continue(())
    }

    /// Waits without listening. Workers finish what they do.
    async fn wait(
        &mut self,
        over: impl Future<Output = ()>,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<Farewell>> {
        let mut over = std::pin::pin!(over);
        loop {
            let replaced = self.serving.replaced.clone();
            tokio::select! {
                biased; // as in `listen`
                () = signals.exit.cancelled() => return ControlFlow::Break(None),
                farewell = &mut signals.told => return ControlFlow::Break(farewell.ok()),
                () = replaced.cancelled() => self.adopt(false),
                retired = self.crew.tend() => self.retire(retired),
                () = &mut over => return ControlFlow::Continue(()),
            }
        }
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
