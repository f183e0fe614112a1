//! Handlers that nothing can be decided about for now: their filters failed, or indexes that their scripts use are not complete.
//!
//! All other handlers are served meanwhile. When a cycle has nothing else to do, it waits here until something can be decided.
//! Before: `cycle.rs`. What is remembered: `logic/doubts`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future;
use tokio::time::Instant;

use super::{conclusion::Next, memory::Memory, place::Place, queue::Queue, serving::Serving};
use crate::handling::asking::{ANSWER_MAX, Patience};
use crate::logic::{doubts::Doubts, filters::Answers, function::ScriptId, handler::Handler};
use crate::ports::until;

/// What one cycle knows about undecided handlers from its beginning.
pub(super) struct Patient {
    /// The scripts that wait for indexes.
    waiting: Arc<BTreeSet<ScriptId>>,
    /// When all filters should have been asked.
    deadline: Instant,
}

/// What a cycle waits for that has nothing else to do.
pub(super) struct Wait<'a> {
    pub(super) serving: &'a Serving,
    pub(super) queue: &'a Queue,
    pub(super) place: &'a Place,
    pub(super) memory: &'a Memory,
    pub(super) patient: &'a Patient,
}

impl Patient {
    /// At the beginning of a cycle, before it is known which indexes are complete.
    pub(super) fn new(memory: &mut Memory) -> Self {
        if let Some(doubts) = &mut memory.doubts {
            doubts.begin();
        }
        Patient { waiting: Arc::default(), deadline: Instant::now() + ANSWER_MAX }
    }

    /// Notes which scripts wait for indexes, after the cycle itself has waited since `start`.
    pub(super) fn wait_for(&mut self, scripts: BTreeSet<ScriptId>, start: Instant) {
        self.waiting = Arc::new(scripts);
        // The wait for indexes does not count.
        self.deadline += start.elapsed();
    }

    /// No answers yet, for one cause.
    pub(super) fn answers(&self) -> Answers {
        Answers::without(&self.waiting)
    }

    /// How filters are asked.
    pub(super) fn patience<'a>(
        &self,
        serving: &'a Serving,
        doubts: &'a mut Option<Box<Doubts>>,
    ) -> Patience<'a> {
        let delays = &serving.settings.queueing.error_delays;
        Patience { doubts, delays, start: serving.start, deadline: self.deadline }
    }

    /// Whether a handler waits for indexes.
    pub(super) fn waits(&self, handler: &Handler) -> bool {
        self.waiting.contains(&handler.function.script)
    }

    /// Ends the cycle: forgets the handlers that could be decided about.
    pub(super) fn end(memory: &mut Memory, now: Duration) {
        let Some(doubts) = &mut memory.doubts else { return };
        doubts.end(now);
        if doubts.is_empty() {
            memory.doubts = None;
        }
    }
}

impl Wait<'_> {
    /// Whether there is anything to wait for, and nothing else is due before.
    pub(super) fn comes_before(&self, delays: &[Duration]) -> bool {
        let pause = self.pause();
        self.is_for_indexes() || pause.is_some_and(|it| delays.iter().all(|delay| it < *delay))
    }

    /// Waits until something can be decided, or newer events come. Nothing if everything is decided.
    pub(super) async fn run(self) -> Next {
        let pause = self.pause();
        if pause.is_none() && !self.is_for_indexes() {
            return Next::Event;
        }
        let due = pause.map(|it| Instant::now() + it);
        let wait = async {
            tokio::select! {
                biased; // a newer event tells more than the others
                () = self.queue.pressure() => Next::Event,
                () = until(due) => Next::Again,
                () = self.opening() => Next::Again,
                () = self.exit() => Next::Again,
                () = self.serving.replaced.cancelled() => Next::Again,
            }
        };
        // Others may work meanwhile.
        self.place.without(wait).await
    }

    fn pause(&self) -> Option<Duration> {
        self.memory.doubts.as_ref()?.pause(self.serving.uptime())
    }

    fn is_for_indexes(&self) -> bool {
        !self.patient.waiting.is_empty()
    }

    async fn opening(&self) {
        if !self.is_for_indexes() {
            return future::pending().await;
        }
        self.serving.open_for(self.patient.waiting.iter()).await;
    }

    /// A daemon that was told to stop may have ended.
    async fn exit(&self) {
        match &self.memory.background {
            Some(background) => background.exit().await,
            None => future::pending().await,
        }
    }
}
