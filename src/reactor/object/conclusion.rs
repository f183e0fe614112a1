//! The end of a cycle: sends its changes; and the wait until the next handler is due.
//!
//! Before: `cycle.rs`. After: `delivery.rs`; the server's response goes to `worker.rs`, which waits for its event.

use std::{sync::Arc, time::Duration};

use futures::future;
use tokio::time;

use super::{
    delivery::{Delivery, Sender},
    error::CycleError,
    memory::Memory,
};
use crate::call::Logger;
use crate::handling::patching::PatchResponses;
use crate::logic::{
    change::{order, patch::Patch, plan, registry::ResourceHandlers, settled},
    handlers::{outcome::LogLevel, progress},
    object::Object,
    text::python_text,
};
use crate::reactor::object::{context::StreamContext, permits::WorkerPermit, queue::ObjectQueue};

/// The work that is left after the change handlers have run.
#[derive(Debug, Default)]
pub(in crate::reactor) struct RemainingWork {
    /// Pauses until stopping daemons and timers are checked again.
    pub(in crate::reactor) delays: Vec<Duration>,
    /// Whether change handlers are interested in the object and all conditions to call them were met.
    pub(in crate::reactor) looked_at: bool,
    /// Some daemons or timers must start again, but only after they have stopped.
    pub(in crate::reactor) is_awaited: bool,
}

/// The next step of the worker after a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum Next {
    /// Waits for the next event.
    Event,
    /// Waits for the next event, which is certain to come: the object has a newer version now, or has been deleted.
    Coming,
    /// Waits for the next event, as after `Coming`. Events up to the newer version need no cycle.
    Settled,
    /// Runs another cycle: a daemon that the cycle waited for has ended, or the handlers have changed.
    Again,
    /// Starts over with other handlers: only index handlers have been called so far.
    Anew,
    /// Waits for the next event, or until a handler is due.
    Wait(Duration),
}

/// The effect of the changes of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::reactor) struct Applied {
    /// There was something to send.
    is_sent: bool,
    /// The object has a newer version now, or is gone: an event follows.
    pub(in crate::reactor) is_changed: bool,
    /// The server has shown an older version than before, whose event may have come already.
    is_restored: bool,
}

impl Applied {
    /// Returns what to do next.
    pub(in crate::reactor) fn next(self) -> Next {
        match self {
            Applied { is_restored: true, .. } => Next::Again,
            Applied { is_changed: true, .. } => Next::Coming,
            Applied { .. } => Next::Event,
        }
    }
}

/// The end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PauseEnd {
    Complete,
    Interrupted,
    /// A daemon or timer that was requested to stop has ended, or the handlers have changed.
    Outdated,
}

/// The changes that a cycle could not send.
#[derive(Debug)]
pub(in crate::reactor) struct Unsent {
    /// The changes that the server has not accepted yet.
    pub(in crate::reactor) delivery: Delivery,
    /// The object as the cycle saw it. The event may show an older one, without the records that the delivery removes.
    pub(in crate::reactor) object: Arc<Object>,
    /// The work that is left after the delivery; `None` if the delivery belongs to an earlier event: the present event must still be
    /// handled then.
    pub(in crate::reactor) left: Option<RemainingWork>,
    /// Whether the server may have accepted the last request, although it failed.
    is_uncertain: bool,
}

impl Unsent {
    /// Returns whether handlers that were called have been edited or removed since; then the present event must be handled again.
    pub(in crate::reactor) fn is_replaced(&mut self, handlers: &ResourceHandlers) -> bool {
        let is_replaced = self.delivery.has_replaced(handlers);
        if is_replaced {
            self.left = None;
        }
        is_replaced
    }

    /// Returns whether the object must be read before anything is dropped.
    pub(in crate::reactor) fn is_uncertain(&self, handlers: &ResourceHandlers) -> bool {
        self.is_uncertain && self.delivery.has_replaced(handlers)
    }

    /// Drops the changes of handlers that were edited or removed since, unless the object shows that the server has accepted them.
    pub(in crate::reactor) async fn drop_replaced(
        &mut self,
        serving: &StreamContext,
        present: &Object,
    ) {
        let Unsent { delivery, object, .. } = self;
        if !(self.is_uncertain && delivery.is_recorded(serving, object, present).await) {
            delivery.drop_replaced(&serving.handlers);
        }
    }

    /// Returns the newer one of the object of an event and the one that the delivery was made for.
    pub(super) fn latest<'a>(&'a self, event: &'a Arc<Object>) -> &'a Arc<Object> {
        if order::is_older(event, order::number(&self.object)) { &self.object } else { event }
    }
}

/// The end of a cycle of one object.
pub(in crate::reactor) struct Conclusion<'a> {
    /// The resource and its settings.
    pub(in crate::reactor) serving: &'a StreamContext,
    /// The queue of newer events.
    pub(in crate::reactor) queue: &'a ObjectQueue,
    /// The worker's permit, released during sleeps.
    pub(in crate::reactor) permit: &'a WorkerPermit,
    /// The object's memory, which the conclusion updates.
    pub(in crate::reactor) memory: &'a mut Memory,
    /// The object as the cycle saw it.
    pub(in crate::reactor) object: &'a Arc<Object>,
    /// The logger for the operator's own log lines.
    pub(in crate::reactor) logger: &'a Logger,
    /// The object as returned by the operator's last request, if that changed it; also set if a later request fails.
    pub(in crate::reactor) patched: &'a mut Option<Arc<Object>>,
}

impl Conclusion<'_> {
    /// Sends the changes of the cycle.
    ///
    /// Changes that cannot be sent now stay in the memory and are sent after a pause; their handlers are not called again.
    pub(in crate::reactor) async fn run(
        mut self,
        mut delivery: Delivery,
        left: RemainingWork,
    ) -> Result<Next, CycleError> {
        let effect = match self.send(&mut delivery).await {
            Ok(effect) => effect,
            Err(error) => return Err(self.keep(delivery, Some(left), error)),
        };
        delivery.release_charges();
        let Applied { is_sent, is_changed, is_restored: _ } = effect;
        let mut delays = delivery.delays(self.serving.clock.now());
        delays.extend(&left.delays);
        match delays.iter().min() {
            None if effect.next() == Next::Coming && self.is_settled(&delivery, &left) => {
                return Ok(Next::Settled);
            }
            Some(delay) if is_changed => self.skip_sleep(*delay),
            Some(delay) => return Ok(Next::Wait(*delay)),
            None if left.is_awaited && !is_changed => return Ok(self.wait_for_exit().await),
            None if !is_sent && left.looked_at => self.logger.log(LogLevel::Debug, plan::FINISHED),
            None => {}
        }
        Ok(effect.next())
    }

    /// Returns whether a cycle would certainly do nothing about the object as the server has returned it.
    fn is_settled(&self, delivery: &Delivery, left: &RemainingWork) -> bool {
        let StreamContext { settings, handlers, .. } = self.serving;
        let (Some(object), Some(essence)) = (&*self.patched, delivery.handled()) else {
            return false;
        };
        let is_quiet = !left.is_awaited && settings.posting.condition.is_none();
        is_quiet
            && self.memory.is_well()
            && settled::is_settled(&settings.persistence, handlers, object, essence)
    }

    /// Sends the changes that remain from an earlier event.
    pub(in crate::reactor) async fn catch_up(
        mut self,
        delivery: Delivery,
    ) -> Result<Applied, CycleError> {
        let mut delivery = delivery.outdated(self.object);
        let sent = self.send(&mut delivery).await;
        sent.map_err(|error| self.keep(delivery, None, error))
    }

    fn keep(
        &mut self,
        mut delivery: Delivery,
        left: Option<RemainingWork>,
        error: CycleError,
    ) -> CycleError {
        delivery.keep(self.serving);
        let object = self.object.unparsed();
        let is_uncertain = error.is_uncertain();
        self.memory.unsent = Some(Box::new(Unsent { delivery, object, left, is_uncertain }));
        error
    }

    /// Sends the changes of a cycle. A request that changes nothing causes no event.
    async fn send(&mut self, delivery: &mut Delivery) -> Result<Applied, CycleError> {
        let mut sender = self.sender();
        let sent = sender.run(delivery).await;
        let received = sender.received;
        let is_restored = received.is_restored;
        let is_newer = self.receive(received);
        let sent = sent?;
        self.memory.is_gone |= sent.is_gone;
        Ok(Applied { is_sent: sent.is_any, is_changed: is_newer || sent.is_gone, is_restored })
    }

    /// Returns the sender of the cycle's changes.
    pub(in crate::reactor) fn sender(&mut self) -> Sender<'_> {
        Sender {
            serving: self.serving,
            queue: self.queue,
            memory: self.memory,
            object: self.object,
            logger: self.logger,
            received: PatchResponses::default(),
        }
    }

    /// Stores the server's response. Returns whether the object has a newer version now.
    fn receive(&mut self, received: PatchResponses) -> bool {
        let before = &self.object.header().resource_version;
        let newer = received.object.filter(|it| {
            // When the last finalizer is removed, the server deletes the object without a newer version.
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

    /// Sleeps until handlers are due, and then triggers an event. If nothing follows, the undecided handlers come next.
    pub(in crate::reactor) async fn wait(mut self, delay: Duration) -> Result<Next, CycleError> {
        // Other workers use the permit meanwhile.
        let next = match self.permit.release_while(self.sleep(delay)).await {
            PauseEnd::Complete => self.touch().await?,
            PauseEnd::Interrupted => Next::Event,
            PauseEnd::Outdated => Next::Again,
        };
        let is_waiting = self.memory.undecided.is_some() || !self.serving.is_open();
        let is_last = next == Next::Event && self.queue.is_empty();
        Ok(if is_last && is_waiting { Next::Again } else { next })
    }

    /// Waits for the end of stopping daemons, without a limit: nothing is due, and newer events interrupt the wait.
    async fn wait_for_exit(&self) -> Next {
        let wait = async {
            tokio::select! {
                biased; // a newer event comes first
                () = self.queue.pressure() => Next::Event,
                () = self.exit() => Next::Again,
                () = self.serving.replaced.cancelled() => Next::Again,
            }
        };
        // Other workers use the permit meanwhile.
        self.permit.release_while(wait).await
    }

    async fn exit(&self) {
        match &self.memory.background {
            Some(background) => background.exit().await,
            None => future::pending().await,
        }
    }

    /// Sleeps until handlers are due.
    async fn sleep(&self, delay: Duration) -> PauseEnd {
        if delay.is_zero() {
            return PauseEnd::Complete;
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
            biased; // a complete pause counts as complete; then a newer event
            () = time::sleep_until(until) => PauseEnd::Complete,
            () = self.queue.pressure() => PauseEnd::Interrupted,
            () = self.exit() => PauseEnd::Outdated,
            () = self.serving.replaced.cancelled() => PauseEnd::Outdated,
        };
        if slept == PauseEnd::Interrupted {
            let left = until.saturating_duration_since(time::Instant::now());
            let left = python_text::float(left);
            let text = format!("Sleeping was interrupted by new changes, {left} seconds left.");
            self.logger.log(LogLevel::Debug, &text);
        }
        slept
    }

    /// Triggers an event, so that the next cycle finds the handlers due. This way the delay survives a restart.
    async fn touch(&mut self) -> Result<Next, CycleError> {
        let mut patch = Patch::default();
        let stamp = progress::touch_stamp(self.serving.clock.now());
        let storage = &self.serving.settings.persistence.progress_storage;
        progress::touch(storage, self.object.body(), &mut patch.merge, Some(&stamp));
        let mut sender = self.sender();
        let is_gone = sender.apply(&mut patch).await;
        let received = sender.received;
        let is_restored = received.is_restored;
        let is_newer = self.receive(received);
        let is_gone = is_gone?;
        self.memory.is_gone |= is_gone;
        let is_changed = is_newer || is_gone;
        Ok(Applied { is_sent: true, is_changed, is_restored }.next())
    }
}
