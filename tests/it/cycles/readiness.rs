//! Handlers wait until all objects are indexed, and for nothing else.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    logic::{
        declare::{Argument, Declaration, declare},
        handler::{Callback, Handler, Kind},
        outcome::{Ended, Raised, RaisedKind},
        registry::Registry,
    },
    ports::{Cause, Health, HealthState, Invocation},
    reactor::{self, Operator},
    settings::Settings,
    testing::{self, NativeScripts},
};
use kopf_apiserver::{ApiServer, Effect, Fault};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::watched::{EXAMPLES, object};
use crate::cluster::record_logs;

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// An operator that indexes objects by their kind, and whose other handlers tell what they see.
struct Indexed {
    scripts: NativeScripts,
    handlers: Vec<Handler>,
    settings: Settings,
    seen: Arc<Mutex<Vec<String>>>,
}

/// It runs.
struct Running {
    seen: Arc<Mutex<Vec<String>>>,
    health: Health,
    stop: CancellationToken,
    task: JoinSet<()>,
}

fn object_of(invocation: &Invocation) -> (String, String) {
    let Cause::Object(cause) = &invocation.cause else { panic!("it is about an object") };
    let name = cause.object.header().name.clone().unwrap_or_default();
    (cause.resource.plural.clone(), name)
}

impl Indexed {
    /// Indexes these resources.
    fn new(resources: &[&str]) -> Self {
        let mut operator = Indexed {
            scripts: NativeScripts::default(),
            handlers: Vec::new(),
            settings: Settings::default(),
            seen: Arc::default(),
        };
        for resource in resources {
            operator = operator.indexing(resource, Vec::new());
        }
        operator
    }

    fn indexing(mut self, resource: &str, options: Vec<(String, Argument)>) -> Self {
        let function = self.scripts.handler("kinds", |invocation| {
            let (kind, name) = object_of(&invocation);
            Box::pin(async move { Ended::Returned(Some(json!({ kind: name }))) })
        });
        self.declare(Kind::Index, resource, function, options);
        self
    }

    /// Adds a handler that tells the name of its object and the sizes of the index.
    fn telling(mut self, kind: Kind, resource: &str) -> Self {
        let seen = Arc::clone(&self.seen);
        let function = self.scripts.handler("told", move |invocation| {
            let (_, name) = object_of(&invocation);
            let index = invocation.facilities.indexes.get("kinds").expect("the index");
            let sizes: Vec<_> = index
                .keys()
                .filter_map(|key| Some(format!("{} {}", index.get(&key)?.len(), key.to_name())))
                .collect();
            let line = format!("{name}: {}", sizes.join(", "));
            seen.lock().push(line);
            Box::pin(async { Ended::Returned(None) })
        });
        self.declare(kind, resource, function, Vec::new());
        self
    }

    fn declare(
        &mut self,
        kind: Kind,
        resource: &str,
        function: kopf::logic::function::Function,
        options: Vec<(String, Argument)>,
    ) {
        let declaration = Declaration {
            kind,
            selectors: vec![Argument::Value(resource.into())],
            options,
            function,
            location: "test:1".into(),
        };
        self.handlers.push(declare(declaration).expect("a declaration"));
    }

    fn start(self, server: &ApiServer) -> Running {
        let client = testing::client(server);
        let health = Health::default();
        let registry = Registry::new(self.handlers).expect("no clash");
        let operator = Operator {
            settings: Arc::new(Mutex::new(self.settings)),
            health: health.clone(),
            ..testing::operator(Arc::new(self.scripts), registry, client)
        };
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("it runs") });
        Running { seen: self.seen, health, stop, task }
    }
}

impl Running {
    fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    fn state(&self) -> (HealthState, String) {
        let part = self.health.parts().remove("indexes").expect("the part of the indexes");
        (part.state, part.text)
    }

    async fn end(mut self) -> Vec<String> {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.seen()
    }
}

fn server(examples: &[&str], configmaps: &[&str]) -> ApiServer {
    let resource = testing::examples();
    let server = ApiServer::builder().resource(resource).build();
    for name in examples {
        server.create(EXAMPLES, object("ns1", name)).expect("it is new");
    }
    for name in configmaps {
        server.create("configmaps", configmap(name)).expect("it is new");
    }
    server
}

fn configmap(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "ns1", "name": name, "uid": format!("cm-{name}") },
    })
}

async fn seconds(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}

fn refused(path: &str) -> Fault {
    Fault::always(Effect::Refuse { code: 403, retry_after_seconds: None }).on("GET", path)
}

#[tokio::test(start_paused = true)]
async fn the_first_handler_sees_all_even_with_fewer_places_than_objects() {
    let server = server(&["a", "b", "c"], &["x", "y"]);
    let mut operator =
        Indexed::new(&["kopfexamples", "configmaps"]).telling(Kind::Create, "kopfexamples");
    operator.settings.queueing.worker_limit = Some(1);
    let running = operator.start(&server);
    seconds(60).await;
    let mut seen = running.end().await;
    seen.sort();
    let all = |name: &str| format!("{name}: 3 kopfexamples, 2 configmaps");
    let other = |name: &str| format!("{name}: 2 configmaps, 3 kopfexamples");
    assert_eq!(seen.len(), 3);
    for (line, name) in seen.iter().zip(["a", "b", "c"]) {
        assert!(*line == all(name) || *line == other(name), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_not_indexed_wait_as_well() {
    let server = server(&["a"], &["x"]);
    server.fault(Fault::always(Effect::Latency(Duration::from_secs(5))).on("GET", "/configmaps"));
    let running = Indexed::new(&["configmaps"]).telling(Kind::Event, "kopfexamples").start(&server);
    seconds(4).await;
    assert!(running.seen().is_empty());
    seconds(4).await;
    assert_eq!(running.end().await, ["a: 1 configmaps"]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_holds_handlers_back_and_everybody_is_told() {
    let (log, _guard) = record_logs("kopf.indexing");
    let server = server(&["a"], &["x"]);
    server.fault(refused("/configmaps"));
    let operator = Indexed::new(&["kopfexamples", "configmaps"]);
    let running = operator.telling(Kind::Create, "kopfexamples").start(&server);
    seconds(9).await;
    assert_eq!(log.lines().len(), 0);
    let (state, text) = running.state();
    assert_eq!(state, HealthState::Unready);
    assert!(text.contains("configmaps.v1 is not listed yet"), "{text}");
    seconds(50).await;
    assert!(log.has("The indexes are not complete after 10 seconds: configmaps.v1 is not listed"));
    assert_eq!((log.lines().len(), running.seen().len()), (1, 0));
    server.clear_faults();
    seconds(300).await;
    assert_eq!(running.state(), (HealthState::Ready, "complete".into()));
    assert_eq!(running.end().await, ["a: 1 kopfexamples, 1 configmaps"]);
    assert_eq!(log.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_found_later_holds_only_its_own_objects_back() {
    let server = server(&["a"], &[]);
    server.fault(refused("/widgets"));
    let operator = Indexed::new(&["kopfexamples", "widgets"]);
    let operator = operator.telling(Kind::Create, "kopfexamples").telling(Kind::Create, "widgets");
    let running = operator.start(&server);
    seconds(5).await;
    assert_eq!(running.seen(), ["a: 1 kopfexamples"]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.kopf.dev" },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    server.create(DEFINITIONS, definition).expect("it is new");
    let mut widget = object("ns1", "w");
    widget["kind"] = "Widget".into();
    server.create("widgets.kopf.dev", widget).expect("it is new");
    seconds(5).await;
    server.create(EXAMPLES, object("ns1", "b")).expect("it is new");
    seconds(5).await;
    assert_eq!(running.seen(), ["a: 1 kopfexamples", "b: 2 kopfexamples"]);
    let (state, text) = running.state();
    assert_eq!(state, HealthState::Ready);
    assert!(text.contains("widgets.v1.kopf.dev is not listed yet"), "{text}");
    server.clear_faults();
    seconds(300).await;
    assert_eq!(running.end().await.last().expect("a call"), "w: 2 kopfexamples, 1 widgets");
}

#[tokio::test(start_paused = true)]
async fn the_end_is_not_waited_for() {
    let server = server(&["a"], &["x"]);
    server.fault(refused("/configmaps"));
    let operator = Indexed::new(&["kopfexamples", "configmaps"]);
    let running = operator.telling(Kind::Create, "kopfexamples").start(&server);
    seconds(20).await;
    let before = Instant::now();
    assert!(running.end().await.is_empty(), "no handler begins at the end");
    assert!(before.elapsed() < Duration::from_secs(1));
}

/// An operator that indexes all examples but one, whose filter raises so many times.
fn stumbling(times: usize) -> Indexed {
    let operator = Indexed::new(&[]);
    let left = Mutex::new(times);
    let filter = operator.scripts.filter("filter", move |invocation, _| {
        let mut left = left.lock();
        if object_of(invocation).1 != "bad" || *left == 0 {
            return Ok(true);
        }
        *left -= 1;
        let kind = RaisedKind::Arbitrary("Error".into());
        Err(Raised { kind, message: "no".into(), trace: None })
    });
    let when = Argument::Callback(Callback::Function(filter));
    operator.indexing("kopfexamples", vec![("when".into(), when)])
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_indexed_keeps_nobody_waiting() {
    let server = server(&["bad", "good"], &[]);
    let running = stumbling(usize::MAX).telling(Kind::Create, "kopfexamples").start(&server);
    seconds(30).await;
    assert_eq!(running.end().await, ["good: 1 kopfexamples"]);
}

#[tokio::test(start_paused = true)]
async fn raw_events_are_seen_after_their_object_is_indexed_in_the_end() {
    let server = server(&["bad"], &[]);
    let running = stumbling(2).telling(Kind::Event, "kopfexamples").start(&server);
    seconds(30).await;
    assert_eq!(running.end().await, ["bad: 1 kopfexamples"]);
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_looked_is_in_no_index_and_not_remembered() {
    let server = server(&["a", "b"], &[]);
    let running =
        Indexed::new(&["kopfexamples"]).telling(Kind::Event, "kopfexamples").start(&server);
    seconds(1).await;
    let known = || {
        let samples = running.health.metrics().samples();
        samples.into_iter().find(|it| it.0 == "kopf_objects_known").map(|it| it.2)
    };
    assert_eq!(known(), Some(2));
    server.fault(Fault::always(Effect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    server.remove(EXAMPLES, "ns1", "a").expect("it is there");
    server.compact();
    server.close_watches();
    seconds(5).await;
    assert_eq!(known(), Some(1), "its memory has gone with it");
    let mut seen = running.end().await.split_off(2);
    seen.sort();
    // Of the two at one moment, either may be first.
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0], "a: 1 kopfexamples", "its deletion is told when its values are gone");
}
