//! One task per resource and namespace: puts each event into the queue of its object.
//!
//! Step 2 of the walk. Before: `cluster/watch.rs`. After: `reactor/object/worker.rs`. The task never waits for a worker, so a slow handler
//! cannot cause the server to close the watch.
//!
//! | file | does |
//! |---|---|
//! | `mod.rs` | waits: for events, for the end of workers, for pauses, for its end |
//! | `taking.rs` | processes events: which objects exist, which are gone |
//! | `known_objects.rs` | the stored parts of the objects, to detect missed deletions |
//! | `worker_pool.rs` | the queues and the workers |
//! | `end.rs` | the end, and the effect on the objects |
//! | `set.rs` | all streams of the operator: starts, replaces and ends them |
//!
//! The next version of the handlers takes over in `reactor/generation/handover.rs`.

mod backlog;
mod end;
mod known_objects;
pub(super) mod relist;
mod set;
mod stream_log;
mod taking;
mod worker_pool;

use std::{ops::ControlFlow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use tokio::{
    sync::oneshot,
    task,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

pub(super) use self::{end::StreamEnd, set::StreamSet};
use self::{
    known_objects::KnownObjects,
    worker_pool::{Finished, WorkerPool},
};
use crate::features::indexes::ReadinessHold;
use crate::ports::{ApiError, Extent, StreamEvent, StreamTarget};
use crate::reactor::{
    object::{
        context::{SharedContext, StreamContext},
        worker::panic_text,
    },
    streams::{relist::Relist, stream_log::StreamLog},
};
use crate::telemetry::{HealthState, Metrics, Pulse};

/// Number of events after which the stream yields to the workers: a list arrives all at once, and its first objects should be finished
/// before all others have a worker.
const EVENTS_PER_YIELD: usize = 64;

/// Maximum number of objects that wait for a worker before the stream stops reading a list, to limit memory. At least two pages of the list
/// (`settings.watching.chunk_size`), so that the workers never wait for the server.
const WAITING_MAX: usize = 1000;
/// Maximum time to delay the reading of a list: servers expire the snapshot of a list after five minutes.
const PACED_MAX: Duration = Duration::from_mins(2);

/// The first pause before a stream that has ended unexpectedly restarts; each further pause is twice as long.
const RESTART_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The maximum of these pauses.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The events of one stream.
type StreamEvents = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// The signals that end a stream: its own, and that of the operator.
struct Signals<'a> {
    end: oneshot::Receiver<StreamEnd>,
    exit: &'a CancellationToken,
}

/// The error that the events have ended, which must never happen.
struct EventsEnded;

/// A list that the stream is reading.
struct Listing {
    /// Holds handlers back until the list is complete.
    hold: Arc<ReadinessHold>,
    /// Until this moment, objects of the list are read no faster than workers handle them.
    paced_until: Instant,
}

/// One stream and its workers.
pub(super) struct Stream {
    /// The context in which the workers find their handlers.
    pub(super) shared: SharedContext,
    /// The context that took over last.
    pub(super) context: Arc<StreamContext>,
    namespace: Option<Arc<str>>,
    pub(super) workers: WorkerPool,
    pub(super) known: KnownObjects,
    /// Whether another replica leads: events only keep the indexes of this replica up to date.
    pub(super) is_standby: bool,
    /// The incomplete list for new handlers.
    pub(super) relist: Option<Relist>,
    /// The stream's own list in progress.
    listing: Option<Listing>,
}

impl Stream {
    /// Creates a stream of one namespace, or of the whole cluster.
    pub(super) fn new(shared: SharedContext, namespace: Option<Arc<str>>) -> Self {
        let context = shared.get();
        let watching = &context.handlers.watching;
        Stream {
            workers: WorkerPool::new(shared.clone()),
            shared,
            known: KnownObjects::new(Arc::clone(&context.resource), watching),
            is_standby: !context.leadership.is_leading(),
            context,
            namespace,
            relist: None,
            listing: None,
        }
    }

    /// Takes over from a stream of the same target: no deletion of an object that it has seen may be missed.
    pub(super) fn inherit(&mut self, known: KnownObjects) {
        self.known.inherit(known);
    }

    /// Runs until a signal ends it, or until the operator stops; then waits until the workers finish. Returns the state for the next stream
    /// of the same target, if there will be one.
    ///
    /// A bug must not end the stream silently: it is logged, and the stream restarts after a pause, with another list.
    pub(super) async fn run(
        mut self,
        end: oneshot::Receiver<StreamEnd>,
        exit: CancellationToken,
    ) -> Option<KnownObjects> {
        let mut signals = Signals { end, exit: &exit };
        let mut failures = 0_u32;
        let end = loop {
            let begun = Instant::now();
            let served = AssertUnwindSafe(self.serve(&mut signals)).catch_unwind().await;
            let reason = match served {
                Ok(Ok(end)) => break end,
                Ok(Err(EventsEnded)) => "the stream has ended".to_owned(),
                Err(panic) => panic_text(panic.as_ref()),
            };
            failures = if begun.elapsed() > RESTART_PAUSE_MAX { 1 } else { failures + 1 };
            if let ControlFlow::Break(end) = self.pause_after(&reason, failures, &mut signals).await
            {
                break end;
            }
        };
        self.finish(end, &exit).await
    }

    /// Waits before a restart after an unexpected end. Workers continue.
    async fn pause_after(
        &mut self,
        reason: &str,
        failures: u32,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<StreamEnd>> {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        let pause = RESTART_PAUSE_MIN.saturating_mul(factor).min(RESTART_PAUSE_MAX);
        tracing::error!(
            target: "kopf.watch",
            "Watching {} failed unexpectedly ({failures} times in a row), restarting in {} s: {reason}",
            self.name(),
            pause.as_secs()
        );
        // The part stays unready while this pulse exists.
        let pulse = self.pulse();
        pulse.set(HealthState::Unready, reason);
        self.leave_to_stream();
        self.wait(time::sleep(pause), signals).await
    }

    /// Processes events until the end, except during pauses; returns the reason, or `None` at the end of the operator.
    async fn serve(&mut self, signals: &mut Signals<'_>) -> Result<Option<StreamEnd>, EventsEnded> {
        loop {
            if let ControlFlow::Break(end) = self.sit_out_pause(signals).await {
                return Ok(end);
            }
            self.is_standby = !self.context.leadership.is_leading();
            let pulse = Arc::new(self.pulse());
            let events = self.context.cluster.stream_with_pulse(self.target(), pulse);
            if let ControlFlow::Break(end) = self.listen(events, signals).await {
                return end;
            }
            self.leave_to_stream();
        }
    }

    /// Replaces an incomplete relist with the next list of the stream, which shows all objects.
    fn leave_to_stream(&mut self) {
        if let Some(relist) = &mut self.relist {
            relist.leave_to_stream();
        }
    }

    pub(super) fn target(&self) -> StreamTarget {
        StreamTarget {
            resource: Arc::clone(&self.context.resource),
            namespace: self.namespace.clone(),
            extent: Extent::Whole,
            settings: Arc::clone(&self.context.settings),
            restrictions: None,
        }
    }

    /// Processes events until the end, until the operator pauses, or until this replica leads.
    ///
    /// A takeover of the leadership starts with another list: the watch may have shown states that are older than those that the former
    /// leader has finished.
    async fn listen(
        &mut self,
        mut events: StreamEvents,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Result<Option<StreamEnd>, EventsEnded>> {
        let (pauses, leadership) = (self.context.pauses.clone(), self.context.leadership.clone());
        let mut paused = std::pin::pin!(pauses.next(pauses.count()));
        let mut leading = std::pin::pin!(leadership.until_leading());
        let mut log = StreamLog::new(self.name());
        let (mut taken, begun) = (0_usize, Instant::now());
        loop {
            let replaced = self.context.replaced.clone();
            let paced_until = self.paced_until();
            let relisted = async {
                match &mut self.relist {
                    Some(relist) => relist.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased; // the end first: nothing new starts after it; then new handlers; then ended workers; then more events
                () = signals.exit.cancelled() => return ControlFlow::Break(Ok(None)),
                end = &mut signals.end => return ControlFlow::Break(Ok(end.ok())),
                () = &mut paused => return ControlFlow::Continue(()),
                () = replaced.cancelled() => self.take_over(true),
                () = &mut leading, if self.is_standby => return ControlFlow::Continue(()),
                finished = self.workers.next_finished() => self.forget_worker(finished),
                () = time::sleep_until(paced_until.unwrap_or(begun)), if paced_until.is_some() => {}
                item = events.next(), if paced_until.is_none() => {
                    let Some(item) = item else { return ControlFlow::Break(Err(EventsEnded)) };
                    self.take(item, &mut log);
                    self.workers.postpone();
                    taken = taken.wrapping_add(1);
                    if taken.is_multiple_of(EVENTS_PER_YIELD) {
                        task::yield_now().await;
                    }
                }
                item = relisted => {
                    self.take_relisted(item);
                    taken = taken.wrapping_add(1);
                    if taken.is_multiple_of(EVENTS_PER_YIELD) {
                        task::yield_now().await;
                    }
                }
            }
        }
    }

    /// Returns until when the rest of a list is not read, if many of its objects are waiting for a worker. A streamed list is not delayed:
    /// the server would end it.
    fn paced_until(&self) -> Option<Instant> {
        let is_streamed = self.context.settings.watching.initial_streaming;
        let listing = self.listing.as_ref().filter(|_| !is_streamed)?;
        let is_full = self.workers.waiting() >= WAITING_MAX;
        Some(listing.paced_until).filter(|it| is_full && Instant::now() < *it)
    }

    /// Waits while the operator is paused. Workers finish their cycles, and no new ones start.
    async fn sit_out_pause(&mut self, signals: &mut Signals<'_>) -> ControlFlow<Option<StreamEnd>> {
        let pauses = self.context.pauses.clone();
        if !pauses.is_paused() {
            return ControlFlow::Continue(());
        }
        let (name, blockers) = (self.name(), pauses.blockers().join(", "));
        tracing::debug!(target: "kopf.watch", "Pausing the watch-stream for {name} (blockers: {blockers}).");
        self.wait(pauses.until(false), signals).await?;
        tracing::debug!(target: "kopf.watch", "Resuming the watch-stream for {name}.");
        ControlFlow::Continue(())
    }

    /// Waits without processing events. Workers finish their cycles.
    async fn wait(
        &mut self,
        over: impl Future<Output = ()>,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<StreamEnd>> {
        let mut over = std::pin::pin!(over);
        loop {
            let replaced = self.context.replaced.clone();
            tokio::select! {
                biased; // as in `listen`
                () = signals.exit.cancelled() => return ControlFlow::Break(None),
                end = &mut signals.end => return ControlFlow::Break(end.ok()),
                () = replaced.cancelled() => self.take_over(false),
                finished = self.workers.next_finished() => self.forget_worker(finished),
                () = &mut over => return ControlFlow::Continue(()),
            }
        }
    }

    /// Stores the version to which a finished worker has shown its object.
    fn forget_worker(&mut self, finished: Option<Finished>) {
        if let Some(Finished { key, shown }) = finished {
            self.known.show(&key, shown);
        }
    }

    /// Returns the pulse that reports the health of the stream until it is dropped.
    fn pulse(&self) -> Pulse {
        let name = format!("stream/{}", self.name());
        // Every (re)connection reports to the pulse, so a healthy stream is never quiet for longer than this.
        let silence_max = self.context.settings.watching.inactivity_timeout.saturating_mul(3);
        self.context.health.pulse(&name, Some(silence_max))
    }

    fn count(&self, which: impl FnOnce(&Metrics, String)) {
        which(self.context.health.metrics(), self.context.resource.to_string());
    }

    /// Returns the resource and where it is watched.
    pub(super) fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} in '{namespace}'", self.context.resource),
            None => format!("{} cluster-wide", self.context.resource),
        }
    }
}
