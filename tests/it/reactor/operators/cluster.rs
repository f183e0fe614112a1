//! The cluster of several operators, the calls of their handlers, and the logs of all of them.

use std::{ops::Deref, sync::Arc, time::Duration};

pub(super) use kopf::testing::{EXAMPLES, cluster_peering};
use kopf::{
    call::{Cause, Invocation},
    logic::handlers::{
        declare::Argument,
        handler::{Handler, Kind},
        outcome::CallEnd,
    },
    reactor::{NamespaceScope, Operator, OperatorFailure},
    settings::Settings,
    testing::{
        self, CallLog, Environment, Fate, Link, LogCapture, NativeScripts, RunningOperator,
        declared, object,
    },
};
use kopf_apiserver::{ApiServer, Builder, ResourceDef};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

/// The namespace of the objects.
pub(super) const NAMESPACE: &str = "ns1";

/// A cluster, on which operators start.
pub(super) struct Cluster {
    env: Environment,
    /// The calls of handlers: `operator handler object`, in order.
    pub(super) calls: CallLog,
    log: LogCapture,
}

/// The options in which an operator differs from others.
pub(super) struct Plan {
    pub(super) name: &'static str,
    /// Unique for each process.
    pub(super) identity: String,
    pub(super) scope: NamespaceScope,
    pub(super) settings: Settings,
    /// The durations of the creation handler and of the clean-up handler.
    pub(super) creation: Duration,
    /// The kinds of its handlers.
    pub(super) kinds: Vec<Kind>,
}

/// A running operator. Dropping it is a `kill -9`.
pub(super) struct Member {
    pub(super) running: RunningOperator,
    link: Link,
}

impl Plan {
    /// Returns an operator of the whole cluster with a creation handler.
    pub(super) fn new(name: &'static str) -> Self {
        let mut settings = Settings::default();
        settings.networking.error_backoffs = vec![Duration::from_secs(1)];
        Plan {
            name,
            identity: name.to_owned(),
            scope: NamespaceScope::Cluster,
            settings,
            creation: Duration::ZERO,
            kinds: vec![Kind::Create],
        }
    }

    /// Sets the priority.
    pub(super) fn priority(mut self, priority: i64) -> Self {
        self.settings.peering.priority = priority;
        self
    }

    /// Makes it one of several replicas.
    pub(super) fn replica(mut self) -> Self {
        self.settings.leadership.enabled = true;
        self
    }

    /// Sets the kinds of its handlers.
    pub(super) fn with(mut self, kinds: &[Kind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }
}

impl Deref for Cluster {
    type Target = Environment;

    fn deref(&self) -> &Environment {
        &self.env
    }
}

impl Cluster {
    /// Creates a cluster with these resources in addition to the examples.
    pub(super) fn new(resources: impl IntoIterator<Item = ResourceDef>) -> Self {
        let builder = ApiServer::builder().resource(testing::examples());
        let env = Environment::new(resources.into_iter().fold(builder, Builder::resource));
        Cluster { env, calls: CallLog::default(), log: LogCapture::of("kopf") }
    }

    /// Starts an operator.
    pub(super) fn start(&self, plan: Plan) -> Member {
        let Plan { name, identity, scope, mut settings, creation, kinds } = plan;
        settings.peering.clusterwide = matches!(scope, NamespaceScope::Cluster);
        let scripts = NativeScripts::default();
        let handlers = kinds.iter().map(|kind| self.handler(&scripts, *kind, name, creation));
        let operator = self.env.operator(Arc::new(scripts.clone()), handlers.collect());
        let link = Link::new(&self.server);
        let running = RunningOperator::start(Operator {
            settings: Arc::new(Mutex::new(settings)),
            scope,
            connect: testing::connect(link.client("ops")),
            identity: testing::identity(&identity),
            ..operator
        });
        Member { running, link }
    }

    /// Returns a handler that logs its calls, and takes some time when it creates.
    fn handler(
        &self,
        scripts: &NativeScripts,
        kind: Kind,
        operator: &'static str,
        creation: Duration,
    ) -> Handler {
        let (calls, id) = (self.calls.clone(), format!("{kind:?}").to_lowercase());
        let name = id.clone();
        let function = scripts.handler(&id, move |invocation| {
            let call = format!("{operator} {name} {}", object_name(&invocation));
            let calls = calls.clone();
            calls.add(&call);
            let cut = calls.add_on_drop(format!("{call} cut"));
            Box::pin(async move {
                if let Some(background) = invocation.background() {
                    background.stopped.wait().await;
                    calls.add(format!("{call} stops"));
                }
                if matches!(kind, Kind::Create | Kind::Cleanup) && !creation.is_zero() {
                    time::sleep(creation).await;
                    calls.add(format!("{call} done"));
                }
                cut.disarm();
                CallEnd::Returned(None)
            })
        });
        if kind == Kind::Cleanup {
            return declared(kind, Vec::new(), Vec::new(), function);
        }
        let interval = || ("interval".to_owned(), Argument::Value(1.into()));
        let options = Vec::from_iter((kind == Kind::Timer).then(interval));
        declared(kind, vec![Argument::Value("kopfexamples".into())], options, function)
    }

    /// Creates an object as a user.
    pub(super) fn create(&self, name: &str) {
        self.env.create(object(NAMESPACE, name));
    }

    /// Returns the calls of handlers so far, without the times.
    pub(super) fn calls(&self) -> Vec<String> {
        self.calls.lines()
    }

    /// Returns the logs of all operators so far.
    pub(super) fn log(&self) -> String {
        self.log.text()
    }

    /// Returns how often they logged this.
    pub(super) fn said(&self, text: &str) -> usize {
        self.log().matches(text).count()
    }
}

fn object_name(invocation: &Invocation) -> String {
    let Cause::Object(cause) = &invocation.cause else { return "-".into() };
    cause.current().header().name.clone().unwrap_or_default()
}

impl Member {
    /// Requests a stop, and waits for the end.
    pub(super) async fn stop(self) {
        self.running.stop().await;
    }

    /// Waits until it has ended.
    pub(super) async fn end(self) -> Result<(), OperatorFailure> {
        self.running.end().await
    }

    /// Sets an effect on the requests of this method whose path contains this part.
    pub(super) fn set(&self, method: &'static str, part: &'static str, fate: Fate) {
        self.link.set_rule(move |request| {
            let is_meant = request.method() == method && request.uri().path().contains(part);
            if is_meant { fate } else { Fate::Pass }
        });
    }

    /// Delays each line of its watches by this time.
    pub(super) fn lag(&self, lag: Duration) {
        self.link.lag(lag);
    }

    /// Interrupts the connection to the server, or restores it: requests hang, as when packets get lost.
    pub(super) fn connect(&self, is_on: bool) {
        self.link.set(if is_on { Fate::Pass } else { Fate::Hang });
    }
}

/// Returns a peering object without records.
pub(super) fn peering_object(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}
