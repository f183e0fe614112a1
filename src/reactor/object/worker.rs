//! The worker of one object: takes its events one after another, each through one cycle.
//!
//! Step 3 of the walk. Before: `streams/`. After: `cycle.rs`, which joins all decisions.
//!
//! Each cycle uses one version of the handlers. When the next version takes over, a waiting worker runs another cycle with the new
//! handlers; so does a worker in the middle of a cycle, unless a newer event reaches the new handlers anyway.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use tokio::time::{self, Instant};

use super::{
    conclusion::{Conclusion, Next},
    cycle::Cycle,
    error::CycleError,
    expectation::{Expectation, Settled},
    memory::{Key, Memory},
};
use crate::call::{Logger, LoggerKind};
use crate::logic::{
    background::{stopping::StopReason, throttle::Throttle},
    change::order,
    handlers::outcome::LogLevel,
    object::{Object, reason::EventType},
};
use crate::reactor::object::{
    context::{SharedContext, StreamContext},
    pending_calls::PendingCalls,
    permits::WorkerPermit,
    queue::{Event, ObjectQueue},
};

/// The worker of one object, which handles its events until no more arrive, or until the stream has ended.
///
/// Changes to the object cause an event, so a worker that changed the object waits for that event for a while; any other worker ends at
/// once. Most objects of a listing need nothing, and there may be many thousands.
pub(in crate::reactor) struct Worker {
    /// The context shared by all workers of the stream.
    pub(in crate::reactor) shared: SharedContext,
    /// The object that the worker handles.
    pub(in crate::reactor) key: Key,
    /// The events of the object that are still to be handled.
    pub(in crate::reactor) queue: Arc<ObjectQueue>,
    /// The permit that the worker holds while it is busy.
    pub(in crate::reactor) permit: WorkerPermit,
    /// Whether the worker may wait for more events of an object that it has changed; false where others wait for its permit.
    pub(in crate::reactor) lingers: bool,
}

/// The end of an event.
#[derive(Default)]
struct HandledEvent {
    /// The object as returned by the operator's last request.
    patched: Option<Arc<Object>>,
    /// `None` if the handlers may have something to do about that object.
    settled: Option<Settled>,
}

impl Worker {
    /// Runs until there is nothing to do. The memory of the object outlives the worker.
    pub(in crate::reactor) async fn run(self) {
        let mut expected: Option<Expectation> = None;
        let mut has_changed = false;
        while let Some(mut event) = self.next(expected.as_ref(), has_changed).await {
            let serving = self.shared.get();
            let is_settled =
                expected.as_ref().is_some_and(|it| it.has_settled(&event, serving.version));
            let own = expected.take_if(|it| it.is_met_by(&event));
            // Once the event of the operator's own change has arrived, no further event is awaited.
            has_changed &= own.is_none();
            if is_settled {
                serving.hold.passed(event.object.header());
                serving.numbers.worked(Duration::ZERO);
                own.into_iter().for_each(Expectation::settle);
                continue;
            }
            drop(serving);
            if let Some(own) = own {
                event.object = own.freshest(event.object);
            }
            let is_listed = event.event_type.is_none() || event.for_indexes;
            let memories = Arc::clone(&self.shared.get().memories);
            let mut memory = memories.recall(&self.key, is_listed);
            let is_gone = event.event_type == Some(EventType::Deleted);
            let uid = event.object.header().uid.clone().filter(|_| is_gone);
            self.show_to_daemons(&event, &mut memory);
            let HandledEvent { patched, settled } =
                self.handle(event, &mut memory, expected.as_ref()).await;
            let serving = self.shared.get();
            if let Some(object) = patched {
                has_changed = true;
                memory.own = order::number(&object);
                if let Some(background) = &memory.background {
                    background.note_own_version(memory.own);
                }
                let timeout = serving.settings.persistence.consistency_timeout;
                expected = Expectation::of(object, timeout, settled);
            }
            if !is_gone {
                memories.keep(self.key.clone(), memory, &serving.memo);
            } else if let Some(uid) = uid {
                serving.services.failures.forget(&uid);
            }
        }
    }

    /// Passes the present object, or its deletion, to daemons and timers, regardless of the outcome of the cycle.
    fn show_to_daemons(&self, event: &Event, memory: &mut Memory) {
        if event.event_type == Some(EventType::Deleted) {
            if let Some(background) = memory.background.take() {
                background.dismiss(&self.shared.get().background, StopReason::ResourceDeleted);
            }
        } else if let Some(background) = &memory.background
            && event.object.problem().is_none()
        {
            background.show(&event.object);
        }
    }

    /// Returns the next event; `None` when idle for long enough, or at the end.
    async fn next(&self, expected: Option<&Expectation>, has_changed: bool) -> Option<Event> {
        loop {
            let lingering = (has_changed && self.lingers)
                .then(|| Instant::now() + self.shared.get().settings.queueing.idle_timeout);
            let next = match lingering.max(expected.map(|it| it.deadline)) {
                Some(until) => time::timeout_at(until, self.queue.next()).await.ok(),
                // Without a timer: the shortest one would wake the runtime twice for each object.
                None => self.queue.next().now_or_never(),
            };
            if let Some(event) = next {
                return event;
            }
            if self.queue.close_if_empty() {
                return None;
            }
        }
    }

    /// Runs one cycle, delayed by the throttle.
    ///
    /// A failed cycle is repeated after a pause, unless a newer event has arrived: an object must not remain unhandled after a temporary
    /// failure of the API.
    async fn handle(
        &self,
        mut event: Event,
        memory: &mut Memory,
        expected: Option<&Expectation>,
    ) -> HandledEvent {
        let mut serving = self.shared.get();
        let reference = Arc::new(serving.resource.reference_to(event.object.header()));
        let logger = Logger::of_object(LoggerKind::Local, reference);
        let logger = logger.posting(&serving.services.posts);
        let is_gone = event.event_type == Some(EventType::Deleted);
        if !is_gone && !self.pass_throttle(&serving, memory, &logger).await {
            return HandledEvent::default();
        }
        let mut end = HandledEvent::default();
        let mut calls = PendingCalls::of(&event, &serving, self.queue.shown());
        loop {
            let before = std::mem::replace(&mut serving, self.shared.get());
            calls.renew(&before, &serving);
            // This may unload the scripts of the replaced generation.
            drop(before);
            let cycle = Cycle {
                serving: &serving,
                queue: &self.queue,
                permit: &self.permit,
                memory,
                event: event.clone(),
                logger: &logger,
                expected,
                calls: &mut calls,
            };
            // Boxed and freed afterwards, so that a waiting worker stays small.
            let (begun, released) = (Instant::now(), self.permit.released_for());
            let cycle = Box::pin(cycle.run(&mut end.patched));
            let mut ended = caught(cycle).await;
            let released = self.permit.released_for().saturating_sub(released);
            serving.numbers.worked(begun.elapsed().saturating_sub(released));
            // Runs also after a panic in the cycle: one object must not block all others.
            serving.hold.passed(event.object.header());
            if let Ok(Next::Wait(delay)) = ended {
                // Many objects may wait for long.
                event.object = event.object.unparsed();
                let about = (&event.object, &logger, &mut end.patched);
                let conclusion = self.conclusion(&serving, memory, about);
                ended = caught(Box::pin(conclusion.wait(delay))).await;
            }
            let error = match ended {
                Ok(next) => {
                    memory.throttle = None;
                    match next {
                        Next::Anew => continue,
                        // The object may be deleted with the operator's finalizer: the response then shows its previous version.
                        Next::Coming => return end,
                        Next::Settled => {
                            end.settled = Some(Settled { handlers: serving.version, logger });
                            return end;
                        }
                        Next::Event if !self.is_outdated(&serving, &event, &end) => return end,
                        Next::Event | Next::Again | Next::Wait(_) => {}
                    }
                    calls.end();
                    continue;
                }
                Err(error) => error,
            };
            calls.end();
            event.object = event.object.unparsed();
            if !self.throttle(&serving, memory, &logger, &error).await {
                // The changes must still be sent, but the newer event decides the next step.
                if let Some(unsent) = &mut memory.unsent {
                    unsent.left = None;
                }
                return end;
            }
        }
    }

    fn conclusion<'a>(
        &'a self,
        serving: &'a StreamContext,
        memory: &'a mut Memory,
        (object, logger, patched): (&'a Arc<Object>, &'a Logger, &'a mut Option<Arc<Object>>),
    ) -> Conclusion<'a> {
        let (queue, permit) = (&*self.queue, &self.permit);
        Conclusion { serving, queue, permit, memory, object, logger, patched }
    }

    /// Returns whether the handlers have changed during the cycle and no event will bring the object to the new ones.
    fn is_outdated(&self, serving: &StreamContext, event: &Event, end: &HandledEvent) -> bool {
        let version = |it: &Object| it.header().resource_version.clone();
        let is_newer = end.patched.as_ref().is_some_and(|it| version(it) != version(&event.object));
        serving.replaced.is_cancelled()
            && event.event_type != Some(EventType::Deleted)
            && !is_newer
            && self.queue.is_empty()
            && !self.queue.has_ended()
    }

    /// Waits for the rest of a pause; returns whether to handle the event.
    async fn pass_throttle(
        &self,
        serving: &StreamContext,
        memory: &mut Memory,
        logger: &Logger,
    ) -> bool {
        let Some(throttle) = &mut memory.throttle else { return true };
        if throttle.remaining(serving.uptime()).is_none() {
            return true;
        }
        self.rest(serving, throttle, logger).await
    }

    /// Pauses after an error; newer events wait meanwhile and are not lost. Returns whether to try again.
    async fn throttle(
        &self,
        serving: &StreamContext,
        memory: &mut Memory,
        logger: &Logger,
        error: &CycleError,
    ) -> bool {
        let throttle = memory.throttle.get_or_insert_default();
        let delays = &serving.settings.queueing.error_delays;
        let text = error.hinted();
        let Some(line) = throttle.failed(delays, serving.uptime(), &text) else {
            // Without delays there is no pause and no retry, but the error must be visible.
            logger.log(LogLevel::Error, &format!("An unexpected error: {text}"));
            return false;
        };
        serving.numbers.retried();
        logger.line(&line, error.trace());
        self.rest(serving, throttle, logger).await
    }

    /// Sleeps through the pause; returns whether to continue: the pause is over, or the handlers have changed and may succeed.
    async fn rest(
        &self,
        serving: &StreamContext,
        throttle: &mut Throttle,
        logger: &Logger,
    ) -> bool {
        let Some(remaining) = throttle.remaining(serving.uptime()) else { return true };
        let until = Instant::now() + remaining;
        tokio::select! {
            biased; // a complete pause comes first, then a newer event, then a reload
            () = time::sleep_until(until) => {}
            () = self.queue.pressure() => {}
            () = serving.replaced.cancelled() => return true,
        }
        let Some(line) = throttle.rested(serving.uptime()) else { return false };
        logger.line(&line, None);
        true
    }
}

/// Runs a part of a cycle. A bug in one cycle must not stop the operator: it only delays this object.
async fn caught(part: impl Future<Output = Result<Next, CycleError>>) -> Result<Next, CycleError> {
    let ended = AssertUnwindSafe(part).catch_unwind().await;
    ended.unwrap_or_else(|it| Err(CycleError::Bug(panic_text(it.as_ref()))))
}

pub(in crate::reactor) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "a panic".into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Cycle, Object, Worker};

    /// Returns the size of the future that a function makes of one argument.
    fn size_of_future<A, F: Future>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_waiting_worker_is_small() {
        let size = size_of_future(Worker::run);
        assert!(size < 2048, "{size} bytes");
    }

    /// At the start, all objects wait for the indexes.
    #[test]
    fn a_cycle_that_waits_for_indexes_is_small() {
        let run = |(cycle, patched): (Cycle<'static>, &'static mut Option<Arc<Object>>)| {
            cycle.run(patched)
        };
        let size = size_of_future(run);
        assert!(size < 2304, "{size} bytes");
    }
}
