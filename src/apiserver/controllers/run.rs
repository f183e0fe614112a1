//! The loop that runs all controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{
    Controller, Controllers,
    access::{self, CurrentObject},
    cache::{Cache, CachedObject, ObjectKey, Update},
    chosen,
    time::DecisionTime,
    write::Write,
};
use crate::sorted::CollectSorted as _;
use crate::{ApiServer, Refusal, resource::CRDS};

/// Pause after a failed write; doubled with every further one.
const RETRY: Duration = Duration::from_millis(500);
/// Limit of doublings: about half a minute.
const RETRY_DOUBLINGS_MAX: u32 = 6;
/// Objects that are reconciled before other tasks may run: a batch of ten thousand objects must not block the server.
const RECONCILED_AT_ONCE: usize = 64;
/// Limit of equal plans in a row that change something each time. More are a loop, not a repair.
const REPEATED_MAX: u32 = 8;
/// Pause between two rounds of such a loop.
const REPEATED_PAUSE: Duration = Duration::from_secs(10);
/// Minimum time before an object is reconciled again: a wrong decision must not become a busy loop.
const REQUEUE_MIN: Duration = Duration::from_millis(1);

/// Runs the chosen controllers on a server for as long as the future is polled. It never ends.
///
/// After this call, the server leaves deleted namespaces and CRDs to the controllers, if these are among the chosen ones.
pub fn run(server: ApiServer, options: Controllers) -> impl Future<Output = ()> + Send {
    let empties = options.namespaces || options.definitions;
    server.0.emptied.fetch_or(empties, Ordering::Relaxed);
    run_all(server, options)
}

async fn run_all(server: ApiServer, options: Controllers) {
    let mut state = State::new(server, chosen(options));
    if state.controllers.is_empty() {
        return;
    }
    state.load();
    loop {
        state.catch_up();
        state.queue_due(Instant::now());
        if state.queue.is_empty() {
            state.idle().await;
        } else {
            state.reconcile_queued().await;
        }
    }
}

/// The index of a controller, and an object.
type Task = (usize, ObjectKey);

struct State {
    server: ApiServer,
    controllers: Vec<Controller>,
    cache: Cache,
    /// The version that the cache shows.
    revision: u64,
    queue: BTreeSet<Task>,
    /// The times of the next reconciliations, indexed both ways.
    due: BTreeSet<(Instant, Task)>,
    timers: BTreeMap<Task, Instant>,
    /// The current step of an object, and since when.
    steps: BTreeMap<Task, (String, Instant)>,
    /// The number of consecutive failures of a write.
    failures: BTreeMap<Task, u32>,
    /// The last writes, and how many times in a row they have changed something.
    repeated: BTreeMap<Task, (Vec<Write>, u32)>,
}

impl State {
    fn new(server: ApiServer, controllers: Vec<Controller>) -> Self {
        let whole = controllers.iter().flat_map(|it| it.reads).copied().collect();
        Self {
            server,
            controllers,
            cache: Cache::new(whole),
            revision: 0,
            queue: BTreeSet::new(),
            due: BTreeSet::new(),
            timers: BTreeMap::new(),
            steps: BTreeMap::new(),
            failures: BTreeMap::new(),
            repeated: BTreeMap::new(),
        }
    }

    /// Fills the cache, at the start and after missed changes.
    fn load(&mut self) {
        let (objects, revision) = access::everything(&self.server);
        let defs = self.server.resources();
        self.cache.define(defs);
        let present: BTreeSet<ObjectKey> = objects.iter().map(|(key, _)| key.clone()).collect_set();
        let known: Vec<ObjectKey> = self.cache.everything().map(|(key, _)| key.clone()).collect();
        for key in known.into_iter().filter(|it| !present.contains(it)) {
            self.take((key, None));
        }
        // First all objects, then the affected ones, which must not depend on the order of resources.
        for (key, object) in objects {
            self.cache.apply(&key, object.as_ref());
        }
        for key in present {
            self.enqueue_affected(&key, None);
        }
        for (number, controller) in self.controllers.iter().enumerate() {
            let start = controller.start.iter();
            self.queue.extend(start.map(|(of, name)| (number, ObjectKey::new(of, "", name))));
        }
        self.revision = revision;
    }

    /// Applies changes of the server to the cache.
    fn catch_up(&mut self) {
        let Some((changes, revision)) = access::changes(&self.server, self.revision) else {
            self.load();
            return;
        };
        self.revision = revision;
        let defines = changes.iter().any(|(key, _)| key.resource == CRDS);
        if defines {
            for key in self.cache.define(self.server.resources()) {
                self.take((key, None));
            }
        }
        for change in changes {
            self.take(change);
        }
        if defines {
            // Objects whose owners were of an unknown kind can be decided now.
            let owned = self.cache.everything().filter(|(_, it)| !it.owners.is_empty());
            let owned: Vec<ObjectKey> = owned.map(|(key, _)| key.clone()).collect();
            for key in &owned {
                self.enqueue_affected(key, None);
            }
        }
    }

    fn take(&mut self, (key, object): CurrentObject) {
        // The objects of a removed CRD are deleted with it: their last changes may come later.
        let object: Option<Arc<_>> = object.filter(|_| self.cache.def(&key.resource).is_some());
        let old = self.cache.apply(&key, object.as_ref());
        self.enqueue_affected(&key, old.as_ref());
    }

    fn enqueue_affected(&mut self, key: &ObjectKey, old: Option<&CachedObject>) {
        let update = Update { key, old, new: self.cache.get(key) };
        let mut keys = Vec::new();
        for (number, controller) in self.controllers.iter().enumerate() {
            (controller.affected)(&self.cache, &update, &mut keys);
            self.queue.extend(keys.drain(..).map(|it| (number, it)));
        }
    }

    /// Queues the objects that are due.
    fn queue_due(&mut self, now: Instant) {
        while let Some((at, task)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, task));
                return;
            }
            self.timers.remove(&task);
            self.queue.insert(task);
        }
    }

    async fn idle(&self) {
        let next = self.due.first().map(|(at, _)| *at);
        let timer = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Changes first: objects that are due stay due after them.
            biased;
            () = self.server.moved(self.revision) => {}
            () = timer => {}
        }
    }

    /// Reconciles everything in the queue once.
    async fn reconcile_queued(&mut self) {
        for (count, task) in std::mem::take(&mut self.queue).into_iter().enumerate() {
            if count % RECONCILED_AT_ONCE == RECONCILED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            self.handle(&task);
        }
    }

    fn handle(&mut self, task: &Task) {
        let Some(controller) = self.controllers.get(task.0).copied() else { return };
        let moment = DecisionTime::new(self.server.now(), self.in_step(&controller, task));
        let plan = (controller.reconcile)(&self.cache, &task.1, &moment);
        self.set_timer(task, plan.requeue_after);
        if self.repeats(task, &plan.writes) {
            tracing::warn!(writes = %plan.writes.len(), "a controller repeats the same writes: it pauses");
            self.set_timer(task, Some(REPEATED_PAUSE));
            return;
        }
        let before = self.server.revision();
        for write in &plan.writes {
            if let Err(refusal) = write.apply(&self.server) {
                tracing::debug!(%write, error = %refusal, "a controller's write is refused");
                self.failed(task, &refusal);
                return;
            }
        }
        self.failures.remove(task);
        if self.server.revision() == before {
            self.repeated.remove(task);
        } else {
            let (writes, count) = self.repeated.entry(task.clone()).or_default();
            *count = if *writes == plan.writes { count.saturating_add(1) } else { 0 };
            *writes = plan.writes;
        }
    }

    /// Returns whether the same writes were made several times in a row, and changed something each time: another client reverts
    /// them, or the server stores something else.
    fn repeats(&mut self, task: &Task, writes: &[Write]) -> bool {
        let same = self.repeated.get(task).filter(|(it, _)| !it.is_empty() && it == writes);
        let repeats = same.is_some_and(|(_, count)| *count >= REPEATED_MAX);
        if repeats {
            self.repeated.remove(task);
        }
        repeats
    }

    fn in_step(&mut self, controller: &Controller, task: &Task) -> Duration {
        let step = (controller.step)(&self.cache, &task.1);
        if step.is_empty() {
            self.steps.remove(task);
            return Duration::ZERO;
        }
        let now = Instant::now();
        let entry = self.steps.entry(task.clone()).or_insert_with(|| (step.clone(), now));
        if entry.0 != step {
            *entry = (step, now);
        }
        now.duration_since(entry.1)
    }

    /// Requeues an object after a failed write. The rest of its plan is dropped, because it may depend on that write.
    fn failed(&mut self, task: &Task, refusal: &Refusal) {
        let count = self.failures.entry(task.clone()).or_insert(0);
        *count = count.saturating_add(1);
        // After a conflict, the object has just changed.
        let doublings = if refusal.code == 409 { 0 } else { (*count - 1).min(RETRY_DOUBLINGS_MAX) };
        let wait = RETRY.saturating_mul(1 << doublings);
        let sooner = self.timers.get(task).is_some_and(|it| *it < Instant::now() + wait);
        if !sooner {
            self.set_timer(task, Some(wait));
        }
    }

    fn set_timer(&mut self, task: &Task, after: Option<Duration>) {
        if let Some(at) = self.timers.remove(task) {
            self.due.remove(&(at, task.clone()));
        }
        let at = after.and_then(|it| Instant::now().checked_add(it.max(REQUEUE_MIN)));
        if let Some(at) = at {
            self.timers.insert(task.clone(), at);
            self.due.insert((at, task.clone()));
        }
    }
}
