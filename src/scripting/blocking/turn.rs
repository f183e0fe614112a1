//! A fair lock: the calls of a script compute one at a time, in the order of their requests.
//!
//! Calls share the variables of their script. If a shared value stays locked for some milliseconds, Rhai gives up, with an error that does
//! not help the script's author. So calls wait concurrently but compute one after another, as in Lua. Scripts do not wait for each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    thread::{self, Thread},
};

use parking_lot::{Mutex, MutexGuard};

/// The lock of one script; a turn is the right to compute.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<Tickets>,
}

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    serving: u64,
    /// Tickets that were dropped before their turn.
    returned: BTreeSet<u64>,
    /// The threads that wait for their turns. Only the next one is woken: if all were, the operator's thread would wait for this lock
    /// until each of them has looked.
    waiting: BTreeMap<u64, Thread>,
}

/// A place in the queue for turns; given back when dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    /// `None` once [`Ticket::wait`] has been called.
    number: Option<u64>,
    turns: Arc<Turns>,
}

impl Turns {
    /// Takes the next ticket.
    pub(super) fn ask(self: &Arc<Self>) -> Ticket {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        Ticket { number: Some(number), turns: Arc::clone(self) }
    }

    /// Takes a ticket if its turn begins at once; `None` if another call has a turn or waits for one.
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
        Self::call(state);
    }

    /// Returns whether other calls wait for a turn while the caller has one.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.state.lock();
        state.next > state.serving + 1
    }

    /// Returns whether the turn of this number has begun; otherwise the calling thread is woken when it begins.
    fn begins(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let begins = state.serving == number;
        if !begins {
            state.waiting.insert(number, thread::current());
        }
        begins
    }

    fn give_back(&self, number: u64) {
        let mut state = self.state.lock();
        state.returned.insert(number);
        Self::call(state);
    }

    /// Skips tickets that were given back, and wakes the thread whose turn begins.
    fn call(mut state: MutexGuard<'_, Tickets>) {
        loop {
            let serving = state.serving;
            if !state.returned.remove(&serving) {
                break;
            }
            state.serving += 1;
        }
        let serving = state.serving;
        let next = state.waiting.remove(&serving);
        drop(state);
        if let Some(thread) = next {
            thread.unpark();
        }
    }
}

impl Ticket {
    /// Blocks until the turn begins. Each turn must be ended with [`Turns::pass`].
    pub(super) fn wait(mut self) {
        let Some(number) = self.number.take() else { return };
        while !self.turns.begins(number) {
            thread::park();
        }
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
    use super::{Arc, Mutex, Turns, thread};

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

    #[test]
    fn the_turns_of_waiting_threads_are_in_the_order_of_their_requests() {
        let turns = Arc::new(Turns::default());
        turns.ask().wait();
        let seen = Mutex::new(Vec::new());
        thread::scope(|threads| {
            let (turns, seen) = (&turns, &seen);
            for number in 0..20 {
                let ticket = turns.ask();
                threads.spawn(move || {
                    ticket.wait();
                    seen.lock().push(number);
                    turns.pass();
                });
            }
            turns.pass();
        });
        assert_eq!(seen.into_inner(), (0..20).collect::<Vec<_>>());
        assert!(turns.state.lock().waiting.is_empty());
    }
}
