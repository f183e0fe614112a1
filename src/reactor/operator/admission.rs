//! Admission in a running operator: starts the webhook server when the first admission handler is declared, and updates the handlers of the
//! server and of the webhook configurations.
//!
//! After a reload, reviews reach the new handlers before the configurations name them. While the configuration of a removed handler
//! remains, its webhook allows every request.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::features::admission::{
    AdmissionHandlers, Configurations, DesiredWebhooks, GuardedReviewer, OperatorReviewer,
};
use crate::features::leadership::Released;
use crate::logic::{
    admission::{
        configuration::{ClientConfig, WebhookRule},
        conversion,
        guard::Guarded,
        own_objects::{OwnObject, OwnObjects},
        server::Publishing,
    },
    change::{registry::Registry, selection::Selected},
    handlers::handler::Category,
    object::resource::Resource,
    replicas::peering::PeeringIdentity,
    schedules::slots::LeaseRef,
};
use crate::ports::{Cluster, Reviewer, RunningServer, ScriptGuard, WebhookParts, WebhookServer};
use crate::reactor::generation::shared::{OperatorContext, Shared};
use crate::reactor::{generation::GenerationState, object::memory::Key, observer::Observer};
use crate::settings::{LeadershipSettings, Settings};

/// The error for admission handlers without an admission server.
const UNSUPPORTED: &str = "Admission handlers exist, but no admission server is configured in `settings.admission.server`";

/// Maximum time that the streams wait for the first configuration of conversion webhooks.
const CONVERSIONS_WITHIN: Duration = Duration::from_secs(30);

/// The admission handlers of an operator and their server.
pub(super) struct Admission {
    server: Option<Arc<dyn WebhookServer>>,
    identity: PeeringIdentity,
    /// `None` until the first admission handler is declared.
    running: Option<RunningAdmission>,
}

struct RunningAdmission {
    reviewer: Arc<OperatorReviewer>,
    /// The handlers, for the configurations; `None` before the first pass.
    served: watch::Sender<Option<ServedHandlers>>,
    /// The CRDs for which the first attempt to write the conversion webhook has ended; `None` if the user writes the configurations.
    settled: Option<watch::Receiver<BTreeSet<String>>>,
    /// The `ConfigMap`s of scripts whose edits are checked.
    guarded: Vec<Guarded>,
    configuring: JoinSet<()>,
    serving: JoinSet<()>,
    /// The tokens that end the configurations first, and then the server, so that reviews are answered until the webhooks are removed.
    stop: (CancellationToken, CancellationToken),
}

/// The handlers that are served.
#[derive(Clone, Debug, Default, PartialEq)]
struct ServedHandlers {
    rules: Vec<WebhookRule>,
    /// The names of the CRDs whose objects are converted.
    conversions: BTreeSet<String>,
    guarded: Vec<Guarded>,
}

/// Returns the reviewer of all reviews: those of handlers, and those of the guard if there is one.
fn guarding(
    reviewer: &Arc<OperatorReviewer>,
    guard: Option<Arc<dyn ScriptGuard>>,
) -> Arc<dyn Reviewer> {
    let reviewer = Arc::clone(reviewer) as Arc<dyn Reviewer>;
    match guard {
        Some(guard) => Arc::new(GuardedReviewer { reviewer, guard }),
        None => reviewer,
    }
}

impl Admission {
    pub(super) fn new(server: Option<Arc<dyn WebhookServer>>, identity: PeeringIdentity) -> Self {
        Admission { server, identity, running: None }
    }

    /// Starts the server, if these handlers need one for the first time.
    ///
    /// # Errors
    /// If the settings do not permit a server, or if it cannot be opened.
    pub(super) async fn prepare(
        &mut self,
        registry: &Registry,
        operator: &OperatorContext,
        (settings, shared): (&Arc<Settings>, &Shared<'_>),
    ) -> Result<(), String> {
        let guard = self.server.as_ref().and_then(|it| it.guard());
        let is_needed = guard.is_some() || !registry.selectors(&Category::WEBHOOKS).is_empty();
        if self.running.is_some() || !is_needed {
            return Ok(());
        }
        let server = self.server.clone().ok_or(UNSUPPORTED)?;
        let tunnel = operator.tunnel(settings);
        let publishing = if tunnel.is_some() { Publishing::Tunnel } else { Publishing::Settings };
        let setup = server.setup(settings, publishing)?;
        let memories = Arc::clone(&shared.memories);
        memories.lend(&operator.memo);
        let reviewer = Arc::new(OperatorReviewer {
            scripts: Arc::clone(&operator.scripts),
            clock: operator.steady,
            memo: operator.memo.clone(),
            recall: Arc::new(move |header| memories.memo(&Key::of(header))),
            metrics: operator.health.metrics().clone(),
            serving: Mutex::default(),
        });
        let stop = (CancellationToken::new(), CancellationToken::new());
        let guarded = guard.as_ref().map(|it| it.guarded()).unwrap_or_default();
        let parts = WebhookParts {
            reviewer: guarding(&reviewer, guard),
            settings: Arc::clone(settings),
            tunnel,
            cluster: Arc::clone(shared.cluster),
            clock: operator.clock,
            health: operator.health.clone(),
            stop: stop.1.clone(),
        };
        let RunningServer { serving, client } = server.start(parts).await?;
        let (served, received) = watch::channel(None);
        let (configuring, serving_tasks) = (JoinSet::new(), JoinSet::new());
        let mut running = RunningAdmission {
            reviewer,
            served,
            settled: None,
            guarded,
            configuring,
            serving: serving_tasks,
            stop,
        };
        running.serving.spawn(serving);
        if let Some(name) = setup.managed {
            let (settled, noted) = watch::channel(BTreeSet::new());
            running.settled = Some(noted);
            let configurations = Configurations {
                cluster: Arc::clone(shared.cluster) as Arc<dyn Cluster>,
                settings: Arc::clone(settings),
                name,
                own: own_objects(&*server, settings, &**shared.cluster),
                identity: self.identity.process.clone(),
                leadership: shared.leadership.clone(),
                pauses: shared.pauses.clone(),
                health: operator.health.clone(),
                settled,
            };
            let (wanted, receiver) = watch::channel(None);
            let stop = running.stop.0.clone();
            running.configuring.spawn(combine((received, client), wanted, stop));
            running.configuring.spawn(configurations.run(receiver, running.stop.0.clone()));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Serves the handlers of this pass.
    pub(super) fn update(&self, state: &GenerationState, observer: &Observer<'_>) {
        let Some(running) = &self.running else { return };
        let resources = observer.admission();
        let rules = rules(&state.live.generation.registry, &resources);
        let conversions = conversion::crds(&resources).collect();
        let served = Some(ServedHandlers { rules, conversions, guarded: running.guarded.clone() });
        running.reviewer.serve(AdmissionHandlers {
            live: Arc::clone(&state.live),
            execution: state.settings.execution.clone(),
            resources,
        });
        running.served.send_if_modified(|before| {
            let is_new = *before != served;
            *before = served;
            is_new
        });
    }

    /// Waits, up to [`CONVERSIONS_WITHIN`], until the first attempts to write the conversion webhooks of the first pass have ended:
    /// otherwise the first lists would show unconverted objects. Later attempts must not delay the streams.
    pub(super) async fn conversions_configured(&mut self) {
        let Some(RunningAdmission { served, settled, .. }) = &mut self.running else { return };
        let Some(mut settled) = settled.take() else { return };
        let needed = served.borrow().as_ref().map(|it| it.conversions.clone());
        let needed = needed.unwrap_or_default();
        let all = settled.wait_for(|it| needed.is_subset(it));
        if timeout(CONVERSIONS_WITHIN, all).await.is_err() {
            let seconds = CONVERSIONS_WITHIN.as_secs();
            tracing::warn!(
                target: "kopf.admission",
                "Conversion webhooks are not configured after {seconds} s: watching objects anyway, which may be unconverted."
            );
        }
    }

    /// Returns whether this process writes the webhook configurations while it leads.
    fn has_configurations(&self) -> bool {
        self.running.as_ref().is_some_and(|it| !it.configuring.is_empty())
    }

    /// Ends if there are no other replicas; otherwise returns itself and keeps running.
    pub(super) async fn end_if(self, is_alone: bool) -> Option<Self> {
        if !is_alone {
            return Some(self);
        }
        self.end().await;
        None
    }

    /// Ends the server of one of several replicas. Removes its configurations if it has led and no other replica takes the lease: until
    /// then, the server answers reviews.
    pub(super) async fn end_after(self, released: Option<Released>) {
        let is_last = match released {
            Some(lease) if self.has_configurations() => lease.is_left().await,
            Some(_) | None => false,
        };
        if is_last {
            tracing::info!(
                target: "kopf.admission",
                "No other replica has taken the lease: removing the webhooks."
            );
            return self.end().await;
        }
        let Some(mut running) = self.running else { return };
        running.configuring.shutdown().await;
        running.end().await;
    }

    /// Removes the configurations, then ends the server.
    pub(super) async fn end(self) {
        let Some(mut running) = self.running else { return };
        running.stop.0.cancel();
        while running.configuring.join_next().await.is_some() {}
        running.end().await;
    }
}

impl RunningAdmission {
    async fn end(mut self) {
        self.stop.1.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}

/// Returns the objects that the webhooks do not review.
fn own_objects(
    server: &dyn WebhookServer,
    settings: &Settings,
    cluster: &dyn Cluster,
) -> OwnObjects {
    let mut own = server.own_objects();
    let LeadershipSettings { name, namespace, .. } = &settings.leadership;
    let default = cluster.default_namespace();
    let namespace = namespace.as_deref().unwrap_or(default);
    let schedules = LeaseRef::new(namespace, name, "").name;
    own.objects.extend([name, &schedules].map(|it| OwnObject::lease(namespace, it)));
    if let Some(secret) = &settings.persistence.digest_secret {
        own.objects.push(OwnObject::secret(default, secret));
    }
    own
}

/// Returns the handlers in the order of their declaration, each with its resources.
fn rules(registry: &Registry, resources: &[(Arc<Resource>, Selected)]) -> Vec<WebhookRule> {
    let handlers = registry.handlers().iter();
    let handlers = handlers.filter(|it| it.kind.category() == Category::Admission);
    let rule = |handler: &Arc<_>| {
        let is_of = |(_, all): &&(_, Selected)| all.iter().any(|it| Arc::ptr_eq(it, handler));
        let own = resources.iter().filter(is_of).map(|(it, _)| Resource::clone(it));
        (Arc::clone(handler), own.collect())
    };
    handlers.map(rule).collect()
}

/// Combines the handlers and the address of the server into the content of the configurations.
async fn combine(
    (mut served, mut client): (
        watch::Receiver<Option<ServedHandlers>>,
        watch::Receiver<Option<ClientConfig>>,
    ),
    wanted: watch::Sender<Option<DesiredWebhooks>>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            biased; // the end first
            () = stop.cancelled() => return,
            changed = served.changed() => if changed.is_err() { return },
            changed = client.changed() => if changed.is_err() { return },
        }
        let served = served.borrow().clone().filter(|it| *it != ServedHandlers::default());
        let client = client.borrow().clone();
        // The first pass has not come yet, or the server is not ready.
        let next = client.zip(served).map(|(client, served)| {
            let ServedHandlers { rules, conversions, guarded } = served;
            DesiredWebhooks { client, rules, conversions, guarded }
        });
        wanted.send_if_modified(|before| {
            let is_new = *before != next;
            *before = next;
            is_new
        });
    }
}
