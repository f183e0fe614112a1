//! `kopf run`: loads the scripts, connects, and runs the operator until it ends or a signal stops it.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, future, future::BoxFuture};
use parking_lot::Mutex;
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::cli::{
    args::LogFormat,
    coalescing::coalesce_wakeups,
    env::variable,
    health_server::HealthServer,
    identity,
    logging::{self, Log},
    memory_trim,
    options::{LogOptions, Note, RunOptions, ScopeOption},
    report::{Exit, Report},
    scripts::{self, First, UnloadedScripts},
    signals::{self, StopSignal},
    summary::Summary,
};
use crate::cluster::{ConnectOptions, KubeCluster, MutatingRequests};
use crate::features::duplicates::Duplicates;
use crate::logic::replicas::{duplicates, peering::PeeringIdentity};
use crate::logic::{discovery::namespaces::NamespacePattern, handlers::lifecycle::Lifecycle};
use crate::ports::{Clock, Cluster, WebhookServer};
use crate::reactor::{self, Connect, Connecting, NamespaceScope, Operator, OperatorFailure};
use crate::scripting::{Terms, lower_priority};
use crate::settings::Settings;
use crate::sources::reload::{self, ReloadReport, Reloading};
use crate::telemetry::Health;
use crate::webhooks::{GuardedWebhooks, HttpsWebhooks};

/// Runs an operator. Returns the exit code, or why it could not run.
pub(super) fn run(options: &RunOptions) -> Result<Exit, Report> {
    let clock = Clock::system();
    let read = UnloadedScripts::files(options)?;
    let log = start_log(&options.log, &options.notes, clock)?;
    let scope = scope(&options.scope);
    let mutating = MutatingRequests::default();
    let mut runtime = one_thread();
    let counted = mutating.clone();
    coalesce_wakeups(&mut runtime, move || counted.in_flight());
    run_on(&mut runtime, &options.log, async {
        let mut signals = listen()?;
        let health_server = HealthServer::open(options, clock, log.control()).await?;
        let read = tokio::select! {
            biased; // a signal first: it must not wait for an API that does not respond
            Some(_) = signals.next() => return Ok(Exit::Success),
            read = read.maps(options, None, clock) => read?,
        };
        let server = HttpsWebhooks { own: read.own_objects() };
        let webhooks: Arc<dyn WebhookServer> = match read.guard(options) {
            Some(guard) => Arc::new(GuardedWebhooks { server, guard: Arc::new(guard) }),
            None => Arc::new(server),
        };
        let mut plan = load(read, options, scope, (clock, &health_server.health)).await?;
        let (connected, cluster) = oneshot::channel();
        plan.background = Some(background(options, &plan, cluster, health_server.health.clone()));
        let connect = connect(
            ConnectOptions {
                overrides: options.cluster.clone(),
                health: health_server.health.clone(),
                mutating,
                clock,
                ..ConnectOptions::default()
            },
            Some(connected),
        );
        let plan = plan.with_webhooks(webhooks);
        operate(plan, connect, health_server, signals).await
    })
}

/// Starts the log, including the log of panics.
pub(super) fn start_log(options: &LogOptions, notes: &[Note], clock: Clock) -> Result<Log, Report> {
    let log = logging::install(options.clone(), clock, &variable)
        .map_err(|problem| Report::failure(format!("cannot start the log: {problem}")))?;
    std::panic::set_hook(Box::new(log_panic));
    for note in notes {
        match note {
            Note::Info(text) => tracing::info!(target: "kopf.reactor", "{text}"),
            Note::Warning(text) => tracing::warn!(target: "kopf.reactor", "{text}"),
        }
    }
    Ok(log)
}

/// Runs a future to its end, on one thread: scripts have their own threads, and a pool would only add memory and context switches.
pub(super) fn on_runtime<T>(
    log: &LogOptions,
    work: impl Future<Output = Result<T, Report>>,
) -> Result<T, Report> {
    run_on(&mut one_thread(), log, work)
}

fn one_thread() -> runtime::Builder {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_all();
    // The threads for blocking work parse, render and search for scripts.
    builder.on_thread_start(lower_priority);
    builder
}

fn run_on<T>(
    runtime: &mut runtime::Builder,
    log: &LogOptions,
    work: impl Future<Output = Result<T, Report>>,
) -> Result<T, Report> {
    let runtime = runtime.build();
    let runtime =
        runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
    let done = runtime.block_on(work);
    // Tasks that still run are abandoned: the operator has ended.
    runtime.shutdown_background();
    done.map_err(|report| match log.format {
        LogFormat::Json => report.into_log(),
        LogFormat::Plain | LogFormat::Full | LogFormat::Kopf => report,
    })
}

/// Listens to signals, which do not end the process from now on.
pub(super) fn listen() -> Result<impl Stream<Item = StopSignal> + Unpin, Report> {
    signals::listen().map_err(|it| Report::failure(format!("cannot listen to signals: {it}")))
}

/// An operator that is ready to connect to a cluster.
pub(super) struct RunPlan {
    /// Its first generation of scripts.
    pub(super) first: First,
    /// Its identity among other operators.
    pub(super) identity: PeeringIdentity,
    scope: NamespaceScope,
    settings: Settings,
    clock: Clock,
    /// Runs next to it, until it stops.
    background: Option<BackgroundWork>,
    webhooks: Option<Arc<dyn WebhookServer>>,
}

impl RunPlan {
    /// Receives the reviews of admission handlers with this server.
    pub(super) fn with_webhooks(self, webhooks: Arc<dyn WebhookServer>) -> Self {
        RunPlan { webhooks: Some(webhooks), ..self }
    }
}

/// Loads the scripts. Returns an operator that is ready to connect to a cluster.
pub(super) async fn load(
    read: UnloadedScripts,
    options: &RunOptions,
    scope: NamespaceScope,
    (clock, health): (Clock, &Health),
) -> Result<RunPlan, Report> {
    let terms = Terms { metrics: health.metrics().clone(), ..scripts::terms(options) };
    let first = read.load(terms, options.scripts.reload).await?;
    Ok(RunPlan {
        first,
        identity: identity::of_operator(clock),
        scope,
        settings: options.settings.clone(),
        clock,
        background: None,
        webhooks: None,
    })
}

/// The work that runs next to an operator, until it stops.
type BackgroundWork = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Logs the first line once there is a connection, and watches for a second operator.
fn background(
    options: &RunOptions,
    plan: &RunPlan,
    connected: oneshot::Receiver<KubeCluster>,
    health: Health,
) -> BackgroundWork {
    let summary = Summary::new(options, &plan.first, &plan.identity);
    let settings = &plan.settings;
    let is_watched = settings.peering.detect_duplicates && !settings.leadership.enabled;
    let handlers = plan.first.registry.handlers().iter();
    let resources: Vec<_> =
        handlers.filter_map(|it| Some(it.selector.as_ref()?.to_string())).collect();
    let name = (is_watched && !resources.is_empty())
        .then(|| duplicates::name(&settings.persistence.finalizer, summary.scope(), &resources));
    let (identity, clock) = (plan.identity.process.clone(), plan.clock);
    Box::new(move |stop| {
        Box::pin(async move {
            let Some(Ok(cluster)) = stop.run_until_cancelled(connected).await else { return };
            let logged = stop.run_until_cancelled(summary.log(&cluster));
            let watched = async {
                if let Some(name) = name {
                    let cluster = Arc::new(cluster.clone());
                    let duplicates = Duplicates { cluster, name, identity, clock, health };
                    duplicates.watch(stop.clone()).await;
                }
            };
            let (_is_stopped, ()) = future::join(logged, watched).await;
        })
    })
}

/// Runs until a signal or a fatal error.
pub(super) async fn operate(
    plan: RunPlan,
    connect: Connect,
    health_server: HealthServer,
    signals: impl Stream<Item = StopSignal>,
) -> Result<Exit, Report> {
    let RunPlan { first, identity, scope, settings, clock, background, webhooks } = plan;
    let settings = Arc::new(Mutex::new(settings));
    let stop = CancellationToken::new();
    let (candidates, reloads) = mpsc::channel(reload::WAITING_MAX);
    let host = first.host;
    let mut tasks = JoinSet::new();
    tasks.spawn(memory_trim::release(stop.clone()));
    if let Some(background) = background {
        tasks.spawn(background(stop.clone()));
    }
    let reloads = first.sources.map(|sources| {
        let (host, health) = (Arc::clone(&host), health_server.health.clone());
        let parts = reload::Parts { sources, host, candidates, health, clock };
        tasks.spawn(Reloading::new(parts).follow(stop.clone()));
        reloads
    });
    if reloads.is_none() {
        ReloadReport::close(health_server.health.clone(), clock);
    }
    tasks.spawn(announce_stop(stop.clone(), health_server.health.clone()));
    let operator = Operator {
        scripts: host,
        registry: first.registry,
        settings: Arc::clone(&settings),
        clock,
        scope,
        lifecycle: Lifecycle::default(),
        connect,
        health: health_server.health.clone(),
        liveness: health_server.liveness.clone(),
        identity,
        reloads,
        webhooks,
        is_dry: false,
    };
    let ended = tokio::select! {
        biased; // the operator first: it ends after a signal
        ended = Box::pin(reactor::run(operator, stop.clone())) => ended.map(|()| Exit::Success).map_err(|it| report(&it)),
        at_once = signals::watch(signals, stop.clone(), settings) => return Ok(at_once),
    };
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    health_server.close().await;
    if ended.is_ok() {
        tracing::info!(target: "kopf.reactor", "Stopped.");
    }
    ended
}

/// Logs the work that a stop waits for.
async fn announce_stop(stop: CancellationToken, health: Health) {
    stop.cancelled().await;
    let busy = health.metrics().queues.get();
    if busy > 0 {
        let what = if busy == 1 { "1 object that is" } else { "objects that are" };
        let count = if busy == 1 { String::new() } else { format!("{busy} ") };
        tracing::info!(target: "kopf.reactor", "Stopping: waiting for {count}{what} being handled.");
    }
}

/// Logs a panic in one line. It pauses one object, but does not end the operator; a backtrace would not help users.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
    tracing::error!(target: "kopf.reactor", "Internal error at {place}: {text}");
}

/// Connects with the kubeconfig or the service account, and passes the connection to `connected`.
pub(super) fn connect(
    options: ConnectOptions,
    connected: Option<oneshot::Sender<KubeCluster>>,
) -> Connect {
    let connected = Arc::new(Mutex::new(connected));
    Box::new(move |Connecting { settings, login }| {
        let settings = Arc::new(settings);
        let options = ConnectOptions { settings, login, ..options.clone() };
        let connected = Arc::clone(&connected);
        Box::pin(async move {
            let cluster = KubeCluster::connect(options).await?;
            if let Some(connected) = connected.lock().take() {
                drop(connected.send(cluster.clone()));
            }
            Ok(Arc::new(cluster) as Arc<dyn Cluster>)
        })
    })
}

fn scope(option: &ScopeOption) -> NamespaceScope {
    match option {
        ScopeOption::Cluster => NamespaceScope::Cluster,
        ScopeOption::Unsaid => {
            tracing::warn!(
                target: "kopf.reactor",
                "Neither -A/--all-namespaces nor -n/--namespace is given: serving the whole cluster (as with -A)."
            );
            NamespaceScope::Cluster
        }
        ScopeOption::Namespaces(patterns) => {
            NamespaceScope::Namespaces(patterns.iter().map(NamespacePattern::new).collect())
        }
    }
}

fn report(failure: &OperatorFailure) -> Report {
    let report = Report::failure(failure.to_string());
    match failure.hint() {
        Some(hint) => report.with_hint(hint),
        None => report,
    }
}
