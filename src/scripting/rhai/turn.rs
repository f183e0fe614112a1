//! Whose turn it is to compute: one call of a script at a time, in the order of asking.
//!
//! Calls share the variables of their script. Rhai gives up on a shared value that is locked for some milliseconds, with an
//! error that says nothing to a script's author; so calls wait side by side but compute one after the other, as in Lua.
//! Scripts do not wait for each other.

use parking_lot::{Condvar, Mutex};

/// The turns of one script.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<Tickets>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    serving: u64,
}

impl Turns {
    /// Waits for the turn of the calling thread. Every turn must be passed on.
    pub(super) fn take(&self) {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        self.wake.wait_while(&mut state, |it| it.serving != ticket);
    }

    /// Ends the turn of the calling thread.
    pub(super) fn pass(&self) {
        self.state.lock().serving += 1;
        self.wake.notify_all();
    }

    /// Whether others wait while the calling thread has its turn.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state.lock();
        state.next > state.serving + 1
    }
}
