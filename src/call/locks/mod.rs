//! The locks of scripts: `kopf.lock`. They exist within one process, for all of its scripts, and survive reloads.
//!
//! A lock belongs to a call. However the call ends, the engine frees its locks with [`Locks::free_all`].

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time};

#[cfg(test)]
mod tests;

/// Maximum number of locks that one call holds.
const HELD_MAX: usize = 100;

/// The identity of a running call.
pub type CallId = usize;

/// The locks of one operator. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Locks(Arc<Mutex<State>>);

/// A call that requests a lock.
#[derive(Clone, Debug)]
pub struct Wanting {
    /// The call that requests the lock.
    pub call: CallId,
    /// The call as errors name it: `Handler 'create_fn' of ns1/one`.
    pub name: String,
}

/// A place at a lock: as its holder, or in its queue.
#[derive(Debug)]
pub struct LockTicket {
    /// The number of the place, unique among the locks of one operator.
    pub number: u64,
    lock: Arc<str>,
    turn: oneshot::Receiver<()>,
}

#[derive(Debug, Default)]
struct State {
    locks: BTreeMap<Arc<str>, Lock>,
    /// The number of the last ticket.
    last: u64,
}

#[derive(Debug)]
struct Lock {
    holder: Waiter,
    /// In the order of arrival.
    queue: VecDeque<(Waiter, oneshot::Sender<()>)>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    wanting: Wanting,
}

impl Locks {
    /// Takes the last place in the queue of a lock.
    ///
    /// # Errors
    /// If the call holds the lock already, if its holder waits for a lock of this call, or if the call holds too many.
    pub fn enter(&self, lock: &str, wanting: Wanting) -> Result<LockTicket, String> {
        let mut state = self.0.lock();
        state.check(lock, wanting.call)?;
        state.last += 1;
        let number = state.last;
        let (sender, turn) = oneshot::channel();
        let lock: Arc<str> = lock.into();
        let place = Waiter { number, wanting };
        if let Some(found) = state.locks.get_mut(&lock) {
            found.queue.push_back((place, sender));
        } else {
            let new = Lock { holder: place, queue: VecDeque::new() };
            state.locks.insert(Arc::clone(&lock), new);
            // The receiver exists, so this cannot fail.
            let _sent = sender.send(());
        }
        Ok(LockTicket { number, lock, turn })
    }

    /// Waits until the ticket holds its lock.
    ///
    /// # Errors
    /// If that takes longer than `timeout`; the error names the holder.
    pub async fn wait(&self, ticket: LockTicket, timeout: Duration) -> Result<(), String> {
        let LockTicket { number, lock, turn } = ticket;
        if let Ok(Ok(())) = time::timeout(timeout, turn).await {
            return Ok(());
        }
        let mut state = self.0.lock();
        let holder = state.locks.get(&lock).map(|it| &it.holder);
        if holder.is_some_and(|it| it.number == number) {
            return Ok(());
        }
        let holder = holder.map(|it| it.wanting.name.clone()).unwrap_or_default();
        state.leave(|it| it.number == number);
        let seconds = timeout.as_secs_f64();
        Err(format!("the lock '{lock}' is still held by {holder} after {seconds} s"))
    }

    /// Frees what a ticket holds, or removes it from its queue.
    pub fn free(&self, number: u64) {
        self.0.lock().leave(|it| it.number == number);
    }

    /// Frees the locks that a call holds or waits for, because it has ended.
    pub fn free_all(&self, call: CallId) {
        let mut state = self.0.lock();
        if !state.locks.is_empty() {
            state.leave(|it| it.wanting.call == call);
        }
    }

    /// Returns the number of locks that are held.
    pub fn count(&self) -> usize {
        self.0.lock().locks.len()
    }
}

impl State {
    /// Returns the error if a call must not wait for a lock.
    fn check(&self, lock: &str, call: CallId) -> Result<(), String> {
        let held: Vec<_> =
            self.locks.iter().filter(|(_, it)| it.holder.wanting.call == call).collect();
        if held.iter().any(|(name, _)| &***name == lock) {
            return Err(format!(
                "this call holds the lock '{lock}' already; call the function without a second lock"
            ));
        }
        if held.len() >= HELD_MAX {
            return Err(format!("this call holds {HELD_MAX} locks already"));
        }
        // From the holder to the lock that it waits for, to the holder of that.
        let mut next = self.locks.get(lock);
        for _ in 0..=self.locks.len() {
            let Some(found) = next else { return Ok(()) };
            let holder = &found.holder.wanting;
            let waits = self.locks.iter().find(|(_, it)| {
                it.queue.iter().any(|(place, _)| place.wanting.call == holder.call)
            });
            let Some((name, waited)) = waits else { return Ok(()) };
            if waited.holder.wanting.call == call {
                return Err(format!(
                    "a deadlock: {} waits for the lock '{name}', which this call holds, and holds what this call waits for; \
                     take locks in the same order everywhere",
                    holder.name
                ));
            }
            next = Some(waited);
        }
        Ok(())
    }

    /// Removes places, and passes freed locks on.
    fn leave(&mut self, is_meant: impl Fn(&Waiter) -> bool) {
        self.locks.retain(|_, lock| {
            lock.queue.retain(|(place, _)| !is_meant(place));
            if !is_meant(&lock.holder) {
                return true;
            }
            match lock.queue.pop_front() {
                Some((place, turn)) => {
                    lock.holder = place;
                    // A waiter that no longer exists frees its place itself.
                    let _gone = turn.send(());
                    true
                }
                None => false,
            }
        });
    }
}
