//! One test: an API server, the operator and the script of the test on one virtual clock.

use std::{sync::Arc, time::Duration};

use kube::Client;
use parking_lot::Mutex;
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::call::{
    ActivityCause, AttemptKwargs, CallServices, Callers, Cause, EventQueue, Fakes, Indexes,
    Invocation, Logger, Memo, Scripts,
};
use crate::cli::{
    dev, identity, logging,
    options::RunOptions,
    rbac::PermissionRecord,
    report::Report,
    scripts::{self, UnloadedScripts},
    test::commands,
};
use crate::cluster::KubeCluster;
use crate::logic::handlers::{
    handler::{Handler, Kind},
    lifecycle::Lifecycle,
    outcome::{CallEnd, Raised},
};
use crate::ports::{Clock, Cluster, Dial, Kube, NativeLogins};
use crate::reactor::{self, NamespaceScope, Operator};
use crate::scripting::{Placement, ScriptHost, Source, Terms};
use crate::settings::Settings;
use crate::telemetry::{Health, HealthState, Metrics};
use crate::webhooks::LocalWebhooks;
use kopf_apiserver::{
    ApiServer,
    controllers::{self, Controllers},
};

/// The start of every test: always the same, so that times are the same in every run.
const BEGINNING: &str = "2030-01-01T00:00:00Z";
/// The default timeout of a test, on the virtual clock.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time for the start and the end of the operator.
const START_MAX: Duration = Duration::from_mins(2);
const END_MAX: Duration = Duration::from_mins(1);
/// Interval of checks whether the operator has started.
const POLL: Duration = Duration::from_millis(100);
/// The health part of the start-up handlers.
const STARTUP: &str = "startup";

/// The common parts of the tests of one file.
#[derive(Clone, Copy)]
pub(super) struct TestFile<'a> {
    pub(super) options: &'a RunOptions,
    /// The permissions of the operator. The test itself may do everything.
    pub(super) access: &'a dev::DevAccess,
    /// The permissions that operators have used.
    pub(super) record: &'a PermissionRecord,
    /// CRDs and objects that exist before the test.
    pub(super) files: &'a dev::ManifestFiles,
    /// The script with the tests.
    pub(super) test: &'a Source,
}

/// The result of a test.
pub(super) enum TestResult {
    Passed { log: Vec<String> },
    Failed { why: String, log: Vec<String> },
}

/// The log lines of one test.
type LogLines = Arc<Mutex<Vec<String>>>;

impl TestFile<'_> {
    /// Returns the names of the tests, in the order of declaration; the error is the reason why the script cannot be used.
    pub(super) async fn names(&self) -> Result<Vec<String>, String> {
        let (_host, tests) = self.load(&self.terms(Clock::system())).await?;
        Ok(tests.iter().map(|it| it.id.to_string()).collect())
    }

    /// Runs one of the tests, by its index.
    pub(super) async fn run(&self, index: usize) -> Result<TestResult, Report> {
        let beginning = BEGINNING.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let clock = Clock::starting_at(beginning);
        let lines = LogLines::default();
        let _listening = self.listen(&lines, clock);
        let failed = self.run_operator(index, clock).await?.err();
        let log = std::mem::take(&mut *lines.lock());
        Ok(match failed {
            None => TestResult::Passed { log },
            Some(why) => TestResult::Failed { why, log },
        })
    }

    /// Collects the log of this thread from now on.
    fn listen(&self, lines: &LogLines, clock: Clock) -> tracing::subscriber::DefaultGuard {
        let lines = Arc::clone(lines);
        let sink = move |line: &str| {
            lines.lock().push(line.to_owned());
        };
        let log = self.options.log.clone();
        tracing::subscriber::set_default(logging::subscriber(log, clock, Box::new(sink)))
    }

    /// Starts a server and the operator, and runs the test. The inner error is that of the test.
    async fn run_operator(&self, index: usize, clock: Clock) -> Result<Result<(), String>, Report> {
        let stamp = move || clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let rbac = self.access.is_enabled();
        let local = LocalWebhooks::default();
        let server = ApiServer::builder().clock(stamp).cluster(true).rbac(rbac);
        let terms = self.terms(clock);
        let fakes = terms.fakes.clone().unwrap_or_default();
        let server = server.pods(commands::of_fakes(&fakes));
        let server = server.webhooks(dev::webhooks::post(&local)).build();
        self.access.apply(&server).await?;
        let first = UnloadedScripts::files(self.options)?.load(terms.clone(), false).await?;
        dev::fill(&server, &first, self.files).await?;
        let user = self.access.user().unwrap_or(self.record.user());
        let (stop, health) = (CancellationToken::new(), Health::default());
        let operator = Operator {
            scripts: first.host,
            registry: first.registry,
            settings: Arc::new(Mutex::new(self.options.settings.clone())),
            clock,
            scope: NamespaceScope::Cluster,
            lifecycle: Lifecycle::default(),
            connect: dev::connect(server.clone(), Some(user), Metrics::default()),
            health: health.clone(),
            liveness: None,
            identity: identity::of_operator(clock),
            reloads: None,
            webhooks: Some(Arc::new(local)),
            is_dry: false,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn_local(controllers::run(server.clone(), Controllers::ALL));
        let mut operating = Box::pin(reactor::run(operator, stop.clone()));
        let verdict = tokio::select! {
            biased; // a test without its operator proves nothing
            ended = &mut operating => {
                let why = ended.map_or_else(|it| it.to_string(), |()| "it stopped by itself".to_owned());
                return Ok(Err(format!("the operator has stopped: {why}")));
            }
            verdict = self.call_test(index, &server, &terms, &health) => verdict,
        };
        stop.cancel();
        // A failure during clean-up is only logged: the test is over.
        let _in_time = time::timeout(END_MAX, operating).await.is_ok();
        tasks.shutdown().await;
        fakes.close();
        self.record.add(&server, user);
        Ok(verdict)
    }

    /// Calls the function of the test, once the operator has started.
    async fn call_test(
        &self,
        index: usize,
        server: &ApiServer,
        terms: &Terms,
        health: &Health,
    ) -> Result<(), String> {
        let started = async {
            // The clock advances when all tasks wait: by then every part of the operator has reported its health.
            time::sleep(POLL).await;
            while !has_started(health) {
                time::sleep(POLL).await;
            }
        };
        let in_time = time::timeout(START_MAX, started).await;
        in_time.map_err(|_elapsed| "the operator did not start in time".to_owned())?;
        let (host, tests) = self.load(terms).await?;
        let host: Arc<dyn Scripts> = Arc::new(host);
        let handler = tests.get(index).ok_or("the test is no longer declared")?;
        let limit = handler.limits.timeout.unwrap_or(TIMEOUT);
        let called = host.call(Arc::new(self.invocation(handler, server, terms.clock)));
        let fakes = terms.fakes.clone().unwrap_or_default();
        fakes.open(Arc::clone(&host));
        let ended = async {
            tokio::select! {
                biased; // an error in a fake is the cause of what follows
                raised = fakes.failed() => CallEnd::Raised(raised),
                ended = called => ended,
            }
        };
        match time::timeout(limit, ended).await {
            Ok(CallEnd::Returned(_) | CallEnd::Keyed(_)) => Ok(()),
            Ok(CallEnd::Raised(raised)) => Err(failure_message(&raised)),
            Err(_elapsed) => {
                let seconds = limit.as_secs_f64();
                Err(format!(
                    "the test did not finish within {seconds} s of virtual time; increase the option `timeout` of kopf.test"
                ))
            }
        }
    }

    fn invocation(&self, handler: &Arc<Handler>, server: &ApiServer, clock: Clock) -> Invocation {
        let settings = Arc::new(Mutex::new(self.options.settings.clone()));
        let kube = Kube::default();
        kube.open(Arc::clone(&settings), dial(server.clone()));
        let services = CallServices {
            indexes: Indexes::default(),
            posts: EventQueue::new(Arc::clone(&settings)),
            clock,
            kube,
            ..CallServices::default()
        };
        let attempt = AttemptKwargs { retry: 0, started: clock.now(), runtime: Duration::ZERO };
        let cause = ActivityCause {
            activity: "test",
            settings,
            logins: NativeLogins::default(),
            server: None,
            scheduled: None,
        };
        Invocation {
            handler: handler.for_scripts(),
            attempt: Some(attempt),
            cause: Cause::Activity(cause),
            memo: Memo::default(),
            logger: Logger::of_activity().named("test"),
            services: Arc::new(services),
            children: None,
            callers: Callers::default(),
        }
    }

    /// Loads the script of the tests. Returns the tests in the order of declaration.
    async fn load(&self, terms: &Terms) -> Result<(ScriptHost, Vec<Arc<Handler>>), String> {
        let loaded = ScriptHost::load(vec![self.test.clone()], terms.clone()).await;
        let (host, handlers) = loaded.map_err(|errors| Report::of_scripts(&errors).message)?;
        let tests = handlers.into_iter().filter(|it| it.kind == Kind::Test).map(Arc::new);
        Ok((host, tests.collect()))
    }

    /// Returns the operator's terms with the clock of the test.
    fn terms(&self, clock: Clock) -> Terms {
        let (placement, fakes) = (Placement::CurrentRuntime, Some(Fakes::default()));
        Terms { placement, clock, fakes, ..scripts::terms(self.options) }
    }
}

fn dial(server: ApiServer) -> Dial {
    Box::new(move || {
        let client = Client::new(server.clone(), dev::NAMESPACE);
        let cluster = KubeCluster::over(client, Arc::new(Settings::default()));
        Box::pin(async move { Ok(Arc::new(cluster) as Arc<dyn Cluster>) })
    })
}

/// Returns whether the start-up handlers have ended and all streams are open.
fn has_started(health: &Health) -> bool {
    let parts = health.parts();
    parts.contains_key(STARTUP) && parts.values().all(|it| it.state == HealthState::Ready)
}

/// Returns the location and the reason of a failed test.
fn failure_message(raised: &Raised) -> String {
    let Raised { message, trace: Some(trace), .. } = raised else {
        return raised.message.clone();
    };
    // In Lua, the first line of a trace contains the location with the message.
    let begins = trace.lines().next().unwrap_or_default();
    let is_there = begins.contains(message.lines().next().unwrap_or_default());
    if is_there { trace.clone() } else { format!("{message}\n{trace}") }
}
