//! Runs everything from the login to the end of the last stream.
//!
//! Before: `run.rs`. After: `streams/`, one per resource and namespace; `generation/` when scripts are edited.

use std::sync::Arc;

use futures::future;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{admission::Admission, background_tasks::BackgroundTasks, replicas::Replicas};
use crate::features::{
    daemons,
    indexes::{self, Readiness},
    probes,
    schedules::{self, Schedules},
};
use crate::logic::{
    background::stopping::StopReason, handlers::lifecycle::Lifecycle,
    replicas::peering::PeeringIdentity, schedules::slots::LeaseRef,
};
use crate::ports::{ApiError, Cluster, Pauses, Rejection, WebhookServer};
use crate::reactor::{
    generation::{
        Candidates, Contexts, GenerationState, ReadyCandidate, digest_key,
        shared::{OperatorContext, STOPPING, Shared, unless_stopped},
    },
    observer::{NamespaceScope, Observer, Target},
    operator::OperatorFailure,
    streams::{StreamEnd, StreamSet},
};
use crate::settings::Settings;
use crate::telemetry::HealthState;

/// The part of the health report that is unready while handlers lack resources that they select.
const RESOURCES: &str = "resources";

/// The inputs of the streams before the cluster is connected.
pub(in crate::reactor) struct Serve<'a> {
    pub(in crate::reactor) operator: &'a OperatorContext,
    /// The settings at the start of the streams.
    pub(in crate::reactor) settings: Arc<Settings>,
    /// The order of handlers, unless scripts set one.
    pub(in crate::reactor) lifecycle: Lifecycle,
    pub(in crate::reactor) identity: PeeringIdentity,
    /// Receives the reviews of admission handlers.
    pub(in crate::reactor) webhooks: Option<Arc<dyn WebhookServer>>,
}

/// The parts that run longer than the streams.
pub(in crate::reactor) struct Remaining {
    replicas: Replicas,
    /// The webhook server, which answers reviews until another replica leads.
    admission: Option<Admission>,
}

impl Remaining {
    /// Waits until this replica may no longer act; returns the reason.
    pub(super) async fn lost(&self) -> String {
        self.replicas.lost().await
    }

    /// Releases the lease, so that another replica can lead, and ends the webhook server.
    pub(super) async fn end(self) {
        let released = self.replicas.end().await;
        if let Some(admission) = self.admission {
            admission.end_after(released).await;
        }
    }
}

/// A guard that ends daemons and timers with the operator, also if its future is dropped: their tasks run separately.
struct Abandoning(Arc<daemons::Daemons>);

impl Drop for Abandoning {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Serve<'_> {
    /// Runs from the login to the end of the last stream. Returns the parts that keep running: the lease is still held.
    pub(in crate::reactor) async fn run(
        mut self,
        scope: &NamespaceScope,
        connect: impl Future<Output = Result<Arc<dyn Cluster>, ApiError>>,
        candidates: Candidates,
        stop: &CancellationToken,
    ) -> Result<Option<Remaining>, OperatorFailure> {
        tracing::info!(target: "kopf.auth", "Initial authentication has been initiated.");
        let Some(cluster) = unless_stopped(stop, connect).await else { return Ok(None) };
        let cluster = cluster?;
        tracing::info!(target: "kopf.auth", "Initial authentication has finished.");
        let live = self.operator.current.get();
        let registry = &live.generation.registry;
        let kube = &live.services.kube;
        let keyed = Box::pin(digest_key::with_key(&self.settings, registry, kube));
        let Some(keyed) = unless_stopped(stop, keyed).await else { return Ok(None) };
        if let Some(keyed) = keyed {
            // Later generations start from these settings.
            Settings::clone_from(&mut self.operator.settings.lock(), &keyed);
            self.settings = keyed;
        }
        let settings = Arc::clone(&self.settings);
        let observer =
            Observer::start(&*cluster, &*self.operator.scripts, registry, scope, settings);
        let Some(observer) = unless_stopped(stop, observer).await else { return Ok(None) };
        let observer = observer?;
        let replicas = Replicas::start(&self, &cluster)?;
        let daemons = Arc::default();
        let _abandoning = Abandoning(Arc::clone(&daemons));
        let shared = Shared {
            cluster: &cluster,
            start: Instant::now(),
            retries: Arc::default(),
            memories: Arc::default(),
            pauses: Pauses::default(),
            leadership: replicas.leadership(),
            readiness: Readiness::new(registry.has_indexes()),
            daemons: Arc::clone(&daemons),
            namespaces: match scope {
                NamespaceScope::Cluster => None,
                NamespaceScope::Namespaces(patterns) => Some(patterns.clone().into()),
            },
        };
        let mut admission = Admission::new(self.webhooks.clone(), self.identity.clone());
        let prepared = admission.prepare(registry, self.operator, (&self.settings, &shared));
        let Some(prepared) = unless_stopped(stop, prepared).await else { return Ok(None) };
        prepared.map_err(OperatorFailure::Webhooks)?;
        drop(live);
        let served = tokio::select! {
            biased; // the loss comes first: all running parts are dropped at once, and nothing new starts
            reason = replicas.lost() => Err(reason),
            admission = Box::pin(self.serve(shared, (observer, &replicas, admission), candidates, stop)) => Ok(admission),
        };
        match served {
            Ok(admission) => Ok(Some(Remaining { replicas, admission })),
            Err(reason) => {
                daemons.cancel_all().await;
                Err(OperatorFailure::Leadership(reason))
            }
        }
    }

    /// Runs the streams and the background tasks until `stop`. Returns the webhook server if there may be other replicas.
    async fn serve(
        &self,
        shared: Shared<'_>,
        (mut observer, replicas, mut admission): (Observer<'_>, &Replicas, Admission),
        mut candidates: Candidates,
        stop: &CancellationToken,
    ) -> Option<Admission> {
        let mut state = GenerationState::first(self.operator, Arc::clone(&self.settings));
        let mut tasks = self.tasks(&state, &shared);
        let schedules = self.start_schedules(&state, &shared, &mut tasks, stop);
        let peering_targets = self.start_peering(replicas, &shared, &mut tasks);
        let mut streams = StreamSet::new();
        if let Some(peering_targets) = &peering_targets {
            let (places, is_known) = observer.peerings();
            peering_targets.set(places, is_known);
            // A stop during the start takes effect at once.
            unless_stopped(stop, peering_targets.all_read()).await;
        }
        let mut confirmed = None;
        loop {
            if let Some(peering_targets) = &peering_targets {
                let (places, is_known) = observer.peerings();
                peering_targets.set(places, is_known);
            }
            let targets = observer.targets();
            self.report(observer.problem());
            state.next_pass();
            admission.update(&state, &observer);
            // A stop ends the wait at once.
            unless_stopped(stop, admission.conversions_configured()).await;
            let end = |target: &Target| {
                let is_gone = observer.is_gone(target);
                if is_gone { StreamEnd::Gone } else { StreamEnd::Unserved(state.stop_reason) }
            };
            // Nothing else runs before the next lines, so the edit is logged before its handlers log anything.
            if let Some(ready) = confirmed.take() {
                ReadyCandidate::confirm(ready);
            }
            let (operator, lifecycle) = (self.operator, self.lifecycle);
            let contexts = Contexts { operator, shared: &shared, state: &state, lifecycle };
            streams.adjust(&targets, end, |target, before| {
                let handlers = targets.get(target).map(Arc::clone).unwrap_or_default();
                contexts.next(target, before, handlers)
            });
            shared.readiness.started();
            state.stop_reason = StopReason::ResourceDeleted;
            tokio::select! {
                biased; // the stop first: nothing new starts after it; outdated values go before new handlers come
                () = stop.cancelled() => break,
                () = shared.readiness.settled(), if state.has_outdated_values => {
                    state.live.services.indexes.sweep().await;
                    state.has_outdated_values = false;
                }
                ready = candidates.next(self.operator, &state.live) => {
                    // Streams and workers keep running meanwhile.
                    let parts = (&mut observer, &mut admission);
                    let prepared = self.prepare(&ready, &state, parts, &shared);
                    match unless_stopped(stop, prepared).await {
                        None => break,
                        Some(Err(rejection)) => ready.reject(rejection),
                        Some(Ok(())) => {
                            state.take_over(&ready, self.operator, &shared.pauses);
                            schedules.renew(&state.live);
                            self.report_indexes(&state, &shared, &mut tasks);
                            confirmed = Some(ready);
                        }
                    }
                }
                () = observer.changed() => {}
                () = streams.reap() => {}
            }
        }
        drop(candidates);
        self.operator.health.note(STOPPING, HealthState::Unready, "the operator is stopping");
        // Started together: workers finish their cycles while daemons and timers stop.
        future::join(streams.end(), shared.daemons.end(&state.settings.background)).await;
        let remaining = admission.end_if(replicas.is_alone()).await;
        tasks.end().await;
        remaining
    }

    /// Opens the webhook server that a candidate needs, and discovers the resources that it selects.
    async fn prepare(
        &self,
        ready: &ReadyCandidate,
        state: &GenerationState,
        (observer, admission): (&mut Observer<'_>, &mut Admission),
        shared: &Shared<'_>,
    ) -> Result<(), Rejection> {
        let registry = &ready.generation.registry;
        let settings = ready.settings.clone().map(Arc::new);
        let settings = settings.unwrap_or_else(|| Arc::clone(&state.settings));
        let prepared = admission.prepare(registry, self.operator, (&settings, shared)).await;
        prepared.map_err(Rejection::Webhooks)?;
        observer.take_over(registry).await.map_err(Rejection::Selector)
    }

    /// Reports whether handlers have the resources that they select.
    fn report(&self, problem: Option<&str>) {
        match problem {
            Some(text) => self.operator.health.note(RESOURCES, HealthState::Unready, text),
            None => self.operator.health.forget(RESOURCES),
        }
    }

    /// Starts the tasks that run as long as the streams.
    fn tasks(&self, state: &GenerationState, shared: &Shared<'_>) -> BackgroundTasks {
        // The metrics are reachable from the memories, so they must not keep them alive.
        let known = Arc::downgrade(&shared.memories);
        let help = "Objects known to the operator";
        let health = &self.operator.health;
        health
            .metrics()
            .sample("kopf_objects_known", help, move || known.upgrade().map_or(0, |it| it.count()));
        let mut tasks = BackgroundTasks::new();
        tasks.add(|stop| probes::follow_pauses(shared.pauses.clone(), health.clone(), stop));
        tasks.add(|stop| {
            let (daemons, pauses) = (Arc::clone(&shared.daemons), shared.pauses.clone());
            let settings = Arc::clone(&self.settings);
            async move { daemons.stop_on_pause(&pauses, &settings.background, stop).await }
        });
        self.report_indexes(state, shared, &mut tasks);
        tasks
    }

    /// Starts the schedules, which end at the beginning of a stop.
    fn start_schedules(
        &self,
        state: &GenerationState,
        shared: &Shared<'_>,
        tasks: &mut BackgroundTasks,
        stop: &CancellationToken,
    ) -> Schedules {
        let (operator, settings) = (self.operator, &self.settings.leadership);
        let cluster = Arc::clone(shared.cluster);
        let namespace = settings.namespace.as_deref().unwrap_or(cluster.default_namespace());
        let place = LeaseRef::new(namespace, &settings.name, &self.identity.process);
        let base = schedules::Base {
            cluster,
            place,
            scripts: Arc::clone(&operator.scripts),
            clock: operator.clock,
            steady: operator.steady,
            settings: Arc::clone(&operator.settings),
            memo: operator.memo.clone(),
            leadership: shared.leadership.clone(),
            pauses: shared.pauses.clone(),
        };
        let schedules = Schedules::new(&state.live);
        let run = schedules.run(base, stop.child_token());
        tasks.add(|_| run);
        schedules
    }

    /// Starts to report the readiness of the indexes, as soon as there are any.
    fn report_indexes(
        &self,
        state: &GenerationState,
        shared: &Shared<'_>,
        tasks: &mut BackgroundTasks,
    ) {
        let has_indexes = state.live.generation.registry.has_indexes();
        if has_indexes && shared.readiness.begin_reporting() {
            let (readiness, health) = (shared.readiness.clone(), self.operator.health.clone());
            tasks.add(|stop| indexes::watch(readiness, health, stop));
        }
    }
}
