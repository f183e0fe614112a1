//! The link between a call on its thread and its future on the runtime: cancellation, and detection of stuck calls.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    pool::Lead,
    stopwatch::RealInstant,
    turn::{Ticket, Turns},
};

/// Shared by the call and its future.
#[derive(Debug, Default)]
pub(super) struct CallLink {
    cancelled: AtomicBool,
    state: Mutex<State>,
    /// Set when the call has a thread.
    lead: OnceLock<Lead>,
}

/// The state of a call's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Waits for its turn, or for the runtime.
    #[default]
    Waiting,
    /// Has its turn; the last heartbeat was at this time.
    Computing(RealInstant),
    /// Did not stop at its limit and was given up: its turn was ended for it.
    Abandoned,
}

impl CallLink {
    /// Marks the call as cancelled: its result is no longer needed.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the result is no longer needed.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Waits for the first turn of a call, which now has a thread, and begins it. Without a lead, the call is inline.
    pub(super) fn begin(&self, ticket: Ticket, lead: Option<Lead>) {
        if let Some(lead) = lead {
            // A call with a lead begins once.
            drop(self.lead.set(lead));
        }
        ticket.wait();
        *self.state.lock() = State::Computing(RealInstant::now());
    }

    /// Waits for another turn of the call and begins it.
    pub(super) fn resume(&self, turns: &Arc<Turns>) {
        if *self.state.lock() == State::Abandoned {
            return;
        }
        turns.ask().wait();
        *self.state.lock() = State::Computing(RealInstant::now());
    }

    /// Passes on the leadership: the call has ended its turn but keeps its thread.
    pub(super) fn pass_lead(&self) {
        if let Some(lead) = self.lead.get() {
            lead.pass();
        }
    }

    /// Ends the turn of the call.
    pub(super) fn pause(&self, turns: &Turns) {
        // The next thread may take the processor of this one, which must not hold the lock then.
        if self.leave(State::Waiting, |it| it != State::Abandoned) {
            turns.pass();
        }
    }

    /// Records a heartbeat: the call computes and checks its limits.
    pub(super) fn beat(&self) {
        let mut state = self.state.lock();
        if let State::Computing(_) = *state {
            *state = State::Computing(RealInstant::now());
        }
    }

    /// Gives the call up if it has its turn and its last heartbeat is older than `longest`; returns whether it did. The turn then passes to
    /// other calls. If the thread ever continues, its next step is refused.
    pub(super) fn abandon(&self, longest: Duration, turns: &Turns) -> bool {
        let is_late =
            |it: State| matches!(it, State::Computing(since) if since.elapsed() > longest);
        let stuck = self.leave(State::Abandoned, is_late);
        if stuck {
            self.cancel();
            turns.pass();
            self.pass_lead();
        }
        stuck
    }

    /// Changes the state if it is `wanted`; returns whether it is.
    fn leave(&self, next: State, wanted: impl Fn(State) -> bool) -> bool {
        let mut state = self.state.lock();
        let is_wanted = wanted(*state);
        if is_wanted {
            *state = next;
        }
        is_wanted
    }
}
