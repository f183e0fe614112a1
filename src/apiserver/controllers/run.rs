//! The loop that feeds all controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{
    Controller, Controllers,
    access::{self, Present},
    chosen,
    time::Moment,
    world::{Key, News, Seen, World},
    write::Write,
};
use crate::{ApiServer, Refusal, resource::CRDS};

/// The first wait after a refused write; it doubles with every further one.
const RETRY: Duration = Duration::from_millis(500);
/// How often it doubles at most: half a minute.
const RETRY_DOUBLINGS_MAX: u32 = 6;
/// Decisions between two chances for other tasks: a burst of ten thousand objects must not silence the server.
const DECISIONS_AT_ONCE: usize = 64;
/// Equal writes in a row that change something each time. More are a loop, not a repair.
const REPEATED_MAX: u32 = 8;
/// Between two rounds of a loop.
const REPEATED_PAUSE: Duration = Duration::from_secs(10);
/// A controller that asks for no wait at all still waits so long: a wrong decision must not become a hot loop.
const AGAIN_MIN: Duration = Duration::from_millis(1);

/// Runs the chosen controllers on a server for as long as the future is polled. It has no result: it never ends.
///
/// From the call on, deleted namespaces and definitions are left to the controllers if these are among them.
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
        state.wake(Instant::now());
        if state.queue.is_empty() {
            state.idle().await;
        } else {
            state.pass().await;
        }
    }
}

/// A controller by its number, and an object.
type Task = (usize, Key);

struct State {
    server: ApiServer,
    controllers: Vec<Controller>,
    world: World,
    /// The mirror shows this version.
    seen: u64,
    queue: BTreeSet<Task>,
    /// When to ask again, both ways.
    due: BTreeSet<(Instant, Task)>,
    timers: BTreeMap<Task, Instant>,
    /// What goes on with an object, and since when.
    steps: BTreeMap<Task, (String, Instant)>,
    /// How often in a row a write was refused.
    failures: BTreeMap<Task, u32>,
    /// The last writes, and how often in a row they have changed something.
    repeated: BTreeMap<Task, (Vec<Write>, u32)>,
}

impl State {
    fn new(server: ApiServer, controllers: Vec<Controller>) -> Self {
        let whole = controllers.iter().flat_map(|it| it.reads).copied().collect();
        Self {
            server,
            controllers,
            world: World::new(whole),
            seen: 0,
            queue: BTreeSet::new(),
            due: BTreeSet::new(),
            timers: BTreeMap::new(),
            steps: BTreeMap::new(),
            failures: BTreeMap::new(),
            repeated: BTreeMap::new(),
        }
    }

    /// Takes over everything, at the start and when changes were missed.
    fn load(&mut self) {
        let (objects, revision) = access::everything(&self.server);
        let defs = self.server.resources();
        self.world.define(defs);
        let present: BTreeSet<Key> = objects.iter().map(|(key, _)| key.clone()).collect();
        let known: Vec<Key> = self.world.everything().map(|(key, _)| key.clone()).collect();
        for key in known.into_iter().filter(|it| !present.contains(it)) {
            self.take((key, None));
        }
        // First all of them, then their concerns: these must not depend on the order of resources.
        for (key, object) in objects {
            self.world.apply(&key, object.as_ref());
        }
        for key in present {
            self.concern(&key, None);
        }
        for (number, controller) in self.controllers.iter().enumerate() {
            let start = controller.start.iter();
            self.queue.extend(start.map(|(of, name)| (number, Key::new(of, "", name))));
        }
        self.seen = revision;
    }

    /// Takes over what has changed.
    fn catch_up(&mut self) {
        let Some((changes, revision)) = access::changes(&self.server, self.seen) else {
            self.load();
            return;
        };
        self.seen = revision;
        let defines = changes.iter().any(|(key, _)| key.resource == CRDS);
        if defines {
            for key in self.world.define(self.server.resources()) {
                self.take((key, None));
            }
        }
        for change in changes {
            self.take(change);
        }
        if defines {
            // What refers to a kind that was unknown so far can be judged now.
            let owned = self.world.everything().filter(|(_, it)| !it.owners.is_empty());
            let owned: Vec<Key> = owned.map(|(key, _)| key.clone()).collect();
            for key in &owned {
                self.concern(key, None);
            }
        }
    }

    fn take(&mut self, (key, object): Present) {
        // A removed definition takes its objects along: their last changes may come later.
        let object: Option<Arc<_>> = object.filter(|_| self.world.def(&key.resource).is_some());
        let old = self.world.apply(&key, object.as_ref());
        self.concern(&key, old.as_ref());
    }

    fn concern(&mut self, key: &Key, old: Option<&Seen>) {
        let news = News { key, old, new: self.world.get(key) };
        let mut concerned = Vec::new();
        for (number, controller) in self.controllers.iter().enumerate() {
            (controller.concerns)(&self.world, &news, &mut concerned);
            self.queue.extend(concerned.drain(..).map(|it| (number, it)));
        }
    }

    /// Moves what is due into the queue.
    fn wake(&mut self, now: Instant) {
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
            // Changes first: what is due anyway is due after them, too.
            biased;
            () = self.server.moved(self.seen) => {}
            () = timer => {}
        }
    }

    /// Asks about everything that is queued, once.
    async fn pass(&mut self) {
        for (count, task) in std::mem::take(&mut self.queue).into_iter().enumerate() {
            if count % DECISIONS_AT_ONCE == DECISIONS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            self.handle(&task);
        }
    }

    fn handle(&mut self, task: &Task) {
        let Some(controller) = self.controllers.get(task.0).copied() else { return };
        let moment = Moment::new(self.server.now(), self.in_step(&controller, task));
        let plan = (controller.decide)(&self.world, &task.1, &moment);
        self.set_timer(task, plan.again);
        if self.repeats(task, &plan.writes) {
            tracing::warn!(writes = %plan.writes.len(), "a controller writes the same again and again: it pauses");
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

    /// Whether the same writes have been done several times in a row, and have changed something each time: somebody takes
    /// them back, or they are not stored as they are wanted.
    fn repeats(&mut self, task: &Task, writes: &[Write]) -> bool {
        let same = self.repeated.get(task).filter(|(it, _)| !it.is_empty() && it == writes);
        let repeats = same.is_some_and(|(_, count)| *count >= REPEATED_MAX);
        if repeats {
            self.repeated.remove(task);
        }
        repeats
    }

    fn in_step(&mut self, controller: &Controller, task: &Task) -> Duration {
        let step = (controller.step)(&self.world, &task.1);
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

    /// Later wishes may depend on the refused one: all are decided anew.
    fn failed(&mut self, task: &Task, refusal: &Refusal) {
        let count = self.failures.entry(task.clone()).or_insert(0);
        *count = count.saturating_add(1);
        // A conflict says that something has just changed.
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
        let at = after.and_then(|it| Instant::now().checked_add(it.max(AGAIN_MIN)));
        if let Some(at) = at {
            self.timers.insert(task.clone(), at);
            self.due.insert((at, task.clone()));
        }
    }
}
