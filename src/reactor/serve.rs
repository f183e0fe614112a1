//! From the login to the end of the last stream.
//!
//! Before: `life.rs`. After: `streams/`, one for each resource and namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    change::Rate,
    companions::Companions,
    life::{Life, STOPPING, unless_stopped},
    memory::Memories,
    observer::{Observer, Target, Targets},
    operator::{Failure, Scope},
    reload::{Candidates, Ready},
    replicas::Replicas,
    roster::Roster,
    serving::Serving,
    streams::Farewell,
};
use crate::features::{
    daemons,
    indexes::{self, Gate, Hold, Ids, Readiness},
    leadership::Leadership,
    probes,
};
use crate::logic::{
    function::ScriptId,
    generation::Generation,
    handler::Kind,
    lifecycle::Lifecycle,
    peering::Identity,
    registry::{Registry, ResourceHandlers},
    review,
    stopping::StopReason,
};
use crate::ports::{ApiError, Cluster, Facilities, HealthState, Kin, Pauses, Present, Rejection};
use crate::settings::Settings;

/// For so long at most, handlers that came with a generation wait for its new indexes.
const GATE_MAX: Duration = Duration::from_secs(10);

/// The part of the health that is unready while handlers do not have the resources that they should have.
const RESOURCES: &str = "resources";

/// What the streams of an operator need, before the cluster is known.
pub(super) struct Serve<'a> {
    pub(super) life: &'a Life,
    /// As they are at the start of the streams.
    pub(super) settings: Arc<Settings>,
    /// The order of handlers where scripts do not say.
    pub(super) lifecycle: Lifecycle,
    pub(super) identity: Identity,
}

/// By what the streams of the present generation are served.
struct Reign {
    /// As the start-up handlers have left them that ran last.
    settings: Arc<Settings>,
    number: u64,
    /// The indexes that came with it.
    indexes: BTreeSet<Arc<str>>,
    /// What its new handlers wait for.
    gate: Option<Gate>,
    /// The indexes that each script can use.
    uses: Arc<BTreeMap<ScriptId, Ids>>,
    /// Some values in the indexes may be of handlers that have changed.
    is_outdated: bool,
    /// What daemons and timers are told whose resource is not served any more.
    farewell: StopReason,
}

/// Ends daemons and timers with the operator, also if its future is dropped: their tasks are not part of it.
struct Abandoning(Arc<daemons::Team>);

impl Drop for Abandoning {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Serve<'_> {
    /// Runs from the login to the end of the last stream. Returns the election, which goes on: the lease is still held.
    pub(super) async fn run(
        self,
        scope: &Scope,
        connect: impl Future<Output = Result<Arc<dyn Cluster>, ApiError>>,
        candidates: Candidates,
        stop: &CancellationToken,
    ) -> Result<Option<Replicas>, Failure> {
        tracing::info!(target: "kopf.authentication", "Initial authentication has been initiated.");
        let Some(cluster) = unless_stopped(stop, connect).await else { return Ok(None) };
        let cluster = cluster?;
        tracing::info!(target: "kopf.authentication", "Initial authentication has finished.");
        let present = self.life.current.get();
        let registry = &present.generation.registry;
        let settings = Arc::clone(&self.settings);
        let observer = Observer::start(&*cluster, &*self.life.scripts, registry, scope, settings);
        let Some(observer) = unless_stopped(stop, observer).await else { return Ok(None) };
        let observer = observer?;
        let replicas = Replicas::start(&self, &cluster)?;
        let team = Arc::default();
        let _abandoning = Abandoning(Arc::clone(&team));
        let shared = Shared {
            cluster: &cluster,
            start: Instant::now(),
            retries: Arc::default(),
            memories: Arc::default(),
            pauses: Pauses::default(),
            leadership: replicas.leadership(),
            readiness: Readiness::new(registry.has_indexes()),
            team: Arc::clone(&team),
        };
        drop(present);
        let lost = tokio::select! {
            biased; // the loss first: whatever runs is dropped in this moment, and nothing begins any more
            reason = replicas.lost() => Some(reason),
            () = self.serve(shared, (observer, &replicas), candidates, stop) => None,
        };
        if let Some(reason) = lost {
            team.cut().await;
            return Err(Failure::Leadership(reason));
        }
        Ok(Some(replicas))
    }

    /// Runs the streams and what is beside them, until `stop`.
    async fn serve(
        &self,
        shared: Shared<'_>,
        (mut observer, replicas): (Observer<'_>, &Replicas),
        mut candidates: Candidates,
        stop: &CancellationToken,
    ) {
        let mut companions = self.companions(&shared);
        let venues = self.meet(replicas, &shared, &mut companions);
        let mut roster = Roster::new();
        if let Some(venues) = &venues {
            let (places, is_known) = observer.peerings();
            venues.set(places, is_known);
            tokio::select! {
                biased; // a stop during the start is obeyed at once
                () = stop.cancelled() => {}
                () = venues.looked() => {}
            }
        }
        let uses = self.uses(&self.life.current.get().generation.registry);
        let mut reign = Reign::first(Arc::clone(&self.settings), uses);
        let mut confirmed = None;
        loop {
            if let Some(venues) = &venues {
                let (places, is_known) = observer.peerings();
                venues.set(places, is_known);
            }
            let targets = observer.targets();
            self.report(observer.problem());
            let farewell = |target: &Target| {
                let is_gone = observer.is_gone(target);
                if is_gone { Farewell::Gone } else { Farewell::Unserved(reign.farewell) }
            };
            // Nobody runs between this and the next lines; so the edit is told of before its handlers say anything.
            if let Some(ready) = confirmed.take() {
                Ready::confirm(ready);
            }
            roster.adjust(&targets, farewell, |target, before| {
                self.serving((target, before), &targets, &reign, &shared)
            });
            shared.readiness.started();
            reign.farewell = StopReason::ResourceDeleted;
            tokio::select! {
                biased; // stop first: nothing new begins after it; what is outdated goes before what comes
                () = stop.cancelled() => break,
                () = shared.readiness.settled(), if reign.is_outdated => {
                    self.life.current.get().facilities.indexes.sweep();
                    reign.is_outdated = false;
                }
                ready = candidates.next(self.life) => {
                    // Streams and workers go on meanwhile, as before.
                    let looking = observer.adopt(&ready.generation.registry);
                    match unless_stopped(stop, looking).await {
                        None => break,
                        Some(Err(problem)) => ready.refuse(Rejection::Selector(problem)),
                        Some(Ok(())) => {
                            self.take_over(&ready, &mut reign, &shared);
                            self.index(&shared, &mut companions);
                            confirmed = Some(ready);
                        }
                    }
                }
                () = observer.changed() => {}
                () = roster.attend() => {}
            }
        }
        drop(candidates);
        self.life.health.note(STOPPING, HealthState::Unready, "the operator is stopping");
        // Side by side: workers finish what they do, daemons and timers what they can.
        future::join(roster.end(), shared.team.end(&reign.settings.background)).await;
        companions.end().await;
    }

    /// Notes in the health whether handlers have the resources that they should have.
    fn report(&self, problem: Option<&str>) {
        match problem {
            Some(text) => self.life.health.note(RESOURCES, HealthState::Unready, text),
            None => self.life.health.forget(RESOURCES),
        }
    }

    /// From now on whoever looks sees the new generation. The streams follow.
    fn take_over(&self, ready: &Ready, reign: &mut Reign, shared: &Shared<'_>) {
        let before = self.life.current.get();
        let new = &ready.generation;
        if let Some(settings) = &ready.settings {
            *self.life.settings.lock() = settings.clone();
            reign.settings = Arc::new(settings.clone());
            self.life.scripts.configure(settings);
        }
        tell_of_logins(&before.generation, new);
        let refilled = review::refilled(&before.generation.registry, &new.registry);
        let known = &before.facilities.indexes;
        let indexes = known.next(new.registry.indexes(), &refilled, new.number);
        let mut facilities = Arc::clone(&before.facilities);
        if !indexes.are(known) {
            facilities = Arc::new(Facilities { indexes, ..Facilities::clone(&facilities) });
        }
        reign.number = new.number;
        reign.uses = self.uses(&new.registry);
        reign.indexes = new.registry.indexes();
        reign.indexes.retain(|it| known.get(it).is_none());
        // After a pause all objects come as at a start.
        let until = (!shared.pauses.is_paused()).then(|| Instant::now() + GATE_MAX);
        reign.gate = (!reign.indexes.is_empty()).then_some(Gate { number: new.number, until });
        reign.is_outdated |= !refilled.is_empty();
        reign.farewell = StopReason::ScriptReloaded;
        self.life.current.set(Present { generation: new.clone(), facilities });
    }

    /// The indexes that each script can use: those that it fills, and those that it names.
    fn uses(&self, registry: &Registry) -> Arc<BTreeMap<ScriptId, Ids>> {
        let indexes = registry.indexes();
        let mut uses = BTreeMap::<_, Ids>::new();
        for handler in registry.handlers() {
            let script = handler.function.script;
            let names = |it: &&Arc<str>| self.life.scripts.names(script, it);
            let used = uses
                .entry(script)
                .or_insert_with(|| indexes.iter().filter(names).cloned().collect());
            if handler.kind == Kind::Index {
                used.insert(Arc::clone(&handler.id));
            }
        }
        Arc::new(uses)
    }

    /// Those that live as long as the streams.
    fn companions(&self, shared: &Shared<'_>) -> Companions {
        // Metrics are reachable from what is remembered: they must not keep it.
        let known = Arc::downgrade(&shared.memories);
        let help = "Objects that the operator remembers";
        let health = &self.life.health;
        health
            .metrics()
            .sample("kopf_objects_known", help, move || known.upgrade().map_or(0, |it| it.count()));
        let mut companions = Companions::new();
        companions.add(|stop| probes::follow_pauses(shared.pauses.clone(), health.clone(), stop));
        companions.add(|stop| {
            let (team, pauses) = (Arc::clone(&shared.team), shared.pauses.clone());
            let settings = Arc::clone(&self.settings);
            async move { team.heed(&pauses, &settings.background, stop).await }
        });
        self.index(shared, &mut companions);
        companions
    }

    /// Has the readiness of the indexes told, as soon as there are any.
    fn index(&self, shared: &Shared<'_>, companions: &mut Companions) {
        let has_indexes = self.life.current.get().generation.registry.has_indexes();
        if has_indexes && shared.readiness.begin_telling() {
            let (readiness, health) = (shared.readiness.clone(), self.life.health.clone());
            companions.add(|stop| indexes::watch(readiness, health, stop));
        }
    }

    /// What serves a target from now on; nothing if what served it before is as good.
    fn serving(
        &self,
        (target, before): (&Target, Option<&Serving>),
        all: &Targets,
        reign: &Reign,
        shared: &Shared<'_>,
    ) -> Option<Serving> {
        let present = self.life.current.get();
        let facilities = &present.facilities;
        let handlers = all.get(target).map(Arc::clone).unwrap_or_default();
        let lifecycle = present.generation.lifecycle.clone();
        let lifecycle = lifecycle.unwrap_or_else(|| self.lifecycle.into());
        let is_as_good = |it: &Serving| {
            it.handlers.are(&handlers)
                && it.lifecycle == lifecycle
                && it.facilities.indexes.are(&facilities.indexes)
                && Arc::ptr_eq(&it.settings, &reign.settings)
        };
        if before.is_some_and(is_as_good) {
            return None;
        }
        let background = self.background(target, before, reign, shared);
        background.roles.renew(&handlers.spawning);
        let gate = match before {
            Some(before) if !review::has_news(&before.handlers, &handlers) => before.gate.clone(),
            Some(_) | None => reign.gate.clone(),
        };
        Some(Serving {
            hold: self.hold((target, before), &handlers, reign, shared),
            gate,
            uses: Arc::clone(&reign.uses),
            replaced: CancellationToken::new(),
            turn: before.map_or(1, |it| it.turn.saturating_add(1)),
            handlers,
            resource: before.map_or_else(|| Arc::clone(&target.0), |it| Arc::clone(&it.resource)),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.life.scripts),
            settings: Arc::clone(&reign.settings),
            clock: self.life.steady,
            lifecycle,
            lifecycle_rest: Arc::default(),
            memo: self.life.memo.clone(),
            start: shared.start,
            retries: Arc::clone(&shared.retries),
            memories: Arc::clone(&shared.memories),
            facilities: Arc::clone(facilities),
            background,
            pauses: shared.pauses.clone(),
            leadership: shared.leadership.clone(),
            health: self.life.health.clone(),
        })
    }

    /// What daemons and timers share. It stays with the stream: those that run belong to it.
    fn background(
        &self,
        target: &Target,
        before: Option<&Serving>,
        reign: &Reign,
        shared: &Shared<'_>,
    ) -> Arc<daemons::Base> {
        match before {
            Some(before) if Arc::ptr_eq(&before.settings, &reign.settings) => {
                return Arc::clone(&before.background);
            }
            Some(_) | None => {}
        }
        Arc::new(daemons::Base {
            resource: Arc::clone(&target.0),
            kin: before.map_or_else(
                || Arc::new(Kin::of(Arc::clone(&target.0))),
                |it| Arc::clone(&it.background.kin),
            ),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.life.scripts),
            settings: Arc::clone(&reign.settings),
            clock: self.life.steady,
            current: self.life.current.clone(),
            team: Arc::clone(&shared.team),
            roles: before.map(|it| Arc::clone(&it.background.roles)).unwrap_or_default(),
        })
    }

    /// The share of a stream in the readiness of the indexes. What must be indexed again is waited for anew.
    fn hold(
        &self,
        ((resource, place), before): (&Target, Option<&Serving>),
        handlers: &ResourceHandlers,
        reign: &Reign,
        shared: &Shared<'_>,
    ) -> Arc<Hold> {
        let indexes = &self.life.current.get().facilities.indexes;
        let news = before.map(|it| indexes.news(&it.facilities.indexes));
        let is_indexed = |it: &Arc<str>| handlers.indexing.iter().any(|handler| handler.id == *it);
        let own = || handlers.indexing.iter().map(|it| Arc::clone(&it.id)).collect::<Ids>();
        let number = reign.indexes.iter().any(is_indexed).then_some(reign.number);
        match before {
            Some(before) if !news.unwrap_or_default().iter().any(is_indexed) => {
                Arc::clone(&before.hold)
            }
            Some(before) => Arc::new(before.hold.renewed(own(), number)),
            None => {
                let place = place.as_deref().map_or_else(String::new, |it| format!(" in '{it}'"));
                let name = format!("{resource}{place}");
                Arc::new(if handlers.indexing.is_empty() {
                    shared.readiness.bystander(name)
                } else {
                    shared.readiness.indexed(name, own(), number)
                })
            }
        }
    }
}

impl Reign {
    /// That of the generation at the start.
    fn first(settings: Arc<Settings>, uses: Arc<BTreeMap<ScriptId, Ids>>) -> Self {
        Reign {
            settings,
            uses,
            number: 1,
            indexes: BTreeSet::new(),
            gate: None,
            is_outdated: false,
            farewell: StopReason::ResourceDeleted,
        }
    }
}

/// Says that an edit of login handlers has no effect where there were none before, or are none after it.
fn tell_of_logins(before: &Generation, now: &Generation) {
    let has_any = |it: &Generation| !it.registry.activities(Kind::Login).is_empty();
    let what = match (has_any(before), has_any(now)) {
        (false, true) => "on_login handlers were added: they are asked",
        (true, false) => {
            "the last on_login handler was removed: nobody else is asked for credentials"
        }
        (true, true) | (false, false) => return,
    };
    tracing::warn!(
        target: "kopf.authentication",
        "Whether scripts log in is decided at the start. In this edit, {what} when the operator is started again."
    );
}

/// What all streams share, once the cluster is known.
pub(super) struct Shared<'a> {
    pub(super) cluster: &'a Arc<dyn Cluster>,
    pub(super) start: Instant,
    pub(super) retries: Arc<Rate>,
    pub(super) memories: Arc<Memories>,
    pub(super) pauses: Pauses,
    pub(super) leadership: Leadership,
    pub(super) readiness: Readiness,
    pub(super) team: Arc<daemons::Team>,
}
