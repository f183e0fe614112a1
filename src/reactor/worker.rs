//! The worker of one object: takes its events one after another, each through one cycle.
//!
//! Hop 3 of the walk. Before: `streams.rs`. After: `cycle.rs`, which joins all decisions.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use tokio::time::{self, Instant};

use super::{
    cycle::{Cycle, CycleError},
    memory::{Key, Memory},
    queue::{Event, Queue},
    serving::Serving,
};
use crate::logic::{object::Object, outcome::LogLevel, reason::EventType, throttle::Throttle};
use crate::ports::{Logger, LoggerKind};

/// Handles the events of one object until none comes for a while, or until the stream has ended.
pub(super) struct Worker {
    /// What all workers of the stream share.
    pub(super) serving: Arc<Serving>,
    /// The object.
    pub(super) key: Key,
    /// Its events.
    pub(super) queue: Arc<Queue>,
}

/// Our own last patch, which has not come back yet.
///
/// Until it does, the object as we see it is older than what we did: change handlers wait, or they would act twice.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// `None`: the version will never arrive, only the end of the object.
    version: Option<String>,
    /// The object as the answer to the patch showed it. It stands in for the same version in the stream: what was parsed of
    /// it, need not be parsed again.
    object: Arc<Object>,
    /// Then we go on without.
    pub(super) deadline: Instant,
}

impl Worker {
    /// Works until there is nothing to do. The memory of the object outlives the worker.
    pub(super) async fn run(self) {
        let mut expected: Option<Expectation> = None;
        while let Some(mut event) = self.next(expected.as_ref()).await {
            let version = event.object.header().resource_version.as_deref();
            let is_own =
                |it: &mut Expectation| it.version.is_some() && it.version.as_deref() == version;
            if let Some(own) = expected.take_if(is_own) {
                event.object = own.object;
            }
            let mut memory = self.serving.memories.recall(&self.key, event.event_type.is_none());
            let is_gone = event.event_type == Some(EventType::Deleted);
            let patched = self.handle(event, &mut memory, expected.as_ref()).await;
            if let Some(object) = patched {
                expected = self.expectation(object);
            }
            if !is_gone {
                self.serving.memories.keep(self.key.clone(), memory);
            }
        }
    }

    /// The next event; `None` when idle for long enough, or at the end.
    async fn next(&self, expected: Option<&Expectation>) -> Option<Event> {
        loop {
            let mut until = Instant::now() + self.serving.settings.queueing.idle_timeout;
            if let Some(expected) = expected {
                until = until.max(expected.deadline);
            }
            if let Ok(event) = time::timeout_at(until, self.queue.next()).await {
                return event;
            }
            if self.queue.close_if_empty() {
                return None;
            }
        }
    }

    /// One cycle, behind the gate of the throttle. Gives the object as our last request left it.
    async fn handle(
        &self,
        event: Event,
        memory: &mut Memory,
        expected: Option<&Expectation>,
    ) -> Option<Arc<Object>> {
        let reference = Arc::new(self.serving.reference(event.object.header()));
        let logger = Logger::of_object(LoggerKind::Local, reference);
        if !self.pass_throttle(memory, &logger).await {
            return None;
        }
        let cycle = Cycle {
            serving: &self.serving,
            queue: &self.queue,
            memory,
            event,
            logger: &logger,
            expected,
        };
        // A bug in one cycle must not take the operator down: it costs this object a pause.
        let mut patched = None;
        let ended = AssertUnwindSafe(cycle.run(&mut patched)).catch_unwind().await;
        match ended.unwrap_or_else(|panic| Err(CycleError::Bug(panic_text(panic.as_ref())))) {
            Ok(()) => memory.throttle = None,
            Err(error) => self.throttle(memory, &logger, &error).await,
        }
        patched
    }

    /// Waits out what is left of a pause; tells whether to go on with the event.
    async fn pass_throttle(&self, memory: &mut Memory, logger: &Logger) -> bool {
        let Some(throttle) = &mut memory.throttle else { return true };
        if throttle.remaining(self.uptime()).is_none() {
            return true;
        }
        self.rest(throttle, logger).await
    }

    /// After an error: a pause, in which newer events wait, but do not get lost.
    async fn throttle(&self, memory: &mut Memory, logger: &Logger, error: &CycleError) {
        let throttle = memory.throttle.get_or_insert_default();
        let delays = &self.serving.settings.queueing.error_delays;
        match throttle.failed(delays, self.uptime(), &error.to_string()) {
            Some(line) => logger.line(&line, error.trace()),
            // Without delays there is no pause, but nobody wants an error to go unseen.
            None => logger.log(LogLevel::Error, &format!("An unexpected error: {error}")),
        }
        self.rest(throttle, logger).await;
    }

    /// Sleeps through the pause; tells whether it is over.
    async fn rest(&self, throttle: &mut Throttle, logger: &Logger) -> bool {
        let Some(remaining) = throttle.remaining(self.uptime()) else { return true };
        self.pause(Instant::now() + remaining).await;
        let Some(line) = throttle.rested(self.uptime()) else { return false };
        logger.line(&line, None);
        true
    }

    /// The clock of throttles.
    fn uptime(&self) -> Duration {
        self.serving.start.elapsed()
    }

    /// Sleeps until then, or until newer events come.
    async fn pause(&self, until: Instant) {
        tokio::select! {
            biased; // when both are true at once, the pause was complete
            () = time::sleep_until(until) => {}
            () = self.queue.pressure() => {}
        }
    }

    fn expectation(&self, object: Arc<Object>) -> Option<Expectation> {
        let header = object.header();
        let version = header.resource_version.clone().filter(|_| !header.is_released());
        let timeout = self.serving.settings.persistence.consistency_timeout;
        (!timeout.is_zero()).then(|| Expectation {
            version,
            object,
            deadline: Instant::now() + timeout,
        })
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "a panic".into())
}
