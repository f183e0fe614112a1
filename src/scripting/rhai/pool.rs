//! Threads for the calls of one script: with stacks deep enough for its recursion, grown on demand, ended when idle.
//!
//! Never tokio's blocking pool, which name resolution and files need. The number of jobs at once is bounded by whoever
//! submits them (`runner.rs`), so there are never more threads than that.

use std::{collections::VecDeque, io, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::logic::function::ScriptId;
use crate::settings::Sandbox;

/// Twice what one level of calls takes at most, with all the nested expressions that the parser allows: an overflow would end
/// the process. Untouched pages of a stack cost nothing.
const STACK_BYTES_PER_CALL: usize = 128 * 1024;
/// Values may be nested as deep as the memory of the script allows, and are dropped recursively: so much stack for each byte
/// of it. Measured by `the_deepest_values_can_be_dropped`.
const STACK_BYTES_PER_BYTE: usize = 4;
/// A thread without work for this long ends: long enough for the bursts of one object, short enough to give memory back.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one script. They end when the pool is dropped and their jobs are done.
pub(super) struct Pool {
    shared: Arc<Shared>,
    stack: usize,
    /// Of its threads, as the system shows them: at most 15 bytes.
    name: String,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// For a script with these limits.
    pub(super) fn new(script: ScriptId, limits: &Sandbox) -> Self {
        let calls = limits.call_depth.saturating_mul(STACK_BYTES_PER_CALL);
        let values = limits.memory_limit.saturating_mul(STACK_BYTES_PER_BYTE);
        let shared = Shared { state: Mutex::default(), wake: Condvar::new() };
        let stack = calls.saturating_add(values);
        Pool { shared: Arc::new(shared), stack, name: format!("rhai-{}", script.0) }
    }

    /// Runs a job on a thread of its own. The error is of the system: no more threads.
    pub(super) fn submit(&self, job: Job) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.idle <= state.jobs.len() {
            let shared = Arc::clone(&self.shared);
            // The thread ends by itself: when it is idle, or when the pool is gone.
            thread::Builder::new()
                .name(self.name.clone())
                .stack_size(self.stack)
                .spawn(move || shared.work())?;
        }
        state.jobs.push_back(job);
        self.shared.wake.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run without the lock, so a panic cannot leave the state half-changed.
        self.state.lock()
    }

    /// The life of one thread.
    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle += 1;
        self.wake.wait_while_for(&mut state, |it| it.jobs.is_empty() && !it.closed, IDLE);
        state.idle -= 1;
        state.jobs.pop_front()
    }
}
