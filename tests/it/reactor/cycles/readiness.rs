//! Handlers wait until all objects are indexed, and for nothing else.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    call::{Cause, Invocation},
    logic::handlers::{
        declare::Argument,
        function::Function,
        handler::{Callback, Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    reactor::Operator,
    settings::Settings,
    telemetry::HealthState,
    testing::{
        CallLog, EXAMPLES, Environment, LogCapture, NativeScripts, RunningOperator, declared,
        definition, object, pass,
    },
};
use kopf_apiserver::{Fault, FaultEffect, ResourceDef};
use serde_json::{Value, json};
use tokio::time::Instant;

/// An operator that indexes objects by their kind, and whose other handlers log what they see.
struct Indexed {
    scripts: NativeScripts,
    handlers: Vec<Handler>,
    settings: Settings,
    seen: CallLog,
}

/// The operator while it runs.
struct Indexing {
    seen: CallLog,
    running: RunningOperator,
}

fn object_of(invocation: &Invocation) -> (String, String) {
    let Cause::Object(cause) = &invocation.cause else { panic!("it is about an object") };
    let name = cause.object.header().name.clone().unwrap_or_default();
    (cause.resource.plural.clone(), name)
}

impl Indexed {
    /// Creates an operator that indexes these resources.
    fn new(resources: &[&str]) -> Self {
        let mut operator = Indexed {
            scripts: NativeScripts::default(),
            handlers: Vec::new(),
            settings: Settings::default(),
            seen: CallLog::default(),
        };
        for resource in resources {
            operator = operator.indexing(resource, Vec::new());
        }
        operator
    }

    fn indexing(mut self, resource: &str, options: Vec<(String, Argument)>) -> Self {
        let function = self.scripts.handler("kinds", |invocation| {
            let (kind, name) = object_of(&invocation);
            Box::pin(async move { CallEnd::Returned(Some(json!({ kind: name }))) })
        });
        self.declare(Kind::Index, resource, function, options);
        self
    }

    /// Adds a handler that logs the name of its object and the sizes of the index.
    fn telling(mut self, kind: Kind, resource: &str) -> Self {
        let seen = self.seen.clone();
        let function = self.scripts.handler("told", move |invocation| {
            let (_, name) = object_of(&invocation);
            let index = invocation.services.indexes.get("kinds").expect("the index");
            let sizes: Vec<_> = index
                .keys()
                .filter_map(|key| Some(format!("{} {}", index.get(&key)?.len(), key.to_name())))
                .collect();
            seen.add(format!("{name}: {}", sizes.join(", ")));
            Box::pin(async { CallEnd::Returned(None) })
        });
        self.declare(kind, resource, function, Vec::new());
        self
    }

    fn declare(
        &mut self,
        kind: Kind,
        resource: &str,
        function: Function,
        options: Vec<(String, Argument)>,
    ) {
        let selectors = vec![Argument::Value(resource.into())];
        self.handlers.push(declared(kind, selectors, options, function));
    }

    fn start(self, env: &Environment) -> Indexing {
        let operator = Operator {
            settings: Arc::new(Mutex::new(self.settings)),
            ..env.operator(Arc::new(self.scripts), self.handlers)
        };
        Indexing { seen: self.seen, running: RunningOperator::start(operator) }
    }
}

impl Indexing {
    fn seen(&self) -> Vec<String> {
        self.seen.lines()
    }

    fn state(&self) -> (HealthState, String) {
        let part = self.running.health.parts().remove("indexes").expect("the part of the indexes");
        (part.state, part.text)
    }

    async fn end(self) -> Vec<String> {
        self.running.stop().await;
        self.seen.lines()
    }
}

fn environment(examples: &[&str], configmaps: &[&str]) -> Environment {
    let env = Environment::default();
    env.create_all(examples.iter().map(|name| object("ns1", name)));
    env.create_all(configmaps.iter().map(|name| configmap(name)));
    env
}

fn configmap(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "ns1", "name": name, "uid": format!("cm-{name}") },
    })
}

#[tokio::test(start_paused = true)]
async fn the_first_handler_sees_all_even_with_fewer_places_than_objects() {
    let env = environment(&["a", "b", "c"], &["x", "y"]);
    let mut operator =
        Indexed::new(&["kopfexamples", "configmaps"]).telling(Kind::Create, "kopfexamples");
    operator.settings.queueing.worker_limit = Some(1);
    let operator = operator.start(&env);
    pass(60).await;
    let mut seen = operator.end().await;
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
    let env = environment(&["a"], &["x"]);
    env.server.fault(
        Fault::always(FaultEffect::Latency(Duration::from_secs(5))).on("GET", "/configmaps"),
    );
    let operator = Indexed::new(&["configmaps"]).telling(Kind::Event, "kopfexamples").start(&env);
    pass(4).await;
    assert!(operator.seen().is_empty());
    pass(4).await;
    assert_eq!(operator.end().await, ["a: 1 configmaps"]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_holds_handlers_back_and_everybody_is_told() {
    let log = LogCapture::of("kopf.indexes");
    let env = environment(&["a"], &["x"]);
    env.refuse(403, "GET", "/configmaps");
    let operator = Indexed::new(&["kopfexamples", "configmaps"]);
    let operator = operator.telling(Kind::Create, "kopfexamples").start(&env);
    pass(9).await;
    assert_eq!(log.lines().len(), 0);
    let (state, text) = operator.state();
    assert_eq!(state, HealthState::Unready);
    assert!(text.contains("configmaps.v1 is not listed yet"), "{text}");
    pass(50).await;
    assert!(log.has("The indexes are not complete after 10 s: configmaps.v1 is not listed"));
    assert_eq!((log.lines().len(), operator.seen().len()), (1, 0));
    env.server.clear_faults();
    pass(300).await;
    assert_eq!(operator.state(), (HealthState::Ready, "complete".into()));
    assert_eq!(operator.end().await, ["a: 1 kopfexamples, 1 configmaps"]);
    assert_eq!(log.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_found_later_holds_only_its_own_objects_back() {
    let env = environment(&["a"], &[]);
    env.refuse(403, "GET", "/widgets");
    let operator = Indexed::new(&["kopfexamples", "widgets"]);
    let operator = operator.telling(Kind::Create, "kopfexamples").telling(Kind::Create, "widgets");
    let operator = operator.start(&env);
    pass(5).await;
    assert_eq!(operator.seen(), ["a: 1 kopfexamples"]);
    env.create(definition(&ResourceDef::new("kopf.dev", "v1", "widgets", "Widget")));
    let mut widget = object("ns1", "w");
    widget["kind"] = "Widget".into();
    env.create(widget);
    pass(5).await;
    env.create(object("ns1", "b"));
    pass(5).await;
    assert_eq!(operator.seen(), ["a: 1 kopfexamples", "b: 2 kopfexamples"]);
    let (state, text) = operator.state();
    assert_eq!(state, HealthState::Ready);
    assert!(text.contains("widgets.v1.kopf.dev is not listed yet"), "{text}");
    env.server.clear_faults();
    pass(300).await;
    assert_eq!(operator.end().await.last().expect("a call"), "w: 2 kopfexamples, 1 widgets");
}

#[tokio::test(start_paused = true)]
async fn the_end_is_not_waited_for() {
    let env = environment(&["a"], &["x"]);
    env.refuse(403, "GET", "/configmaps");
    let operator = Indexed::new(&["kopfexamples", "configmaps"]);
    let operator = operator.telling(Kind::Create, "kopfexamples").start(&env);
    pass(20).await;
    let before = Instant::now();
    assert!(operator.end().await.is_empty(), "no handler begins at the end");
    assert!(before.elapsed() < Duration::from_secs(1));
}

/// Returns an operator that indexes all examples but one, whose filter fails `times` times.
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
    let env = environment(&["bad", "good"], &[]);
    let operator = stumbling(usize::MAX).telling(Kind::Create, "kopfexamples").start(&env);
    pass(30).await;
    let mut seen = operator.end().await;
    seen.sort();
    assert_eq!(seen, ["bad: 1 kopfexamples", "good: 1 kopfexamples"], "it is in no index");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_index_filter_fails_is_served_and_is_indexed_when_the_filter_works() {
    let env = environment(&["bad"], &[]);
    let operator = stumbling(2).telling(Kind::Event, "kopfexamples").start(&env);
    pass(30).await;
    env.create(object("ns1", "b"));
    pass(1).await;
    assert_eq!(operator.end().await, ["bad: ", "b: 2 kopfexamples"]);
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_looked_is_in_no_index_and_not_remembered() {
    let env = environment(&["a", "b"], &[]);
    let operator = Indexed::new(&["kopfexamples"]).telling(Kind::Event, "kopfexamples").start(&env);
    pass(1).await;
    let known = || {
        let samples = operator.running.health.metrics().samples();
        samples.into_iter().find(|it| it.0 == "kopf_objects_known").map(|it| it.2)
    };
    assert_eq!(known(), Some(2));
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    env.server.remove(EXAMPLES, "ns1", "a").expect("it is there");
    env.server.compact();
    env.server.close_watches();
    pass(5).await;
    assert_eq!(known(), Some(1), "its memory has gone with it");
    let mut seen = operator.end().await.split_off(2);
    seen.sort();
    // Two calls at the same time have no order.
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0], "a: 1 kopfexamples", "its deletion is told when its values are gone");
}
