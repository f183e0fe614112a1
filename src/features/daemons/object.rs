//! The daemons and timers of one object: which run, which must not run again, and their view of the object.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    sync::Arc,
    time::Duration,
};

use futures::future;

use super::{
    Base,
    all::DaemonStart,
    daemon::Daemon,
    exclusion::{ChangeGuard, ChangeLock, Exclusion},
    moment::AtomicMoment,
};
use crate::call::{LiveObject, Memo};
use crate::features::reconcile::UnownedChildren;
use crate::heap;
use crate::logic::{
    background::stopping::StopReason,
    handlers::handler::{Handler, Mark},
    object::Object,
    text::nanos::Nanos,
};

/// The daemons and timers of one object, between its events.
#[derive(Debug)]
pub struct ObjectDaemons {
    running: Vec<Arc<Daemon>>,
    /// The state that the running ones share.
    shared: Option<Arc<DaemonShared>>,
    rare: Option<Box<Rare>>,
    /// The fingerprint of the last seen essence; `None` until it is needed.
    essence: Option<u64>,
    /// When the essence last changed, or when the object was first seen; on the clock of all daemons.
    changed: Nanos,
}

/// The state that few objects have; those without it are smaller.
#[derive(Debug, Default)]
struct Rare {
    /// The handlers that have ended by themselves.
    over: Box<[Mark]>,
    /// The unowned children of ended reconcile handlers, by their ids, for their next versions.
    unowned: BTreeMap<Arc<str>, UnownedChildren>,
    /// The lock for exclusive timers; `None` without any.
    exclusion: Option<Exclusion>,
}

/// The state that the running daemons of one object share.
#[derive(Debug)]
pub(super) struct DaemonShared {
    /// The object as they see it.
    pub(super) live: LiveObject,
    /// When its essence last changed, or when it was first seen; on the clock of all daemons.
    changed: AtomicMoment,
    /// The memo of the object.
    pub(super) memo: Memo,
}

/// The object for which handlers start, as its cycle sees it.
#[derive(Clone, Copy)]
pub struct SpawnContext<'a> {
    /// The present object; daemons see newer states later.
    pub object: &'a Arc<Object>,
    /// The memo that its handlers share.
    pub memo: &'a Memo,
}

/// An object as its daemons and timers saw it last.
#[derive(Clone, Debug)]
pub enum LastSeen {
    /// None of them is running.
    NotRunning,
    /// The object as it was seen last.
    Object(Arc<Object>),
    /// One of them has ended by itself, so the object was not kept.
    Ended,
}

impl ObjectDaemons {
    /// Creates the state of an object that is seen for the first time.
    pub fn new(base: &Base) -> Self {
        ObjectDaemons {
            running: Vec::new(),
            shared: None,
            rare: None,
            essence: None,
            changed: base.daemons.uptime().into(),
        }
    }

    /// Returns whether there is nothing to keep except the time of the last change.
    pub fn is_empty(&self) -> bool {
        let has_kept = |it: &Rare| !it.over.is_empty() || !it.unowned.is_empty();
        self.running.is_empty() && !self.rare.as_deref().is_some_and(has_kept)
    }

    /// Shows a newer state of the object to the running daemons.
    pub fn show(&self, object: &Arc<Object>) {
        if let Some(shared) = &self.shared {
            shared.live.set(object);
        }
    }

    /// Returns the version made by the operator's last request.
    pub fn own_version(&self) -> Option<NonZeroU64> {
        self.shared.as_ref().and_then(|it| it.live.own_version())
    }

    /// Stores the version made by the operator's last request: its event may come later.
    pub fn note_own_version(&self, version: Option<NonZeroU64>) {
        if let Some(shared) = &self.shared {
            shared.live.note_own_version(version);
        }
    }

    /// Compares the essence with that of the previous event.
    pub fn compare(&mut self, essence: u64, base: &Base) {
        if self.essence.replace(essence).is_some_and(|before| before != essence) {
            let now = base.daemons.uptime();
            self.changed = now.into();
            if let Some(shared) = &self.shared {
                shared.changed.set(now);
            }
            for daemon in &self.running {
                daemon.plan_again();
                daemon.request_call();
            }
        }
    }

    /// Processes ended daemons: those that were requested to stop may start again, the others must not.
    pub fn reap(&mut self) {
        let ended: Vec<_> = self.running.extract_if(.., |it| it.has_ended()).collect();
        let over = ended.iter().filter(|it| it.is_over()).map(|it| it.handler().mark());
        let over: Vec<_> = over.collect();
        let stopped = ended.iter().filter(|it| !it.is_over());
        let sent = stopped.filter_map(|it| Some((it, it.level()?.take_unowned())));
        for (daemon, unowned) in sent.filter(|(_, it)| !it.is_empty()) {
            let kept = &mut self.rare.get_or_insert_default().unowned;
            kept.entry(Arc::clone(&daemon.handler().id)).or_default().append(unowned);
        }
        if !over.is_empty() {
            let rare = self.rare.get_or_insert_default();
            rare.over = rare.over.iter().cloned().chain(over).collect();
        }
        if self.running.is_empty() {
            self.shared = None;
        }
    }

    /// Returns the handlers that have ended by themselves; most never do.
    fn over(&self) -> &[Mark] {
        self.rare.as_ref().map_or(&[], |it| &it.over)
    }

    /// Returns whether the handler has ended by itself, so that it must not start again. An edited handler with the same id may.
    pub fn is_over(&self, handler: &Handler) -> bool {
        self.over().iter().any(|it| it.is_of(handler))
    }

    /// Returns the object as daemons and timers of these ids saw it last.
    pub fn last_seen(&self, ids: &BTreeSet<Arc<str>>) -> LastSeen {
        if self.over().iter().any(|it| ids.contains(it.id())) {
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

    /// Starts a handler, unless it is running already or was replaced at this moment.
    pub fn spawn(&mut self, base: &Arc<Base>, handler: &Arc<Handler>, host: SpawnContext<'_>) {
        if self.running.iter().any(|it| it.handler().id == handler.id) {
            return;
        }
        let Some(current) = base.handlers.of(handler) else { return };
        if let Some(rare) = &mut self.rare
            && rare.over.iter().any(|it| *it.id() == handler.id)
        {
            rare.over = rare.over.iter().filter(|it| *it.id() != handler.id).cloned().collect();
        }
        let shared = self.shared.get_or_insert_with(|| {
            let changed = AtomicMoment::default();
            changed.set(self.changed.into());
            let live = LiveObject::kept(host.object, &base.packer);
            let shared = DaemonShared { live, changed, memo: host.memo.clone() };
            heap::lasting(|| Arc::new(shared))
        });
        let mut unowned = UnownedChildren::default();
        if let Some(rare) = &mut self.rare {
            let kept = handler.ids().filter_map(|id| rare.unowned.remove(id));
            kept.for_each(|it| unowned.append(it));
        }
        let is_exclusive = handler.background.is_exclusive;
        let lock = is_exclusive.then(|| {
            let rare = self.rare.get_or_insert_default();
            rare.exclusion.get_or_insert_with(Exclusion::new).lock.clone()
        });
        let start = DaemonStart { current, object: host.object, unowned, lock };
        heap::lasting(|| {
            if let Some(daemon) = base.daemons.spawn(base, shared, start) {
                // Objects with daemons usually have one or two.
                self.running.reserve_exact(1);
                self.running.push(daemon);
            }
        });
    }

    /// Returns the lock to take before a change is handled, unless there are no exclusive timers, or it was taken already.
    pub fn change_lock(&self) -> Option<&ChangeLock> {
        let exclusion = self.rare.as_ref()?.exclusion.as_ref();
        exclusion.filter(|it| it.change.is_none()).map(|it| &it.lock)
    }

    /// Keeps the right to handle a change until it is handled, after all pauses; `None`: there is no change to handle.
    pub fn keep_change(&mut self, change: Option<ChangeGuard>) {
        if let Some(exclusion) = self.rare.as_mut().and_then(|it| it.exclusion.as_mut()) {
            exclusion.change = change;
        }
    }

    /// Makes one step towards the end of some running daemons, concurrently; returns the pauses until the next steps.
    pub async fn stop(
        &self,
        reason: StopReason,
        which: impl Fn(&Daemon) -> bool,
        base: &Base,
    ) -> Vec<Duration> {
        let settings = &base.settings.background;
        let steps = self.running.iter().filter(|it| which(it));
        let delays = future::join_all(steps.map(|it| it.stop_step(reason, settings))).await;
        delays.into_iter().flatten().collect()
    }

    /// Returns whether any of these running daemons was requested to stop.
    pub fn is_stopping(&self, which: impl Fn(&Handler) -> bool) -> bool {
        self.running.iter().any(|it| it.is_stopping() && which(&it.handler()))
    }

    /// Waits until any daemon that was requested to stop has ended; never completes if none was.
    pub async fn exit(&self) {
        let stopping = self.running.iter().filter(|it| it.was_stop_requested());
        let ends: Vec<_> = stopping.map(|it| Box::pin(it.end())).collect();
        if ends.is_empty() {
            return future::pending().await;
        }
        future::select_all(ends).await;
    }

    /// Stops all daemons of an object that is deleted or no longer served, which has no further cycles for that.
    pub fn dismiss(self, base: &Arc<Base>, reason: StopReason) {
        for daemon in self.running.into_iter().filter(|it| !it.has_ended()) {
            if let Some(level) = daemon.level() {
                // The object is gone: its deletion is not held any more.
                level.finalized();
            }
            base.daemons.stop_detached(daemon, reason, base);
        }
    }
}

impl DaemonShared {
    /// Returns when the essence last changed, or when the object was first seen; on the clock of all daemons.
    pub(super) fn changed(&self) -> Duration {
        self.changed.get().unwrap_or_default()
    }
}
