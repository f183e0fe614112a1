//! The daemons and timers of one object: who runs, who must not run again, what they see of the object.

use std::{collections::BTreeSet, num::NonZeroU64, sync::Arc, time::Duration};

use futures::future;

use super::{Base, daemon::Daemon, moment::Moment};
use crate::logic::{
    handler::{Handler, Mark},
    nanos::Nanos,
    object::Object,
    stopping::StopReason,
};
use crate::ports::{LiveObject, Memo};

/// What is remembered of the background of one object between its events.
#[derive(Debug)]
pub struct ObjectDaemons {
    running: Vec<Arc<Daemon>>,
    /// Those that ended by themselves; most never do.
    over: Box<[Mark]>,
    /// What those that run know of the object.
    shared: Option<Arc<DaemonShared>>,
    /// The essence as it was last seen, as a fingerprint; `None` until somebody asks for it.
    essence: Option<u64>,
    /// When the essence changed last, or when the object was first seen; on the clock of all daemons.
    changed: Nanos,
}

/// What those that run for one object share.
#[derive(Debug)]
pub(super) struct DaemonShared {
    /// What they see of the object.
    pub(super) live: LiveObject,
    /// When its essence changed last, or when it was first seen; on the clock of all daemons.
    changed: Moment,
    /// The memo of the object.
    pub(super) memo: Memo,
}

/// The object in whose background handlers start, as its cycle sees it.
#[derive(Clone, Copy)]
pub struct SpawnContext<'a> {
    /// The object now; later they see newer states.
    pub object: &'a Arc<Object>,
    /// Its memo.
    pub memo: &'a Memo,
}

/// An object as its daemons and timers saw it last.
#[derive(Clone, Debug)]
pub enum LastSeen {
    /// None of them runs.
    NotRunning,
    /// The object as it was seen last.
    Object(Arc<Object>),
    /// One of them has ended by itself; the object is not remembered for it.
    Ended,
}

impl ObjectDaemons {
    /// An object that is seen for the first time.
    pub fn new(base: &Base) -> Self {
        ObjectDaemons {
            running: Vec::new(),
            over: Box::default(),
            shared: None,
            essence: None,
            changed: base.daemons.uptime().into(),
        }
    }

    /// Whether there is nothing to remember but the time of the last change.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.over.is_empty()
    }

    /// Shows those that run a newer state of the object.
    pub fn show(&self, object: &Arc<Object>) {
        if let Some(shared) = &self.shared {
            shared.live.set(object);
        }
    }

    /// Returns the version that the operator's last request has made.
    pub fn own_version(&self) -> Option<NonZeroU64> {
        self.shared.as_ref().and_then(|it| it.live.own_version())
    }

    /// Notes the version that the operator's last request has made: the event that shows it may come later.
    pub fn note_own_version(&self, version: Option<NonZeroU64>) {
        if let Some(shared) = &self.shared {
            shared.live.note_own_version(version);
        }
    }

    /// Compares the essence with the one of the event before.
    pub fn compare(&mut self, essence: u64, base: &Base) {
        if self.essence.replace(essence).is_some_and(|before| before != essence) {
            let now = base.daemons.uptime();
            self.changed = now.into();
            if let Some(shared) = &self.shared {
                shared.changed.set(now);
            }
        }
    }

    /// Takes note of those that have ended. Who was asked to may start again, who was not is over.
    pub fn reap(&mut self) {
        let ended: Vec<_> = self.running.extract_if(.., |it| it.has_ended()).collect();
        let over = ended.iter().filter(|it| it.is_over()).map(|it| it.handler().mark());
        let over: Vec<_> = over.collect();
        if !over.is_empty() {
            self.over = self.over.iter().cloned().chain(over).collect();
        }
        if self.running.is_empty() {
            self.shared = None;
        }
    }

    /// Whether the handler ended by itself, and so must not start again. Another of its name may.
    pub fn is_over(&self, handler: &Handler) -> bool {
        self.over.iter().any(|it| it.is_of(handler))
    }

    /// Returns the object as daemons and timers of these ids saw it last.
    pub fn last_seen(&self, ids: &BTreeSet<Arc<str>>) -> LastSeen {
        if self.over.iter().any(|it| ids.contains(it.id())) {
            return LastSeen::Ended;
        }
        let is_meant = self.running.iter().any(|it| ids.contains(&it.handler().id));
        let shared = self.shared.as_ref().filter(|_| is_meant);
        shared.map_or(LastSeen::NotRunning, |shared| {
            let object = shared.live.get();
            shared.live.rest();
            LastSeen::Object(object)
        })
    }

    /// Lets a handler run, unless it does, or has been replaced in this moment.
    pub fn spawn(&mut self, base: &Arc<Base>, handler: &Arc<Handler>, host: SpawnContext<'_>) {
        if self.running.iter().any(|it| it.handler().id == handler.id) {
            return;
        }
        let Some(current) = base.handlers.of(handler) else { return };
        if self.over.iter().any(|it| *it.id() == handler.id) {
            self.over = self.over.iter().filter(|it| *it.id() != handler.id).cloned().collect();
        }
        let shared = self.shared.get_or_insert_with(|| {
            let changed = Moment::default();
            changed.set(self.changed.into());
            let live = LiveObject::kept(host.object, &base.kin);
            Arc::new(DaemonShared { live, changed, memo: host.memo.clone() })
        });
        if let Some(daemon) = base.daemons.spawn(base, shared, current) {
            // One or two are usual.
            self.running.reserve_exact(1);
            self.running.push(daemon);
        }
    }

    /// Presses some of those that run to stop, all at once; gives the pauses until they must be pressed again.
    pub async fn stop(
        &self,
        reason: StopReason,
        whom: impl Fn(&Daemon) -> bool,
        base: &Base,
    ) -> Vec<Duration> {
        let settings = &base.settings.background;
        let steps = self.running.iter().filter(|it| whom(it));
        let delays = future::join_all(steps.map(|it| it.step(reason, settings))).await;
        delays.into_iter().flatten().collect()
    }

    /// Whether some of those that run were asked to stop.
    pub fn is_stopping(&self, whom: impl Fn(&Handler) -> bool) -> bool {
        self.running.iter().any(|it| it.is_stopping() && whom(&it.handler()))
    }

    /// Waits until any that was asked to stop has ended; for ever, if none was.
    pub async fn exit(&self) {
        let asked = self.running.iter().filter(|it| it.was_asked());
        let ends: Vec<_> = asked.map(|it| Box::pin(it.end())).collect();
        if ends.is_empty() {
            return future::pending().await;
        }
        future::select_all(ends).await;
    }

    /// The object is gone, or not served any more: all must stop, though it will have no cycles in which to see to it.
    pub fn dismiss(self, base: &Arc<Base>, reason: StopReason) {
        for daemon in self.running.into_iter().filter(|it| !it.has_ended()) {
            base.daemons.stop_detached(daemon, reason, base);
        }
    }
}

impl DaemonShared {
    /// When the essence of the object changed last, or when the object was first seen; on the clock of all daemons.
    pub(super) fn changed(&self) -> Duration {
        self.changed.get().unwrap_or_default()
    }
}
