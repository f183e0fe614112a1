//! What the streams and workers of one resource share, in one generation.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{change::Rate, memory::Memories};
use crate::features::{
    daemons,
    indexes::{Gate, Hold},
    leadership::Leadership,
};
use crate::handling::asking::Asker;
use crate::handling::run::Runner;
use crate::logic::{
    lifecycle::Chooser, registry::ResourceHandlers, resource::Resource, review::News,
};
use crate::ports::{
    Clock, Cluster, Facilities, Health, Logger, Memo, ObjectCause, Pauses, Scripts,
};
use crate::settings::Settings;

/// Counts what has served a stream, from 1: handlers with a greater number came later.
pub(super) type Turn = u32;

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
