//! Whose turn it is to compute: one call of a script at a time, in the order of asking.
//!
//! Calls share the variables of their script. Rhai gives up on a shared value that is locked for some milliseconds, with an
//! error that says nothing to a script's author; so calls wait side by side but compute one after the other, as in Lua.
//! Scripts do not wait for each other.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{Condvar, Mutex, MutexGuard};

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
    /// Turns that nobody waits for any more.
    returned: BTreeSet<u64>,
}

/// A place in the order of turns. Dropped, it is given back.
#[derive(Debug)]
pub(super) struct Ticket {
    /// `None` once the turn has begun.
    number: Option<u64>,
    turns: Arc<Turns>,
}

impl Turns {
    /// Asks for a turn.
    pub(super) fn ask(self: &Arc<Self>) -> Ticket {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        Ticket { number: Some(number), turns: Arc::clone(self) }
    }

    /// The same, if the turn begins at once: nobody has one, and nobody waits for one.
    pub(super) fn ask_now(self: &Arc<Self>) -> Option<Ticket> {
        let mut state = self.state.lock();
        if state.next > state.serving {
            return None;
        }
        let number = state.next;
        state.next += 1;
        Some(Ticket { number: Some(number), turns: Arc::clone(self) })
    }

    /// Ends the turn of the calling thread.
    pub(super) fn pass(&self) {
        let mut state = self.state.lock();
        state.serving += 1;
        self.call(state);
    }

    /// Returns whether others wait while the calling thread has its turn.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state.lock();
        state.next > state.serving + 1
    }

    fn give_back(&self, number: u64) {
        let mut state = self.state.lock();
        state.returned.insert(number);
        self.call(state);
    }

    /// Lets the next one begin.
    fn call(&self, mut state: MutexGuard<'_, Tickets>) {
        loop {
            let serving = state.serving;
            if !state.returned.remove(&serving) {
                break;
            }
            state.serving += 1;
        }
        drop(state);
        self.wake.notify_all();
    }
}

impl Ticket {
    /// Waits for the turn. Every turn must be passed on.
    pub(super) fn wait(mut self) {
        let Some(number) = self.number.take() else { return };
        let mut state = self.turns.state.lock();
        self.turns.wake.wait_while(&mut state, |it| it.serving != number);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.turns.give_back(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Turns};

    #[test]
    fn a_turn_that_is_given_back_holds_up_nobody() {
        let turns = Arc::new(Turns::default());
        let [first, second, third, fourth] = [(); 4].map(|()| turns.ask());
        first.wait();
        drop(third);
        drop(second);
        assert!(turns.is_wanted());
        turns.pass();
        fourth.wait();
        assert!(!turns.is_wanted());
        turns.pass();
        drop(turns.ask());
        turns.ask().wait();
        assert!(turns.ask_now().is_none());
        turns.pass();
        turns.ask_now().expect("nobody has a turn").wait();
        turns.pass();
    }
}
