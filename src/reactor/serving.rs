//! What the streams and workers of one resource share, in one generation.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{change::Rate, memory::Memories};
use crate::features::{
    daemons,
    indexes::{Gate, Hold, Ids},
    leadership::Leadership,
};
use crate::handling::asking::Asker;
use crate::handling::run::Runner;
use crate::logic::{
    function::ScriptId, handler::Handler, lifecycle::Chooser, registry::ResourceHandlers,
    resource::Resource, review::News, undecided,
};
use crate::ports::{
    Clock, Cluster, Facilities, Health, Logger, Memo, ObjectCause, Pauses, Scripts,
};
use crate::settings::Settings;

/// Counts what has served a stream, from 1: handlers with a greater number came later.
pub(super) type Turn = u32;

/// A time in which a function is not asked that has not answered before.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<Option<Instant>>);

impl Rest {
    /// Whether the function must not be asked now.
    pub(super) fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|it| Instant::now() < it)
    }

    /// Waits for an answer. One that takes as long as the limit is followed by a rest.
    pub(super) async fn after<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let answer = answer.await;
        if start.elapsed() >= limit {
            *self.0.lock() = Some(Instant::now() + limit.saturating_mul(undecided::REST));
        }
        answer
    }
}

/// One resource and everything needed to handle its objects. Another generation of handlers makes another one.
#[derive(Clone)]
pub(super) struct Serving {
    /// The resource.
    pub(super) resource: Arc<Resource>,
    /// Which one this is of those that have served the stream.
    pub(super) turn: Turn,
    /// The handlers that want it.
    pub(super) handlers: Arc<ResourceHandlers>,
    /// Keeps handlers waiting until all objects are indexed.
    pub(super) hold: Arc<Hold>,
    /// Keeps handlers that came with a generation waiting for its new indexes, for a while.
    pub(super) gate: Option<Gate>,
    /// The indexes that each script can use.
    pub(super) uses: Arc<BTreeMap<ScriptId, Ids>>,
    /// Fires when another one has taken its place: who waits should look there.
    pub(super) replaced: CancellationToken,
    /// The cluster.
    pub(super) cluster: Arc<dyn Cluster>,
    /// The scripts.
    pub(super) scripts: Arc<dyn Scripts>,
    /// As start-up handlers have left them.
    pub(super) settings: Arc<Settings>,
    /// The time.
    pub(super) clock: Clock,
    /// The order of handlers.
    pub(super) lifecycle: Chooser,
    /// The time in which its function is not asked.
    pub(super) lifecycle_rest: Arc<Rest>,
    /// The operator's memo, copied into each object's.
    pub(super) memo: Memo,
    /// When the operator began; throttles measure from here.
    pub(super) start: Instant,
    /// When handlers that have failed are called again.
    pub(super) retries: Arc<Rate>,
    /// The memories of all objects.
    pub(super) memories: Arc<Memories>,
    /// What every call of a script can reach.
    pub(super) facilities: Arc<Facilities>,
    /// What daemons and timers share.
    pub(super) background: Arc<daemons::Base>,
    /// What holds the operator back.
    pub(super) pauses: Pauses,
    /// Whether this replica may act.
    pub(super) leadership: Leadership,
    /// Where streams tell how they are.
    pub(super) health: Health,
}

impl Serving {
    /// Whether handlers may be called: the indexes are complete, or nobody waits for them any more.
    pub(super) fn is_open(&self) -> bool {
        self.hold.is_open(self.gate.as_ref())
    }

    /// Waits until handlers of any script may be called. Returns the scripts whose handlers may not yet.
    ///
    /// Handlers of raw events must see each event, so none of them is left out.
    pub(super) async fn opening(&self) -> BTreeSet<ScriptId> {
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
    pub(super) async fn open_for<'a>(&'a self, scripts: impl Iterator<Item = &'a ScriptId>) {
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
    pub(super) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// What is new to objects that these other handlers have seen.
    pub(super) fn news_since(&self, before: &Serving) -> News {
        let indexes = self.facilities.indexes.news(&before.facilities.indexes);
        News::between(&before.handlers, &self.handlers, &indexes)
    }

    /// Runs handlers with the defaults of this operator.
    pub(super) fn runner(&self) -> Runner<'_> {
        Runner {
            scripts: &*self.scripts,
            clock: self.clock,
            settings: &self.settings.execution,
            facilities: &self.facilities,
        }
    }

    /// Asks filters about an object.
    pub(super) fn asker<'a>(
        &'a self,
        cause: &'a ObjectCause,
        memo: &'a Memo,
        logger: &'a Logger,
    ) -> Asker<'a> {
        Asker { scripts: &*self.scripts, cause, memo, logger, facilities: &self.facilities }
    }
}
