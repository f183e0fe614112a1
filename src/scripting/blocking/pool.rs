//! A thread pool for the calls of one script: stacks deep enough for its recursion, threads created on demand and ended when idle.
//!
//! Calls take turns, so one thread, the leader, runs job after job. Only a call that ends its turn before its end, because it waits or has
//! computed for long, needs a separate thread; then another thread becomes the leader ([`Lead::pass`]).
//!
//! Tokio's blocking pool is not used: name resolution and file access need it. `runner.rs` limits the number of concurrent jobs, and
//! thereby of threads.

use std::{cell::Cell, collections::VecDeque, fmt, io, mem, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::turn::{Ticket, Turns};
use crate::scripting::script::priority::lower_priority;
use crate::settings::Sandbox;
use crate::telemetry::ScriptUsage;

/// Twice the maximum that one level of calls takes, with all nested expressions that the parser allows: a stack overflow would abort the
/// process. Untouched pages of a stack cost nothing.
const STACK_BYTES_PER_CALL: usize = 128 * 1024;
/// Stack for each byte of the script's memory limit: values may be nested as deep as the memory allows, and are dropped recursively.
/// Measured by `the_deepest_values_can_be_dropped`.
const STACK_BYTES_PER_BYTE: usize = 4;
/// A thread that is idle for this long ends: long enough for the bursts of one object, short enough to return memory.
const IDLE: Duration = Duration::from_secs(10);

/// Gets the ticket for its turn.
type Job = Box<dyn FnOnce(Ticket) + Send>;

/// The threads of one script. They end when the pool is dropped and their jobs are done.
pub(super) struct Pool {
    shared: Arc<Shared>,
    turns: Arc<Turns>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    stack: usize,
    /// The name of the threads, as the system shows it: at most 15 bytes.
    name: String,
    usage: ScriptUsage,
}

#[derive(Default)]
struct State {
    /// In the order of their turns.
    jobs: VecDeque<(Job, Ticket)>,
    /// The run number of the leader's job; the leader takes the next job after it.
    leader: Option<u64>,
    /// Whether a thread has been woken or created that will become the leader.
    called: bool,
    idle: usize,
    /// Number of jobs that have started; the number of the last run.
    runs: u64,
    closed: bool,
}

/// Lets a running job pass on the leadership of its thread.
#[derive(Clone)]
pub(super) struct Lead {
    shared: Arc<Shared>,
    run: u64,
}

thread_local! {
    /// The run number of this thread's job.
    static RUN: Cell<u64> = const { Cell::new(0) };
}

impl Pool {
    /// Creates the pool of a script with these limits, whose threads have this name and whose calls take these turns.
    pub(super) fn new(
        name: String,
        limits: &Sandbox,
        turns: Arc<Turns>,
        usage: ScriptUsage,
    ) -> Self {
        let calls = limits.call_depth.saturating_mul(STACK_BYTES_PER_CALL);
        let values = limits.memory_limit.saturating_mul(STACK_BYTES_PER_BYTE);
        let shared = Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            stack: calls.saturating_add(values),
            name,
            usage,
        };
        Pool { shared: Arc::new(shared), turns }
    }

    /// Runs a job on a thread of the pool. Fails, and drops all queued jobs, if the system cannot create a thread.
    pub(super) fn submit(&self, job: impl FnOnce(Ticket, Lead) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let job = move |ticket| job(ticket, Lead { shared, run: RUN.get() });
        let mut state = self.shared.lock();
        // Under the lock, so that jobs and turns are in the same order.
        state.jobs.push_back((Box::new(job), self.turns.ask()));
        if state.leader.is_some() { Ok(()) } else { self.shared.call(state) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Lead {
    /// Lets another thread run the next job, because this one gives up its turn before its end. If no thread can be created, the queued
    /// jobs are dropped.
    pub(super) fn pass(&self) {
        let mut state = self.shared.lock();
        if state.leader != Some(self.run) {
            return;
        }
        state.leader = None;
        if !state.jobs.is_empty() {
            self.shared.call(state).ok();
        }
    }
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run without this lock, so a panic cannot leave the state half-changed.
        self.state.lock()
    }

    /// Wakes or creates a thread that becomes the leader, unless one is on its way. If none can be created, all queued jobs are dropped.
    fn call(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> io::Result<()> {
        if state.called {
            return Ok(());
        }
        state.called = true;
        if state.idle > 0 {
            self.wake.notify_one();
            return Ok(());
        }
        // Without the lock: the new thread may take the processor of the calling one, and the operator's thread would wait for both.
        drop(state);
        let shared = Arc::clone(self);
        // The thread ends by itself: when it is idle, or after the pool was dropped.
        let thread = thread::Builder::new().name(self.name.clone()).stack_size(self.stack);
        thread.spawn(move || shared.work()).map(drop).or_else(|error| self.refuse(error))
    }

    /// Drops all queued jobs because no thread could be created, unless a thread has become the leader meanwhile.
    fn refuse(&self, error: io::Error) -> io::Result<()> {
        let mut state = self.lock();
        state.called = false;
        if state.leader.is_some() {
            return Ok(());
        }
        let refused = mem::take(&mut state.jobs);
        drop(state);
        drop(refused);
        Err(error)
    }

    /// Runs jobs until there are none: the main function of a thread.
    fn work(&self) {
        lower_priority();
        let _counted = self.usage.of_thread();
        while let Some((job, ticket)) = self.next() {
            job(ticket);
        }
    }

    /// Returns the next job for the calling thread, which becomes the leader; `None` after [`IDLE`] without a job, or after the pool was
    /// dropped.
    fn next(&self) -> Option<(Job, Ticket)> {
        let mut state = self.lock();
        if state.leader == Some(RUN.get()) {
            state.leader = None;
        }
        let mut is_late = false;
        loop {
            if state.leader.is_none()
                && let Some(job) = state.jobs.pop_front()
            {
                state.called = false;
                state.runs += 1;
                state.leader = Some(state.runs);
                RUN.set(state.runs);
                return Some(job);
            }
            if state.closed || is_late {
                return None;
            }
            state.idle += 1;
            is_late = self.wake.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        thread::ThreadId,
    };

    use super::{
        super::link::CallLink, Arc, Duration, Lead, Pool, Sandbox, ScriptUsage, Ticket, Turns,
        thread,
    };

    /// A pool whose jobs send their numbers and threads when they have ended.
    struct Fixture {
        pool: Pool,
        turns: Arc<Turns>,
        tell: Sender<(usize, ThreadId)>,
        told: Receiver<(usize, ThreadId)>,
    }

    impl Fixture {
        fn new() -> Self {
            let turns = Arc::<Turns>::default();
            let pool = Pool::new(
                "script".to_owned(),
                &Sandbox::default(),
                Arc::clone(&turns),
                ScriptUsage::default(),
            );
            let (tell, told) = channel();
            Fixture { pool, turns, tell, told }
        }

        /// Submits a job that runs `in_turn` in its turn, and then `afterwards`.
        fn submit(
            &self,
            number: usize,
            in_turn: impl FnOnce() + Send + 'static,
            afterwards: impl FnOnce(&Arc<Turns>, Lead) + Send + 'static,
        ) {
            let (turns, tell) = (Arc::clone(&self.turns), self.tell.clone());
            let job = move |ticket: Ticket, lead| {
                ticket.wait();
                in_turn();
                turns.pass();
                afterwards(&turns, lead);
                tell.send((number, thread::current().id())).expect("the test listens");
            };
            self.pool.submit(job).expect("a thread");
        }

        /// Waits until `count` jobs have ended, and returns them.
        fn ended(&self, count: usize) -> Vec<(usize, ThreadId)> {
            self.told.iter().take(count).collect()
        }
    }

    #[test]
    fn jobs_that_do_not_wait_run_one_after_the_other_on_one_thread() {
        let fixture = Fixture::new();
        let (open, gate) = channel::<()>();
        fixture.submit(0, move || assert!(gate.recv().is_err()), |_, _| {});
        for number in 1..100 {
            fixture.submit(number, || {}, |_, _| {});
        }
        drop(open);
        let ended = fixture.ended(100);
        assert!(ended.iter().map(|it| it.0).eq(0..100), "{ended:?}");
        assert!(ended.iter().all(|it| it.1 == ended[0].1), "{ended:?}");
    }

    #[test]
    fn a_job_that_waits_has_its_thread_for_itself_and_one_other_takes_the_next_jobs() {
        let fixture = Fixture::new();
        let (open, gate) = channel::<()>();
        fixture.submit(
            0,
            || {},
            move |turns, lead| {
                lead.pass();
                assert!(gate.recv().is_err());
                // Another thread is the leader now: this has no effect.
                lead.pass();
                turns.ask().wait();
                turns.pass();
            },
        );
        for number in 1..100 {
            fixture.submit(number, || {}, |_, _| {});
        }
        let others = fixture.ended(99);
        assert!(others.iter().map(|it| it.0).eq(1..100), "{others:?}");
        assert!(others.iter().all(|it| it.1 == others[0].1), "{others:?}");
        drop(open);
        let first = fixture.ended(1)[0];
        assert!(first.0 == 0 && first.1 != others[0].1);
    }

    #[test]
    fn jobs_that_all_wait_for_a_later_one_find_a_thread_each() {
        let fixture = Fixture::new();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(parking_lot::Mutex::new(gate));
        for number in 0..20 {
            let gate = Arc::clone(&gate);
            fixture.submit(
                number,
                || {},
                move |turns, lead| {
                    lead.pass();
                    assert!(gate.lock().recv().is_err());
                    turns.ask().wait();
                    turns.pass();
                },
            );
        }
        fixture.submit(20, move || drop(open), |_, _| {});
        let mut ended = fixture.ended(21).into_iter().map(|it| it.0).collect::<Vec<_>>();
        ended.sort_unstable();
        assert!(ended.into_iter().eq(0..21));
    }

    #[test]
    fn a_job_that_is_stuck_and_given_up_holds_up_no_other() {
        let fixture = Fixture::new();
        let link = Arc::new(CallLink::default());
        let (open, gate) = channel::<()>();
        let (began, begins) = channel::<()>();
        let stuck = Arc::clone(&link);
        let job = move |ticket, lead| {
            stuck.begin(ticket, Some(lead));
            drop(began);
            assert!(gate.recv().is_err());
        };
        fixture.pool.submit(job).expect("a thread");
        fixture.submit(1, || {}, |_, _| {});
        assert!(begins.recv().is_err() && fixture.told.try_recv().is_err());
        while !link.abandon(Duration::ZERO, &fixture.turns) {
            thread::yield_now();
        }
        assert_eq!(fixture.ended(1)[0].0, 1);
        drop(open);
    }

    #[test]
    fn jobs_of_a_pool_that_is_dropped_are_done() {
        let fixture = Fixture::new();
        let (open, gate) = channel::<()>();
        fixture.submit(0, move || assert!(gate.recv().is_err()), |_, lead| lead.pass());
        for number in 1..10 {
            fixture.submit(number, || {}, |_, lead| lead.pass());
        }
        let Fixture { pool, tell, told, .. } = fixture;
        drop((pool, tell, open));
        assert_eq!(told.iter().count(), 10);
    }

    #[test]
    fn a_job_that_gets_no_thread_is_refused_and_holds_up_nobody() {
        let turns = Arc::<Turns>::default();
        let limits = Sandbox { memory_limit: usize::MAX, ..Sandbox::default() };
        let usage = ScriptUsage::default();
        let pool = Pool::new("script".to_owned(), &limits, Arc::clone(&turns), usage);
        for _ in 0..2 {
            pool.submit(|_, _| {}).expect_err("no stack has this size");
        }
        turns.ask_now().expect("nobody has a turn").wait();
    }
}
