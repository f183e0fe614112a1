//! What a stream and its workers share while one version of their handlers serves, and where they find it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::features::{
    daemons,
    indexes::{Gate, Hold, Ids},
    leadership::Leadership,
};
use crate::handling::asking::Asker;
use crate::handling::run::Runner;
use crate::logic::{
    function::ScriptId,
    generation::{NewHandlers, Version},
    handler::Handler,
    lifecycle::Chooser,
    registry::ResourceHandlers,
    resource::Resource,
    undecided,
};
use crate::ports::{
    Clock, Cluster, Facilities, Health, Logger, Memo, ObjectCause, Pauses, Scripts,
};
use crate::reactor::{change::Rate, memory::Memories};
use crate::settings::Settings;

/// Where a stream and its workers find their context. Clones share it.
///
/// Callers that need one version across several steps, as a cycle does, call [`SharedContext::get`] once.
#[derive(Clone)]
pub(in crate::reactor) struct SharedContext(Arc<Mutex<Arc<StreamContext>>>);

/// A time in which a function is not called that has not returned in time before.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Rest(Mutex<Option<Instant>>);

impl SharedContext {
    /// Holds the first context of a stream.
    pub(in crate::reactor) fn new(context: StreamContext) -> Self {
        SharedContext(Arc::new(Mutex::new(Arc::new(context))))
    }

    /// Returns the context of the latest version.
    pub(in crate::reactor) fn get(&self) -> Arc<StreamContext> {
        Arc::clone(&self.0.lock())
    }

    /// Puts the next version in its place, and wakes those that wait with the one before. Calls that run continue.
    pub(in crate::reactor) fn replace(&self, next: StreamContext) {
        let before = std::mem::replace(&mut *self.0.lock(), Arc::new(next));
        before.replaced.cancel();
    }
}

impl Rest {
    /// Returns whether the function must not be called now.
    pub(in crate::reactor) fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|it| Instant::now() < it)
    }

    /// Waits for a result. One that takes as long as the limit is followed by a rest.
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

/// One resource and everything needed to handle its objects, with the handlers of one version.
pub(in crate::reactor) struct StreamContext {
    /// The resource.
    pub(in crate::reactor) resource: Arc<Resource>,
    /// The version of the handlers.
    pub(in crate::reactor) version: Version,
    /// The handlers that want it.
    pub(in crate::reactor) handlers: Arc<ResourceHandlers>,
    /// Keeps handlers waiting until all objects are indexed.
    pub(in crate::reactor) hold: Arc<Hold>,
    /// Keeps handlers that came with a generation waiting for its new indexes, for a while.
    pub(in crate::reactor) gate: Option<Gate>,
    /// The indexes that each script can use.
    pub(in crate::reactor) uses: Arc<BTreeMap<ScriptId, Ids>>,
    /// Cancelled when the next version has taken over: workers that wait look at their object again.
    pub(in crate::reactor) replaced: CancellationToken,
    /// The cluster.
    pub(in crate::reactor) cluster: Arc<dyn Cluster>,
    /// The scripts.
    pub(in crate::reactor) scripts: Arc<dyn Scripts>,
    /// As start-up handlers have left them.
    pub(in crate::reactor) settings: Arc<Settings>,
    /// The time.
    pub(in crate::reactor) clock: Clock,
    /// The order of handlers.
    pub(in crate::reactor) lifecycle: Chooser,
    /// The time in which its function is not asked.
    pub(in crate::reactor) lifecycle_rest: Arc<Rest>,
    /// The operator's memo, copied into each object's.
    pub(in crate::reactor) memo: Memo,
    /// When the operator began; throttles measure from here.
    pub(in crate::reactor) start: Instant,
    /// When handlers that have failed are called again.
    pub(in crate::reactor) retries: Arc<Rate>,
    /// The memories of all objects.
    pub(in crate::reactor) memories: Arc<Memories>,
    /// What every call of a script can reach.
    pub(in crate::reactor) facilities: Arc<Facilities>,
    /// What daemons and timers share.
    pub(in crate::reactor) background: Arc<daemons::Base>,
    /// What holds the operator back.
    pub(in crate::reactor) pauses: Pauses,
    /// Whether this replica may act.
    pub(in crate::reactor) leadership: Leadership,
    /// Where streams tell how they are.
    pub(in crate::reactor) health: Health,
}

impl StreamContext {
    /// Whether handlers may be called: the indexes are complete, or nobody waits for them any more.
    pub(in crate::reactor) fn is_open(&self) -> bool {
        self.hold.is_open(self.gate.as_ref())
    }

    /// Waits until handlers of any script may be called. Returns the scripts whose handlers may not yet.
    ///
    /// Handlers of raw events must see each event, so none of them is left out.
    pub(in crate::reactor) async fn opening(&self) -> BTreeSet<ScriptId> {
        let ResourceHandlers { watching, changing, spawning, .. } = &*self.handlers;
        let script = |it: &Arc<Handler>| it.function.script;
        let watching = watching.iter().map(script).collect::<BTreeSet<_>>();
        self.open_for(watching.iter()).await;
        let others = changing.iter().chain(spawning).map(script);
        let all = others.chain(watching).collect::<BTreeSet<_>>();
        let is_closed =
            |it: &&ScriptId| !self.hold.is_open_to(self.gate.as_ref(), &self.used_by([*it]));
        let closed = all.iter().filter(is_closed).copied().collect::<BTreeSet<_>>();
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

    /// The indexes that these scripts can use, and the lifecycle function that is asked for all of them.
    fn used_by<'a>(&'a self, scripts: impl IntoIterator<Item = &'a ScriptId>) -> Ids {
        let lifecycle = match &self.lifecycle {
            Chooser::Custom(function) => Some(&function.script),
            Chooser::BuiltIn(_) => None,
        };
        let scripts = scripts.into_iter().chain(lifecycle);
        scripts.filter_map(|it| self.uses.get(it)).flatten().cloned().collect()
    }

    /// The clock of throttles.
    pub(in crate::reactor) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the handlers that are new to objects which the handlers before have seen.
    pub(in crate::reactor) fn new_since(&self, before: &StreamContext) -> NewHandlers {
        NewHandlers::between(&before.handlers, &self.handlers, &self.unfilled_since(before))
    }

    /// Returns the indexes that must be filled again.
    pub(in crate::reactor) fn unfilled_since(&self, before: &StreamContext) -> Ids {
        self.facilities.indexes.unfilled_since(&before.facilities.indexes)
    }

    /// Runs handlers with the defaults of this operator.
    pub(in crate::reactor) fn runner(&self) -> Runner<'_> {
        Runner {
            scripts: &*self.scripts,
            clock: self.clock,
            settings: &self.settings.execution,
            facilities: &self.facilities,
        }
    }

    /// Asks filters about an object.
    pub(in crate::reactor) fn asker<'a>(
        &'a self,
        cause: &'a ObjectCause,
        memo: &'a Memo,
        logger: &'a Logger,
    ) -> Asker<'a> {
        Asker { scripts: &*self.scripts, cause, memo, logger, facilities: &self.facilities }
    }
}
