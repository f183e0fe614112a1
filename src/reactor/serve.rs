//! From the login to the end of the last stream.
//!
//! Before: `life.rs`. After: `streams.rs`, one for each resource and namespace.

use std::sync::Arc;

use futures::future;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    companions::Companions,
    life::{STOPPING, unless_stopped},
    memory::Memories,
    observer::{Observer, Target, Targets},
    operator::{Failure, Scope},
    replicas::Replicas,
    roster::Roster,
    serving::Serving,
};
use crate::features::{
    daemons,
    indexes::{self, Hold, Readiness},
    leadership::Leadership,
    probes,
};
use crate::logic::{
    lifecycle::Chooser,
    peering::Identity,
    registry::{Registry, ResourceHandlers},
    resource::Resource,
};
use crate::ports::{
    ApiError, Clock, Cluster, Facilities, Health, HealthState, Memo, Pauses, Scripts,
};
use crate::settings::Settings;

/// What the streams of an operator need, before the cluster is known.
pub(super) struct Serve {
    pub(super) scripts: Arc<dyn Scripts>,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) lifecycle: Chooser,
    pub(super) memo: Memo,
    pub(super) facilities: Arc<Facilities>,
    pub(super) health: Health,
    pub(super) identity: Identity,
}

impl Serve {
    /// From the login to the end of the last stream.
    pub(super) async fn run(
        self,
        registry: &Registry,
        scope: &Scope,
        connect: impl Future<Output = Result<Arc<dyn Cluster>, ApiError>>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        tracing::info!(target: "kopf.authentication", "Initial authentication has been initiated.");
        let Some(cluster) = unless_stopped(stop, connect).await else { return Ok(()) };
        let cluster = cluster?;
        tracing::info!(target: "kopf.authentication", "Initial authentication has finished.");
        let settings = Arc::clone(&self.settings);
        let observer = Observer::start(&*cluster, &*self.scripts, registry, scope, settings);
        let Some(observer) = unless_stopped(stop, observer).await else { return Ok(()) };
        let observer = observer?;
        let replicas = Replicas::start(&self, &cluster)?;
        let team = Arc::default();
        let shared = Shared {
            cluster: &cluster,
            start: Instant::now(),
            memories: Arc::default(),
            pauses: Pauses::default(),
            leadership: replicas.leadership(),
            readiness: Readiness::new(registry.has_indexes()),
            team: Arc::clone(&team),
        };
        let lost = tokio::select! {
            biased; // the loss first: whatever runs is dropped in this moment, and nothing begins any more
            reason = replicas.lost() => Some(reason),
            () = self.serve(registry, shared, (observer, &replicas), stop) => None,
        };
        if let Some(reason) = lost {
            team.cut().await;
            return Err(Failure::Leadership(reason));
        }
        replicas.end().await;
        Ok(())
    }

    /// Runs the streams and what is beside them, until `stop`.
    async fn serve(
        &self,
        registry: &Registry,
        shared: Shared<'_>,
        (mut observer, replicas): (Observer<'_>, &Replicas),
        stop: &CancellationToken,
    ) {
        let mut companions = self.companions(registry, &shared);
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
        loop {
            if let Some(venues) = &venues {
                let (places, is_known) = observer.peerings();
                venues.set(places, is_known);
            }
            let targets = observer.targets();
            roster.adjust(
                &targets,
                |target| observer.is_gone(target),
                |target, all| self.serving(target, all, &shared),
            );
            shared.readiness.started();
            tokio::select! {
                biased; // stop first: nothing new begins after it
                () = stop.cancelled() => break,
                () = observer.changed() => {}
                () = roster.attend() => {}
            }
        }
        self.health.note(STOPPING, HealthState::Unready, "the operator is stopping");
        // Side by side: workers finish what they do, daemons and timers what they can.
        future::join(roster.end(), shared.team.end(&self.settings.background)).await;
        companions.end().await;
    }

    /// Those that live as long as the streams.
    fn companions(&self, registry: &Registry, shared: &Shared<'_>) -> Companions {
        let known = Arc::clone(&shared.memories);
        let help = "Objects that the operator remembers";
        self.health.metrics().sample("kopf_objects_known", help, move || known.count());
        let mut companions = Companions::new();
        companions
            .add(|stop| probes::follow_pauses(shared.pauses.clone(), self.health.clone(), stop));
        companions.add(|stop| {
            let (team, pauses) = (Arc::clone(&shared.team), shared.pauses.clone());
            let settings = Arc::clone(&self.settings);
            async move { team.heed(&pauses, &settings.background, stop).await }
        });
        if registry.has_indexes() {
            let (readiness, health) = (shared.readiness.clone(), self.health.clone());
            companions.add(|stop| indexes::watch(readiness, health, stop));
        }
        companions
    }

    fn serving(&self, target: &Target, all: &Targets, shared: &Shared<'_>) -> Serving {
        let handlers = all.get(target).map(Arc::clone).unwrap_or_default();
        let resource = Arc::clone(&target.0);
        let background = Arc::new(daemons::Base {
            resource: Arc::clone(&resource),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.scripts),
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            facilities: Arc::clone(&self.facilities),
            team: Arc::clone(&shared.team),
        });
        Serving {
            hold: shared.hold(&handlers, &resource, target.1.as_deref()),
            handlers,
            resource,
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.scripts),
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            lifecycle: self.lifecycle.clone(),
            memo: self.memo.clone(),
            start: shared.start,
            memories: Arc::clone(&shared.memories),
            facilities: Arc::clone(&self.facilities),
            background,
            pauses: shared.pauses.clone(),
            leadership: shared.leadership.clone(),
            health: self.health.clone(),
        }
    }
}

/// What all streams share, once the cluster is known.
pub(super) struct Shared<'a> {
    pub(super) cluster: &'a Arc<dyn Cluster>,
    pub(super) start: Instant,
    pub(super) memories: Arc<Memories>,
    pub(super) pauses: Pauses,
    pub(super) leadership: Leadership,
    pub(super) readiness: Readiness,
    pub(super) team: Arc<daemons::Team>,
}

impl Shared<'_> {
    /// The share of a stream in the readiness of the indexes.
    fn hold(&self, handlers: &ResourceHandlers, resource: &Resource, place: Option<&str>) -> Hold {
        if handlers.indexing.is_empty() {
            return self.readiness.bystander();
        }
        let place = place.map_or_else(String::new, |it| format!(" in '{it}'"));
        self.readiness.indexed(format!("{resource}{place}"))
    }
}
