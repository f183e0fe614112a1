//! The cluster of a test, its clock, and the actions of its users.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kopf_apiserver::{ApiServer, Builder, Fault, FaultEffect, LoggedRequest};
use serde_json::Value;
use tokio::time::{self, Instant};

use super::{client, examples, operator};
use crate::call::Scripts;
use crate::logic::{change::registry::Registry, handlers::handler::Handler};
use crate::ports::Clock;
use crate::reactor::Operator;
use crate::scripting::{ScriptHost, Source, Terms};

/// The wall clock at the start of an [`Environment`].
pub const BASE: &str = "2026-01-01T00:00:00Z";

/// An embedded API server and a clock, for any number of operators. Clones share the server.
#[derive(Clone)]
pub struct Environment {
    /// The server. Use it for faults, and for objects that the methods below cannot name.
    pub server: ApiServer,
    /// The clock of the server and of all operators: [`BASE`] at the start, then as tokio's time.
    pub clock: Clock,
    /// The start, in tokio's time.
    pub start: Instant,
}

impl Default for Environment {
    fn default() -> Self {
        Environment::new(ApiServer::builder().resource(examples()))
    }
}

impl Environment {
    /// Starts a server with a virtual clock. [`Environment::default`] serves [`examples`].
    pub fn new(builder: Builder) -> Self {
        Environment::with_clock(builder, Clock::starting_at(BASE.parse().expect("a timestamp")))
    }

    /// Starts a server with another clock, such as the system's.
    pub fn with_clock(builder: Builder, clock: Clock) -> Self {
        let server = builder.clock(move || to_the_second(clock.now())).build();
        Environment { server, clock, start: Instant::now() }
    }

    /// Returns an operator of the whole cluster with these handlers and the default settings.
    pub fn operator(&self, scripts: Arc<dyn Scripts>, handlers: Vec<Handler>) -> Operator {
        let registry = Registry::new(handlers).expect("ids are unique");
        Operator { clock: self.clock, ..operator(scripts, registry, client(&self.server)) }
    }

    /// Loads scripts that share the clock. Panics with all errors if they cannot be loaded.
    pub async fn load(
        &self,
        sources: Vec<Source>,
        terms: impl Into<Terms>,
    ) -> (Arc<ScriptHost>, Vec<Handler>) {
        let terms = Terms { clock: self.clock, ..terms.into() };
        let (host, handlers) = ScriptHost::load(sources, terms).await.unwrap_or_else(|errors| {
            panic!("{}", errors.iter().map(ToString::to_string).collect::<String>())
        });
        (Arc::new(host), handlers)
    }

    /// Waits until this many seconds after the start.
    pub async fn until(&self, second: u64) {
        self.until_moment(Duration::from_secs(second)).await;
    }

    /// Waits until this time after the start.
    pub async fn until_moment(&self, moment: Duration) {
        time::sleep_until(self.start + moment).await;
    }

    /// Creates an object as a user. The server must serve its kind, and the object must not exist.
    #[track_caller]
    pub fn create(&self, object: Value) -> Value {
        let resource = self.resource_of(&object);
        self.server.create(&resource, object).expect("the object is new")
    }

    /// Creates objects as a user.
    #[track_caller]
    pub fn create_all(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.create(object);
        }
    }

    /// Merges a patch into an object as a user. The object must exist. `place` is `NAMESPACE/NAME`, or a name for cluster-scoped
    /// objects.
    #[track_caller]
    pub fn edit(&self, resource: &str, place: &str, merge: Value) -> Value {
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        self.server.merge(resource, namespace, name, merge).expect("the object exists")
    }

    /// Deletes an object as a user. The object must exist. `place` as in [`Environment::edit`].
    #[track_caller]
    pub fn delete(&self, resource: &str, place: &str) {
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        self.server.delete(resource, namespace, name).expect("the object exists");
    }

    /// Returns an object, which must exist. `place` as in [`Environment::edit`].
    #[track_caller]
    pub fn get(&self, resource: &str, place: &str) -> Value {
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        self.server.get(resource, namespace, name).expect("the object exists")
    }

    /// Rejects later requests of this method whose path contains this part. An empty method matches all.
    pub fn refuse(&self, code: u16, method: &str, part: &str) {
        let effect = FaultEffect::Refuse { code, retry_after_seconds: None };
        self.server.fault(Fault::always(effect).on(method, part));
    }

    /// Returns the requests of this method whose `PATH?QUERY` contains this part. An empty method matches all.
    pub fn requests(&self, method: &str, part: &str) -> Vec<LoggedRequest> {
        let is_meant = |it: &LoggedRequest| {
            (method.is_empty() || it.method == method)
                && format!("{}?{}", it.path, it.query).contains(part)
        };
        self.server.requests().into_iter().filter(is_meant).collect()
    }

    /// Returns the name of the resource that serves this object.
    #[track_caller]
    pub fn resource_of(&self, object: &Value) -> String {
        let field = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) =
            field("apiVersion").split_once('/').unwrap_or(("", field("apiVersion")));
        let mut all = self.server.resources().into_iter();
        let found = all.find(|it| {
            it.group == group
                && it.kind == field("kind")
                && it.versions.iter().any(|it| it == version)
        });
        found.unwrap_or_else(|| panic!("no resource for {object}")).qualified()
    }
}

/// Formats a time as the API server does.
fn to_the_second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
