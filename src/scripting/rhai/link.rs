//! Between a call on its thread and whoever waits for it on the runtime: is it still wanted, is it stuck?

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

/// Both ends hold it.
#[derive(Debug, Default)]
pub(super) struct Link {
    cancelled: AtomicBool,
    state: Mutex<State>,
    /// Since it has a thread.
    lead: OnceLock<Lead>,
}

/// What the thread of a call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It waits: for its turn, or for something outside.
    #[default]
    Waiting,
    /// It has its turn, and gave the last sign of life then.
    Computing(RealInstant),
    /// It did not stop when it had to, and nobody waits for it any more: its turn was passed on.
    Abandoned,
}

impl Link {
    /// Marks the call as cancelled: its result is no longer needed.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the result is no longer needed.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The call has a thread, and takes its first turn. Without a lead it runs on the operator's thread.
    pub(super) fn begin(&self, ticket: Ticket, lead: Option<Lead>) {
        if let Some(lead) = lead {
            // It begins once.
            drop(self.lead.set(lead));
        }
        ticket.wait();
        *self.state.lock() = State::Computing(RealInstant::now());
    }

    /// The call takes another turn.
    pub(super) fn resume(&self, turns: &Arc<Turns>) {
        if *self.state.lock() == State::Abandoned {
            return;
        }
        turns.ask().wait();
        *self.state.lock() = State::Computing(RealInstant::now());
    }

    /// The call has ended its turn and needs its thread for itself.
    pub(super) fn pass_lead(&self) {
        if let Some(lead) = self.lead.get() {
            lead.pass();
        }
    }

    /// The call ends its turn.
    pub(super) fn pause(&self, turns: &Turns) {
        let mut state = self.state.lock();
        if *state != State::Abandoned {
            *state = State::Waiting;
            turns.pass();
        }
    }

    /// The call computes and looks at its limits.
    pub(super) fn beat(&self) {
        let mut state = self.state.lock();
        if let State::Computing(_) = *state {
            *state = State::Computing(RealInstant::now());
        }
    }

    /// Gives the call up if it has its turn and gave no sign of life for longer than this; its turn goes on to the others then.
    /// What the thread does when it comes back is refused at its next step.
    pub(super) fn abandon(&self, longest: Duration, turns: &Turns) -> bool {
        let mut state = self.state.lock();
        let stuck = matches!(*state, State::Computing(since) if since.elapsed() > longest);
        if stuck {
            *state = State::Abandoned;
            self.cancel();
            turns.pass();
            self.pass_lead();
        }
        stuck
    }
}
