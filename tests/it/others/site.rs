//! The cluster of several operators, what their handlers did, and what all of them said.

use std::{
    fmt::Write as _,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
pub(super) use kopf::testing::EXAMPLES;
use kopf::{
    logic::{
        declare::{Argument, Declaration, declare},
        handler::Kind,
        outcome::Ended,
        registry::Registry,
    },
    ports::{Cause, Clock, Health, ObjectDetail},
    reactor::{self, Operator, Scope},
    settings::Settings,
    testing::{self, NativeScripts},
};
use kopf_apiserver::{ApiServer, LoggedRequest, ResourceDef, ResponseBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::{Dispatch, Event, Subscriber, dispatcher::DefaultGuard, field::Visit};
use tracing_subscriber::{
    Layer,
    layer::{Context as LayerContext, SubscriberExt as _},
};

/// The namespace of its objects.
pub(super) const NAMESPACE: &str = "ns1";
/// The wall clock at virtual time zero.
const BASE: &str = "2026-01-01T00:00:00Z";

/// A cluster.
pub(super) struct Site {
    pub(super) server: ApiServer,
    pub(super) start: Instant,
    clock: Clock,
    calls: Calls,
    log: Log,
    /// Held, so that the log is written while the site is there.
    #[expect(dead_code, reason = "it works by being there")]
    capturing: DefaultGuard,
}

/// What handlers did: `operator handler object`, in order.
type Calls = Arc<Mutex<Vec<(Duration, String)>>>;

/// The lines of all operators, with their levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

/// How an operator differs from others.
pub(super) struct Plan {
    pub(super) name: &'static str,
    /// No two processes have the same.
    pub(super) identity: String,
    pub(super) scope: Scope,
    pub(super) settings: Settings,
    /// How long the creation handler takes.
    pub(super) creation: Duration,
    /// Which handlers there are.
    pub(super) kinds: Vec<Kind>,
}

/// A running operator. Dropping it is a `kill -9`.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinSet<Result<(), reactor::Failure>>,
    /// Whether it can reach the server.
    pub(super) link: Arc<AtomicBool>,
    pub(super) health: Health,
}

impl Plan {
    /// An operator of the whole cluster with a creation handler.
    pub(super) fn new(name: &'static str) -> Self {
        let mut settings = Settings::default();
        settings.networking.error_backoffs = vec![Duration::from_secs(1)];
        Plan {
            name,
            identity: name.to_owned(),
            scope: Scope::Cluster,
            settings,
            creation: Duration::ZERO,
            kinds: vec![Kind::Create],
        }
    }

    /// With another priority.
    pub(super) fn priority(mut self, priority: i64) -> Self {
        self.settings.peering.priority = priority;
        self
    }

    /// One of several replicas.
    pub(super) fn replica(mut self) -> Self {
        self.settings.leadership.enabled = true;
        self
    }

    /// With handlers of these kinds.
    pub(super) fn with(mut self, kinds: &[Kind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }
}

impl Site {
    /// A cluster with these resources beside the one that is served.
    pub(super) fn new(resources: impl IntoIterator<Item = ResourceDef>) -> Self {
        let clock = Clock::starting_at(BASE.parse().expect("a timestamp"));
        let mut builder = ApiServer::builder()
            .resource(testing::examples())
            .clock(move || clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        for resource in resources {
            builder = builder.resource(resource);
        }
        let log = Log::default();
        let capturing = capture(&log);
        let (server, start) = (builder.build(), Instant::now());
        Site { server, start, clock, calls: Calls::default(), log, capturing }
    }

    /// Starts an operator.
    pub(super) fn start(&self, plan: Plan) -> Running {
        let Plan { name, identity, scope, mut settings, creation, kinds } = plan;
        settings.peering.clusterwide = matches!(scope, Scope::Cluster);
        let (scripts, handlers) = (NativeScripts::default(), self.handlers(name, creation));
        let handlers = kinds.iter().map(|kind| handlers(&scripts, *kind)).collect();
        let (link, health) = (Arc::new(AtomicBool::new(true)), Health::default());
        let client = Linked { server: self.server.clone(), link: Arc::clone(&link) };
        let client = kube::Client::new(client, "ops");
        let registry = Registry::new(handlers).expect("ids are unique");
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            clock: self.clock,
            scope,
            health: health.clone(),
            identity: testing::identity(&identity),
            ..testing::operator(Arc::new(scripts), registry, client)
        };
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        task.spawn(reactor::run(operator, stop.clone()));
        Running { stop, task, link, health }
    }

    /// Makes handlers that write down their calls, and take their time when they create.
    fn handlers(
        &self,
        operator: &'static str,
        creation: Duration,
    ) -> impl Fn(&NativeScripts, Kind) -> kopf::logic::handler::Handler + use<> {
        let (calls, start) = (Arc::clone(&self.calls), self.start);
        move |scripts, kind| {
            let calls = Arc::clone(&calls);
            let id = format!("{kind:?}").to_lowercase();
            let name = id.clone();
            let function = scripts.handler(&id, move |invocation| {
                let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
                let object = cause.current().header().name.clone().unwrap_or_default();
                let stopped = match &cause.detail {
                    ObjectDetail::Background(background) => Some(background.stopped.clone()),
                    ObjectDetail::Watch(_) | ObjectDetail::Change(_) | ObjectDetail::Index => None,
                };
                let text = format!("{operator} {name} {object}");
                let call = Call { calls: Arc::clone(&calls), text, start, is_done: false };
                call.note("");
                Box::pin(async move {
                    if let Some(stopped) = stopped {
                        stopped.wait().await;
                        call.note(" stops");
                    }
                    if kind == Kind::Create && !creation.is_zero() {
                        time::sleep(creation).await;
                        call.end();
                    } else {
                        call.forget();
                    }
                    Ended::Returned(None)
                })
            });
            declare(Declaration {
                kind,
                selectors: vec![Argument::Value("kopfexamples".into())],
                options: Vec::new(),
                function,
                location: "test:1".into(),
            })
            .expect("a declaration")
        }
    }

    /// A user creates an object.
    pub(super) fn create(&self, name: &str) {
        let object = json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": { "namespace": NAMESPACE, "name": name }, "spec": {},
        });
        self.server.create(EXAMPLES, object).expect("it is new");
    }

    /// Waits until this second.
    pub(super) async fn until(&self, second: u64) {
        time::sleep_until(self.start + Duration::from_secs(second)).await;
    }

    /// What handlers did so far, without the times.
    pub(super) fn calls(&self) -> Vec<String> {
        self.timed_calls().into_iter().map(|(_, call)| call).collect()
    }

    /// What handlers did so far.
    pub(super) fn timed_calls(&self) -> Vec<(Duration, String)> {
        self.calls.lock().clone()
    }

    /// What all operators said so far.
    pub(super) fn log(&self) -> String {
        self.log.0.lock().join("\n")
    }

    /// How often they said this.
    pub(super) fn said(&self, text: &str) -> usize {
        self.log().matches(text).count()
    }

    /// The requests of one method whose path has this part.
    pub(super) fn requests(&self, method: &str, path: &str) -> Vec<LoggedRequest> {
        let all = self.server.requests().into_iter();
        all.filter(|it| it.method == method && it.path.contains(path)).collect()
    }
}

/// A call that runs; dropped in the middle if it is cancelled.
struct Call {
    calls: Calls,
    text: String,
    start: Instant,
    is_done: bool,
}

impl Call {
    fn note(&self, what: &str) {
        let text = format!("{}{what}", self.text);
        self.calls.lock().push((self.start.elapsed(), text));
    }

    /// It has run to its end, and took its time.
    fn end(self) {
        self.note(" done");
        self.forget();
    }

    /// Its end is of no interest.
    fn forget(mut self) {
        self.is_done = true;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_done {
            self.note(" cut");
        }
    }
}

impl Running {
    /// Asks it to stop, and waits until it has.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.end().await.expect("it runs to its end");
    }

    /// Waits until it has ended.
    pub(super) async fn end(mut self) -> Result<(), reactor::Failure> {
        let ended = self.task.join_next().await.expect("one task");
        ended.expect("no panic")
    }

    /// Cuts the connection to the server, or mends it.
    pub(super) fn connect(&self, is_on: bool) {
        self.link.store(is_on, Ordering::SeqCst);
    }
}

/// A connection that can be cut: then requests hang, as packets that get lost.
#[derive(Clone)]
struct Linked {
    server: ApiServer,
    link: Arc<AtomicBool>,
}

impl Service<Request<Body>> for Linked {
    type Response = Response<ResponseBody>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut server, is_on) = (self.server.clone(), self.link.load(Ordering::SeqCst));
        Box::pin(async move {
            if !is_on {
                std::future::pending::<()>().await;
            }
            server.call(request).await
        })
    }
}

/// Takes down the lines of this thread while the guard lives.
fn capture(log: &Log) -> DefaultGuard {
    /// With one subscriber only, tracing asks that of whoever logs first, which may be another test without any.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    tracing::dispatcher::set_default(&Dispatch::new(
        tracing_subscriber::registry().with(log.clone()),
    ))
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: LayerContext<'_, S>) {
        let metadata = event.metadata();
        if metadata.target().starts_with("kopf") {
            let mut line = Line(metadata.level().to_string());
            event.record(&mut line);
            self.0.lock().push(line.0);
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, " {value:?}").expect("a string takes all");
        }
    }
}

/// The peering resource of operators of the whole cluster.
pub(super) fn cluster_peering(group: &str) -> ResourceDef {
    let mut resource = ResourceDef::new(group, "v1", "clusterkopfpeerings", "ClusterKopfPeering");
    resource.namespaced = false;
    resource
}

/// A peering object without records.
pub(super) fn peering_object(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}
