//! The context that a stream shares with its workers, for one version of their handlers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{CallServices, Logger, Memo, ObjectCause, Scripts};
use crate::features::{
    daemons,
    indexes::{Gate, Ids, ReadinessHold},
    leadership::Leadership,
};
use crate::handling::{asking::FilterCaller, run::HandlerRunner};
use crate::logic::{
    change::{registry::ResourceHandlers, undecided},
    generation::{NewHandlers, Version},
    handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser},
    object::resource::Resource,
};
use crate::ports::{Clock, Cluster, Pauses};
use crate::reactor::object::{change::Rate, memory::Memories};
use crate::settings::Settings;
use crate::sorted::CollectSorted as _;
use crate::telemetry::{Health, QueueSeries};

/// The latest context of a stream, for the stream and its workers. Clones share it.
///
/// Callers that need one version across several steps, as a cycle does, call [`SharedContext::get`] once.
#[derive(Clone)]
pub(in crate::reactor) struct SharedContext(Arc<Mutex<Arc<StreamContext>>>);

/// A pause during which a function that exceeded its time limit is not called.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Cooldown(Mutex<Option<Instant>>);

impl SharedContext {
    /// Holds the first context of a stream.
    pub(in crate::reactor) fn new(context: StreamContext) -> Self {
        SharedContext(Arc::new(Mutex::new(Arc::new(context))))
    }

    /// Returns the context of the latest version.
    pub(in crate::reactor) fn get(&self) -> Arc<StreamContext> {
        Arc::clone(&self.0.lock())
    }

    /// Sets the next context, and wakes the tasks that wait with the previous one. Running calls continue.
    pub(in crate::reactor) fn replace(&self, next: StreamContext) {
        let before = std::mem::replace(&mut *self.0.lock(), Arc::new(next));
        before.replaced.cancel();
    }
}

impl Cooldown {
    /// Returns whether the function must not be called now.
    pub(in crate::reactor) fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|it| Instant::now() < it)
    }

    /// Waits for a result. A result that takes as long as the limit starts a pause.
    pub(in crate::reactor) async fn after<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = T>,
    ) -> T {
        let start = Instant::now();
        let answer = answer.await;
        if start.elapsed() >= limit {
            *self.0.lock() = Some(Instant::now() + limit.saturating_mul(undecided::REST));
        }
        answer
    }
}

/// One resource and all inputs for handling its objects, with the handlers of one version.
pub(in crate::reactor) struct StreamContext {
    /// The resource that the stream lists and watches.
    pub(in crate::reactor) resource: Arc<Resource>,
    /// The version of the handlers.
    pub(in crate::reactor) version: Version,
    /// The handlers that select the resource.
    pub(in crate::reactor) handlers: Arc<ResourceHandlers>,
    /// Holds handlers back until all objects are indexed.
    pub(in crate::reactor) hold: Arc<ReadinessHold>,
    /// Holds the handlers of a new generation back until its new indexes are complete, for a limited time.
    pub(in crate::reactor) gate: Option<Gate>,
    /// The indexes that each script may use.
    pub(in crate::reactor) uses: Arc<BTreeMap<ScriptId, Ids>>,
    /// Cancelled when the next version has taken over: waiting workers then run another cycle.
    pub(in crate::reactor) replaced: CancellationToken,
    /// The cluster that the objects belong to.
    pub(in crate::reactor) cluster: Arc<dyn Cluster>,
    /// The scripts that declare the handlers.
    pub(in crate::reactor) scripts: Arc<dyn Scripts>,
    /// The settings as start-up handlers have left them.
    pub(in crate::reactor) settings: Arc<Settings>,
    /// The clock for pauses and timeouts.
    pub(in crate::reactor) clock: Clock,
    /// The order of handlers.
    pub(in crate::reactor) lifecycle: Chooser,
    /// The pause during which its function is not called.
    pub(in crate::reactor) lifecycle_cooldown: Arc<Cooldown>,
    /// The operator's memo, copied to that of each object.
    pub(in crate::reactor) memo: Memo,
    /// When the operator started; throttles measure from here.
    pub(in crate::reactor) start: Instant,
    /// Limits how many failed objects per second are retried after an edit.
    pub(in crate::reactor) retries: Arc<Rate>,
    /// The memories of all objects.
    pub(in crate::reactor) memories: Arc<Memories>,
    /// The services that every call can reach.
    pub(in crate::reactor) services: Arc<CallServices>,
    /// The state shared by daemons and timers.
    pub(in crate::reactor) background: Arc<daemons::Base>,
    /// Pauses of the operator.
    pub(in crate::reactor) pauses: Pauses,
    /// Whether this replica may act.
    pub(in crate::reactor) leadership: Leadership,
    /// Counts the objects that wait and are handled.
    pub(in crate::reactor) numbers: Arc<QueueSeries>,
    /// Where streams report their health.
    pub(in crate::reactor) health: Health,
}

impl StreamContext {
    /// Returns whether handlers may be called: the indexes are complete, or the wait for them is over.
    pub(in crate::reactor) fn is_open(&self) -> bool {
        self.hold.is_open(self.gate.as_ref())
    }

    /// Waits until handlers of any script may be called. Returns the scripts whose handlers may not be called yet.
    ///
    /// Handlers of raw events must see every event, so this waits for all of them.
    pub(in crate::reactor) async fn opening(&self) -> BTreeSet<ScriptId> {
        let ResourceHandlers { watching, changing, spawning, .. } = &*self.handlers;
        let script = |it: &Arc<Handler>| it.function.script;
        let watching = watching.iter().map(script).collect_set();
        self.open_for(watching.iter()).await;
        let others = changing.iter().chain(spawning).map(script);
        let all = others.chain(watching).collect_set();
        let is_closed =
            |it: &&ScriptId| !self.hold.is_open_to(self.gate.as_ref(), &self.used_by([*it]));
        let closed = all.iter().filter(is_closed).copied().collect_set();
        if closed.len() < all.len() {
            return closed;
        }
        self.open_for(all.iter()).await;
        BTreeSet::new()
    }

    /// Waits until handlers of all these scripts may be called.
    pub(in crate::reactor) async fn open_for<'a>(
        &'a self,
        scripts: impl Iterator<Item = &'a ScriptId>,
    ) {
        let indexes = self.used_by(scripts);
        self.hold.open_to(self.gate.as_ref(), &indexes).await;
    }

    /// Returns the indexes that these scripts may use, including those of the lifecycle function, which is called for all of them.
    fn used_by<'a>(&'a self, scripts: impl IntoIterator<Item = &'a ScriptId>) -> Ids {
        let lifecycle = match &self.lifecycle {
            Chooser::Custom(function) => Some(&function.script),
            Chooser::BuiltIn(_) => None,
        };
        let scripts = scripts.into_iter().chain(lifecycle);
        scripts.filter_map(|it| self.uses.get(it)).flatten().cloned().collect_set()
    }

    /// Returns the time since the start of the operator, which throttles use.
    pub(in crate::reactor) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the handlers that are new for objects which the previous handlers have seen.
    pub(in crate::reactor) fn new_since(&self, before: &StreamContext) -> NewHandlers {
        NewHandlers::between(&before.handlers, &self.handlers, &self.unfilled_since(before))
    }

    /// Returns the indexes that must be filled again.
    pub(in crate::reactor) fn unfilled_since(&self, before: &StreamContext) -> Ids {
        self.services.indexes.unfilled_since(&before.services.indexes)
    }

    /// Returns a runner of handlers with this operator's default options.
    pub(in crate::reactor) fn runner(&self) -> HandlerRunner<'_> {
        HandlerRunner {
            scripts: &*self.scripts,
            clock: self.clock,
            settings: &self.settings.execution,
            services: &self.services,
        }
    }

    /// Returns an [`FilterCaller`] of filters for an object.
    pub(in crate::reactor) fn filter_caller<'a>(
        &'a self,
        cause: &'a ObjectCause,
        memo: &'a Memo,
        logger: &'a Logger,
    ) -> FilterCaller<'a> {
        FilterCaller { scripts: &*self.scripts, cause, memo, logger, services: &self.services }
    }
}
