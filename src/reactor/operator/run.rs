//! Runs an operator: start-up handlers, streams, clean-up handlers.
//!
//! Step 1 of the walk begins in `serve.rs`.

use std::sync::Arc;

use tokio::time;
use tokio_util::sync::CancellationToken;

use super::{
    poster::Poster,
    probing::Probing,
    serve::{Remaining, Serve},
};
use crate::call::{
    CallServices, Current, EventQueue, Indexes, LiveGeneration, Locks, Memo, Notices, Reconcilers,
};
use crate::features::probes::{CountedScripts, ProbeEndpoint};
use crate::handling::{
    activities::{self, Activity, RepeatedActivity},
    run::HandlerRunner,
};
use crate::logic::{
    generation::{Generation, Version},
    handlers::{handler::Kind, lifecycle::Lifecycle},
    replicas::peering::PeeringIdentity,
};
use crate::ports::{ApiError, AskTunnel, Cluster, Kube, Leadership, NativeLogins, WebhookServer};
use crate::reactor::{
    generation::{
        Candidates,
        shared::{OperatorContext, STOPPING, unless_stopped},
    },
    observer::NamespaceScope,
    operator::{Connect, Connecting, Operator, OperatorFailure},
};
use crate::settings::Settings;
use crate::telemetry::HealthState;

/// The names of the operator's own parts in the health report.
const STARTUP: &str = "startup";
/// Runs an operator until `stop`, or until it cannot continue.
///
/// # Errors
/// If start-up handlers fail (nothing else is started then), the cluster is not usable, clean-up handlers fail, or the leadership
/// is lost. After a lost leadership, clean-up handlers are not called: they could act at the same time as another replica.
pub async fn run(operator: Operator, stop: CancellationToken) -> Result<(), OperatorFailure> {
    let (operator, plan, connect) = OperatorContext::new(operator);
    let _closing = operator.open(connect);
    tracing::debug!(target: "kopf.reactor", "Starting kopf {}.", env!("CARGO_PKG_VERSION"));
    if !operator.start_up(&stop).await? {
        return Ok(());
    }
    let settings = Arc::new(operator.settings());
    warn_of_plain_finalizer(&settings.persistence.finalizer);
    operator.scripts.configure(&settings);
    let services = Arc::clone(&operator.current.get().services);
    services.posts.listen();
    let mut poster = Poster::start(&services, &settings);
    let served = operator.serve(plan, &settings, &mut poster, &stop).await;
    operator.health.note(STOPPING, HealthState::Unready, "the operator is stopping");
    if let Err(OperatorFailure::Leadership(reason)) = served {
        return Err(OperatorFailure::Leadership(reason));
    }
    let (served, remaining) = match served {
        Ok(remaining) => (Ok(()), remaining),
        Err(failure) => (Err(failure), None),
    };
    let cleaned = operator.clean_up_as_leader(remaining, served.is_err()).await;
    if let Err(OperatorFailure::Leadership(_)) = &cleaned {
        return cleaned;
    }
    // Last: clean-up handlers post events too.
    poster.end().await;
    served?;
    cleaned
}

/// Warns of a finalizer without a domain: API servers accept it for custom resources with a warning, and reject it for built-in
/// kinds.
fn warn_of_plain_finalizer(finalizer: &str) {
    if !finalizer.contains('/') {
        tracing::warn!(
            target: "kopf.reactor",
            "The finalizer '{finalizer}' has no domain: Kubernetes accepts it for custom resources only. \
             Prefer a name such as my-operator.example.com/Finalizer (settings.persistence.finalizer)."
        );
    }
}

/// The inputs that are needed once, to start the streams.
struct StreamInputs {
    scope: NamespaceScope,
    lifecycle: Lifecycle,
    liveness: Option<ProbeEndpoint>,
    identity: PeeringIdentity,
    candidates: Candidates,
    webhooks: Option<Arc<dyn WebhookServer>>,
}

impl OperatorContext {
    fn new(operator: Operator) -> (Self, StreamInputs, Connect) {
        let Operator { scripts, registry, settings, clock, scope, lifecycle, .. } = operator;
        let Operator { connect, health, liveness, identity, reloads, webhooks, is_dry, .. } =
            operator;
        let services = CallServices {
            indexes: Indexes::new(registry.indexes()),
            posts: EventQueue::new(Arc::clone(&settings)),
            clock,
            kube: Kube::default(),
            leadership: Leadership::new(clock),
            locks: Locks::default(),
            reconcilers: Reconcilers::default(),
            failures: health.metrics().failures.clone(),
            notices: Notices::default(),
            is_dry,
        };
        let generation =
            Generation { version: Version::FIRST, registry, lifecycle: scripts.lifecycle() };
        let context = OperatorContext {
            scripts: Arc::new(CountedScripts::new(scripts, health.metrics().clone())),
            current: Current::new(LiveGeneration { generation, services: Arc::new(services) }),
            settings,
            clock,
            steady: clock.steady(),
            memo: Memo::default(),
            health,
        };
        let candidates = Candidates::new(reloads);
        (
            context,
            StreamInputs { scope, lifecycle, liveness, identity, candidates, webhooks },
            connect,
        )
    }

    /// Allows scripts and the operator to connect to the cluster: the first use connects. This may be in a start-up handler.
    fn open(&self, connect: Connect) -> Closing {
        let kube = self.current.get().services.kube.clone();
        let context = self.clone();
        kube.open(Arc::clone(&self.settings), Box::new(move || connect(context.connecting())));
        Closing(kube)
    }

    /// Connects to the cluster, unless scripts have done so already, and passes the connection to the poster of events.
    async fn connect(
        &self,
        settings: &Arc<Settings>,
        poster: &mut Poster,
    ) -> Result<Arc<dyn Cluster>, ApiError> {
        let cluster = self.current.get().services.kube.cluster().await?;
        // Scripts may have connected before start-up handlers changed the settings.
        cluster.configure(Arc::clone(settings));
        poster.connected(&cluster);
        Ok(cluster)
    }

    /// Returns the inputs for a connection at this moment.
    fn connecting(&self) -> Connecting {
        let settings = self.settings();
        let login = self.repeated_activity(Kind::Login, &settings);
        let login = (!login.fallback.is_empty()).then(|| login.into_login());
        Connecting { settings, login }
    }

    /// Runs the start-up handlers; returns whether to continue.
    async fn start_up(&self, stop: &CancellationToken) -> Result<bool, OperatorFailure> {
        self.health.note(STARTUP, HealthState::Unready, "the start-up handlers are running");
        let Some(started) = unless_stopped(stop, self.run(Kind::Startup)).await else {
            tracing::warn!(target: "kopf.reactor", "Startup activity is only partially executed due to cancellation.");
            return Ok(false);
        };
        started?;
        self.health.note(STARTUP, HealthState::Ready, "");
        Ok(true)
    }

    /// Runs the clean-up handlers and then releases the lease, so that no other replica acts meanwhile.
    ///
    /// Standbys run them, too, as a paused operator does in Kopf: they end what was started. They are stopped when the leadership is lost.
    async fn clean_up_as_leader(
        &self,
        remaining: Option<Remaining>,
        has_failed: bool,
    ) -> Result<(), OperatorFailure> {
        let Some(remaining) = remaining else { return self.clean_up(has_failed).await };
        let cleaned = tokio::select! {
            biased; // the loss comes first: no action may follow it
            reason = remaining.lost() => return Err(OperatorFailure::Leadership(reason)),
            cleaned = self.clean_up(has_failed) => cleaned,
        };
        remaining.end().await;
        cleaned
    }

    /// Runs the clean-up handlers within the limits of the settings: an operator that hangs would never be restarted.
    async fn clean_up(&self, has_failed: bool) -> Result<(), OperatorFailure> {
        let process = self.settings().process;
        let own = process.cleanup_timeout.map(|it| (it, "cleanup_timeout"));
        // After a signal, this limit applies to the whole shutdown anyway.
        let whole = process.ultimate_exiting_timeout.filter(|_| has_failed);
        let whole = whole.map(|it| (it, "ultimate_exiting_timeout"));
        let cleaning = self.run(Kind::Cleanup);
        let Some((limit, name)) = own.into_iter().chain(whole).min() else {
            return cleaning.await;
        };
        time::timeout(limit, cleaning).await.unwrap_or_else(|_late| {
            let seconds = limit.as_secs_f64();
            tracing::error!(
                target: "kopf.reactor",
                "Cleanup handlers took longer than {seconds} s (settings.process.{name}), stopping them."
            );
            Ok(())
        })
    }

    async fn serve(
        &self,
        plan: StreamInputs,
        settings: &Arc<Settings>,
        poster: &mut Poster,
        stop: &CancellationToken,
    ) -> Result<Option<Remaining>, OperatorFailure> {
        let serve = Serve {
            operator: self,
            settings: Arc::clone(settings),
            lifecycle: plan.lifecycle,
            identity: plan.identity,
            webhooks: plan.webhooks,
        };
        let probe = self.repeated_activity(Kind::Probe, settings);
        let probing = Probing::start(plan.liveness, probe, &self.health).await?;
        let connect = self.connect(settings, poster);
        let served = serve.run(&plan.scope, connect, plan.candidates, stop).await;
        probing.end().await;
        served
    }

    /// Runs the handlers of an activity to their end.
    async fn run(&self, kind: Kind) -> Result<(), OperatorFailure> {
        let live = self.current.get();
        let runner = HandlerRunner {
            scripts: &*self.scripts,
            clock: self.steady,
            settings: &self.settings().execution,
            services: &live.services,
        };
        let activity = Activity {
            kind,
            handlers: live.generation.registry.activities(kind),
            settings: Arc::clone(&self.settings),
            memo: self.memo.clone(),
            logins: NativeLogins::default(),
            server: None,
            scheduled: None,
        };
        activities::run(runner, &activity).await?;
        Ok(())
    }

    /// Returns the callback that finds the URL of the webhook server, if scripts have tunnel handlers.
    pub(super) fn tunnel(&self, settings: &Settings) -> Option<AskTunnel> {
        let tunnel = self.repeated_activity(Kind::Tunnel, settings);
        (!tunnel.fallback.is_empty()).then(|| tunnel.into_tunnel())
    }

    fn repeated_activity(&self, kind: Kind, settings: &Settings) -> RepeatedActivity {
        // A connection made with login handlers keeps needing them, and so does a server with a tunnel.
        let is_needed = matches!(kind, Kind::Login | Kind::Tunnel);
        let at_start = is_needed.then(|| self.current.get().generation.registry.activities(kind));
        RepeatedActivity {
            kind,
            current: self.current.clone(),
            fallback: at_start.unwrap_or_default(),
            settings: Arc::clone(&self.settings),
            memo: self.memo.clone(),
            scripts: Arc::clone(&self.scripts),
            clock: self.steady,
            execution: settings.execution.clone(),
        }
    }

    /// Returns the present settings.
    pub(in crate::reactor) fn settings(&self) -> Settings {
        self.settings.lock().clone()
    }
}

/// A guard that prevents connections after the end of the operator: the connector contains the operator, and would keep it in memory.
struct Closing(Kube);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
