//! One task per resource and namespace: brings each event to the queue of its object.
//!
//! Hop 2 of the walk. Before: `cluster/watch.rs`. After: `worker.rs`. The task never waits for a worker, so a slow handler
//! cannot make the server cut our watch.
//!
//! | file | does |
//! |---|---|
//! | `mod.rs` | waits: for events, for the end of workers, for pauses, for what ends it |
//! | `taking.rs` | what each event means: which objects came, which are gone |
//! | `known_objects.rs` | what is known of the objects, to detect missed deletions |
//! | `worker_pool.rs` | the queues and the workers |
//! | `end.rs` | the end, and what becomes of the objects |
//! | `set.rs` | all streams of the operator: starts, replaces and ends them |
//!
//! The next version of the handlers takes over in `reactor/generation/handover.rs`.

mod end;
mod known_objects;
mod set;
mod taking;
mod worker_pool;

use std::{ops::ControlFlow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use prometheus_client::metrics::{counter::Counter, family::Family};
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
use super::{
    generation::{Relist, SharedContext, StreamContext},
    stream_log::StreamLog,
    worker::panic_text,
};
use crate::features::indexes::Hold;
use crate::ports::{
    ApiError, Extent, HealthState, Metrics, Pulse, ResourceLabels, StreamEvent, StreamTarget,
};

/// After so many events the workers may run: a list comes all at once, and its objects should not all have a worker before the first
/// of them has done its work.
const EVENTS_PER_YIELD: usize = 64;

/// While this many objects wait for a worker, the stream reads no more of a list: they take memory. At least two pages of the list
/// (`settings.watching.chunk_size`), so that the workers never wait for the server.
const WAITING_MAX: usize = 1000;
/// The longest time for which a list is read so: servers forget the snapshot of a list after five minutes.
const PACED_MAX: Duration = Duration::from_mins(2);

/// The first pause before a stream begins again that has ended unexpectedly; it doubles each time.
const RESTART_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of these pauses.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The events of one stream.
type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// What ends a stream: that it is not wanted as it is, or the end of the operator.
struct Signals<'a> {
    end: oneshot::Receiver<StreamEnd>,
    exit: &'a CancellationToken,
}

/// The events have ended, which they never should.
struct Ended;

/// A list that is not complete.
struct Listing {
    /// Keeps the indexes closed until it is.
    hold: Arc<Hold>,
    /// Until then its objects are read no faster than the workers take them.
    paced_until: Instant,
}

/// One stream and its workers.
pub(super) struct Stream {
    /// Where its workers find their handlers.
    pub(super) shared: SharedContext,
    /// The context that has taken over last.
    pub(super) context: Arc<StreamContext>,
    namespace: Option<Arc<str>>,
    pub(super) workers: WorkerPool,
    pub(super) known: KnownObjects,
    /// Another replica leads: of the events, only the indexes of this one are kept up to date.
    pub(super) is_standby: bool,
    /// The list for new handlers that is not complete.
    pub(super) relist: Option<Relist>,
    /// The list that the stream reads.
    listing: Option<Listing>,
}

impl Stream {
    /// A stream of one namespace, or of the whole cluster.
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

    /// Takes over from a stream of the same target: no deletion of an object that it has seen may go unnoticed.
    pub(super) fn inherit(&mut self, known: KnownObjects) {
        self.known.inherit(known);
    }

    /// Runs until it is told to end, or until the operator does; then lets the workers finish. Returns what another stream of
    /// the same target should inherit, if one is to come.
    ///
    /// A bug must not end it silently: it is logged, and the stream begins again after a pause, with another list.
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
                Ok(Err(Ended)) => "the stream has ended".to_owned(),
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

    /// Waits before the stream begins again after an unexpected end. Workers continue.
    async fn pause_after(
        &mut self,
        reason: &str,
        failures: u32,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Option<StreamEnd>> {
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
    async fn serve(&mut self, signals: &mut Signals<'_>) -> Result<Option<StreamEnd>, Ended> {
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

    /// The next list of the stream shows all objects to a relist that is not complete.
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

    /// Takes events until the end, until the operator pauses, or until this replica leads.
    ///
    /// A takeover begins with another list: what a watch has shown so far may be older than what the former leader has finished.
    async fn listen(
        &mut self,
        mut events: Events,
        signals: &mut Signals<'_>,
    ) -> ControlFlow<Result<Option<StreamEnd>, Ended>> {
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
                biased; // the end first: nothing new begins after it; then the handlers; then make room; then more work
                () = signals.exit.cancelled() => return ControlFlow::Break(Ok(None)),
                end = &mut signals.end => return ControlFlow::Break(Ok(end.ok())),
                () = &mut paused => return ControlFlow::Continue(()),
                () = replaced.cancelled() => self.take_over(true),
                () = &mut leading, if self.is_standby => return ControlFlow::Continue(()),
                finished = self.workers.next_finished() => self.forget_worker(finished),
                () = time::sleep_until(paced_until.unwrap_or(begun)), if paced_until.is_some() => {}
                item = events.next(), if paced_until.is_none() => {
                    let Some(item) = item else { return ControlFlow::Break(Err(Ended)) };
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

    /// Returns until when the rest of a list is left unread, if enough of its objects wait for a worker. A streamed list is not
    /// held up: the server would end it.
    fn paced_until(&self) -> Option<Instant> {
        let is_streamed = self.context.settings.watching.initial_streaming;
        let listing = self.listing.as_ref().filter(|_| !is_streamed)?;
        let is_full = self.workers.waiting() >= WAITING_MAX;
        Some(listing.paced_until).filter(|it| is_full && Instant::now() < *it)
    }

    /// Waits while the operator is paused. Workers finish what they do, and begin nothing.
    async fn sit_out_pause(&mut self, signals: &mut Signals<'_>) -> ControlFlow<Option<StreamEnd>> {
        let pauses = self.context.pauses.clone();
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

    /// Keeps what a worker that has ended knows of its object.
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

    fn count(&self, which: impl FnOnce(&Metrics) -> &Family<ResourceLabels, Counter>) {
        let resource = self.context.resource.to_string();
        which(self.context.health.metrics()).get_or_create(&ResourceLabels { resource }).inc();
    }

    /// The resource and where it is watched.
    pub(super) fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} in '{namespace}'", self.context.resource),
            None => format!("{} cluster-wide", self.context.resource),
        }
    }
}
