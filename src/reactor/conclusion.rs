//! The end of a cycle: sends what it wants, or sleeps until the next handler is due.
//!
//! Before: `cycle.rs`. After: `delivery.rs`; what comes back goes to `worker.rs`, which waits to see it.

use std::{sync::Arc, time::Duration};

use futures::future;
use tokio::time;

use super::{
    delivery::{Delivery, Sender},
    error::CycleError,
    generation::StreamContext,
    memory::Memory,
    place::Place,
    queue::Queue,
};
use crate::handling::patching::Received;
use crate::logic::{
    object::Object, outcome::LogLevel, patch::Patch, plan, progress, python_text,
    registry::ResourceHandlers,
};
use crate::ports::Logger;

/// What the handlers of changes left to do.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Pauses until daemons and timers that stop are looked at again.
    pub(super) delays: Vec<Duration>,
    /// Whether handlers of changes care for the object, and it passed all gates to them.
    pub(super) looked_at: bool,
    /// Some daemons or timers can only start again when they have stopped.
    pub(super) is_awaited: bool,
}

/// What the worker does after a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for the next event.
    Event,
    /// The same, and it is certain to come: the object has a newer version now, or goes.
    Coming,
    /// Look at the object once more: a daemon has ended that the cycle waited for, or there are other handlers now.
    Again,
    /// Begin again, with other handlers: no handler but those of indexes has been called yet.
    Anew,
}

impl Next {
    /// After a patch.
    fn after(is_changed: bool) -> Self {
        if is_changed { Next::Coming } else { Next::Event }
    }
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Complete,
    Interrupted,
    /// A daemon or a timer that was asked to stop has ended, or there are other handlers now.
    Outdated,
}

/// What a cycle could not send.
#[derive(Debug)]
pub(super) struct Unsent {
    /// What the server has not accepted yet.
    pub(super) delivery: Delivery,
    /// What comes after it; `None` if it is of an earlier event: the present one is still to be handled then.
    pub(super) left: Option<Left>,
}

impl Unsent {
    /// Drops what handlers wanted that were edited or removed since; the present event is still to be handled then.
    pub(super) fn drop_replaced(&mut self, handlers: &ResourceHandlers) {
        if self.delivery.drop_replaced(handlers) {
            self.left = None;
        }
    }
}

/// The end of a cycle of one object.
pub(super) struct Conclusion<'a> {
    /// The resource and its settings.
    pub(super) serving: &'a StreamContext,
    /// Where newer events wait.
    pub(super) queue: &'a Queue,
    /// The worker's place, for sleeps.
    pub(super) place: &'a Place,
    /// The object's memory.
    pub(super) memory: &'a mut Memory,
    /// The object as the cycle saw it.
    pub(super) object: &'a Arc<Object>,
    /// For the operator's own lines.
    pub(super) logger: &'a Logger,
    /// The object as our last request left it, if that made a difference; set also when a later request fails.
    pub(super) patched: &'a mut Option<Arc<Object>>,
}

impl Conclusion<'_> {
    /// Sends what the cycle wants, or sleeps until the next handler is due and provokes an event then.
    ///
    /// What cannot be sent now stays in the memory: what the handlers did is sent again after a pause, they are not called again
    /// for it.
    pub(super) async fn run(
        mut self,
        mut delivery: Delivery,
        left: Left,
    ) -> Result<Next, CycleError> {
        let (is_sent, is_changed) = match self.send(&mut delivery).await {
            Ok(ended) => ended,
            Err(error) => return Err(self.keep(delivery, Some(left), error)),
        };
        let mut delays = delivery.delays(self.serving.clock.now());
        delays.extend(&left.delays);
        match delays.iter().min() {
            Some(delay) if is_changed => self.skip_sleep(*delay),
            Some(delay) => return self.wait(*delay).await,
            None if left.is_awaited && !is_changed => return Ok(self.wait_for_exit().await),
            None if !is_sent && left.looked_at => {
                self.logger
                    .log(LogLevel::Debug, "Handling cycle is finished, waiting for new changes.");
            }
            None => {}
        }
        Ok(Next::after(is_changed))
    }

    /// Whether there is nothing to send.
    pub(super) fn is_idle(&mut self, delivery: &mut Delivery) -> bool {
        self.sender().is_idle(delivery)
    }

    /// Sends what an earlier event left behind. Tells whether that made a new version of the object, which then comes as an
    /// event of its own.
    pub(super) async fn catch_up(mut self, delivery: Delivery) -> Result<bool, CycleError> {
        let mut delivery = delivery.outdated(self.object);
        match self.send(&mut delivery).await {
            Ok((_, is_changed)) => Ok(is_changed),
            Err(error) => Err(self.keep(delivery, None, error)),
        }
    }

    fn keep(
        &mut self,
        mut delivery: Delivery,
        left: Option<Left>,
        error: CycleError,
    ) -> CycleError {
        delivery.keep(self.serving);
        self.memory.unsent = Some(Box::new(Unsent { delivery, left }));
        error
    }

    /// Returns whether there was something to send, and whether there is a newer version of the object now, or none at all: then
    /// an event will wake us. What changed nothing wakes nobody.
    async fn send(&mut self, delivery: &mut Delivery) -> Result<(bool, bool), CycleError> {
        let mut sender = self.sender();
        let sent = sender.run(delivery).await;
        let received = sender.received;
        let is_newer = self.receive(received);
        let sent = sent?;
        self.memory.is_gone |= sent.is_gone;
        Ok((sent.is_any, is_newer || sent.is_gone))
    }

    fn sender(&mut self) -> Sender<'_> {
        Sender {
            serving: self.serving,
            queue: self.queue,
            memory: self.memory,
            object: self.object,
            logger: self.logger,
            received: Received::default(),
        }
    }

    /// Notes what came back. Returns whether the object has a newer version now.
    fn receive(&mut self, received: Received) -> bool {
        let before = &self.object.header().resource_version;
        let newer = received.object.filter(|it| {
            // With its last finalizer an object goes, in the version that it has.
            it.header().is_released() || it.header().resource_version != *before
        });
        let is_newer = newer.is_some();
        self.memory.is_gone |= newer.as_ref().is_some_and(|it| it.header().is_released());
        if is_newer {
            *self.patched = newer;
        }
        is_newer
    }

    fn skip_sleep(&self, delay: Duration) {
        if !delay.is_zero() {
            let left = python_text::float(delay);
            let text = format!("Sleeping was skipped because of the patch, {left} seconds left.");
            self.logger.log(LogLevel::Debug, &text);
        }
    }

    /// Sleeps until handlers are due, and provokes an event then.
    async fn wait(&mut self, delay: Duration) -> Result<Next, CycleError> {
        // Others may work meanwhile.
        match self.place.without(self.sleep(delay)).await {
            Pause::Complete => self.touch().await,
            Pause::Interrupted => Ok(Next::Event),
            Pause::Outdated => Ok(Next::Again),
        }
    }

    /// Without a limit: nothing is due, and newer events interrupt it.
    async fn wait_for_exit(&self) -> Next {
        let wait = async {
            tokio::select! {
                biased; // a newer event tells more
                () = self.queue.pressure() => Next::Event,
                () = self.exit() => Next::Again,
                () = self.serving.replaced.cancelled() => Next::Again,
            }
        };
        // Others may work meanwhile.
        self.place.without(wait).await
    }

    async fn exit(&self) {
        match &self.memory.background {
            Some(background) => background.exit().await,
            None => future::pending().await,
        }
    }

    /// Sleeps until handlers are due.
    async fn sleep(&self, delay: Duration) -> Pause {
        if delay.is_zero() {
            return Pause::Complete;
        }
        let limited = delay.min(plan::SLEEP_MAX);
        let seconds = python_text::float(delay);
        let cap = if limited < delay {
            format!(" (capped {})", plan::SLEEP_MAX.as_secs())
        } else {
            String::new()
        };
        let text = format!("Sleeping for {seconds}{cap} seconds for the delayed handlers.");
        self.logger.log(LogLevel::Debug, &text);
        let until = time::Instant::now() + limited;
        let slept = tokio::select! {
            biased; // a pause that is complete counts as complete; a newer event tells more than the others
            () = time::sleep_until(until) => Pause::Complete,
            () = self.queue.pressure() => Pause::Interrupted,
            () = self.exit() => Pause::Outdated,
            () = self.serving.replaced.cancelled() => Pause::Outdated,
        };
        if slept == Pause::Interrupted {
            let left = until.saturating_duration_since(time::Instant::now());
            let left = python_text::float(left);
            let text = format!("Sleeping was interrupted by new changes, {left} seconds left.");
            self.logger.log(LogLevel::Debug, &text);
        }
        slept
    }

    /// Provokes an event, so that the next cycle finds the handlers due. The delay survives a restart this way.
    async fn touch(&mut self) -> Result<Next, CycleError> {
        let mut patch = Patch::default();
        let stamp = progress::touch_stamp(self.serving.clock.now());
        let storage = &self.serving.settings.persistence.progress_storage;
        progress::touch(storage, self.object.body(), &mut patch.merge, Some(&stamp));
        let mut sender = self.sender();
        let is_gone = sender.apply(&mut patch).await;
        let received = sender.received;
        let is_newer = self.receive(received);
        Ok(Next::after(is_newer || is_gone?))
    }
}
