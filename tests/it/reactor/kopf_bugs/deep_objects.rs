//! Objects with deeper nesting than parsers usually accept: handled up to 1,024 levels, reported beyond that, and never read as
//! empty.

use std::sync::Arc;

use bytes::Bytes;
use kopf::{
    call::{Cause, Invocation, ObjectDetail},
    logic::{
        handlers::{
            handler::{Handler, Kind},
            outcome::CallEnd,
        },
        object::{Object, depth},
    },
    ports::BoxFuture,
    reactor::Operator,
    testing::{
        self, CallLog, EXAMPLES, Environment, Link, LogCapture, NativeScripts, RunningOperator,
        handler_of_examples, object, pass,
    },
};
use serde_json::{Value, json};

const HANDLED: &str = "kopf.zalando.org/last-handled-configuration";
/// Levels around the nested part: the object and its spec.
const ABOVE: usize = 2;

/// Returns the JSON of nested maps.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

/// Replaces `"nest":"LEVELS"` by that many levels: the embedded server does not store them.
fn deepened(text: &Bytes) -> Bytes {
    const MARK: &str = "\"nest\":\"";
    let Ok(text) = std::str::from_utf8(text) else { return text.clone() };
    let mut parts = text.split(MARK);
    let mut deep = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (levels, rest) = part.split_once('"').expect("a string");
        let levels = nested(levels.parse().expect("a number"));
        deep += &["\"nest\":", &levels, rest].concat();
    }
    deep.into()
}

/// A cluster with deep objects, and an operator that records what its handlers see.
struct Stage {
    env: Environment,
    link: Link,
    functions: NativeScripts,
    calls: CallLog,
}

impl Stage {
    fn new() -> Self {
        let env = Environment::default();
        let link = Link::new(&env.server);
        link.edit(|text| deepened(&text));
        Stage { env, link, functions: NativeScripts::default(), calls: CallLog::default() }
    }

    /// Returns a handler that records its id, the object, its depth, and its number.
    fn handler(&self, kind: Kind, id: &'static str) -> Handler {
        let calls = self.calls.clone();
        let function = self.functions.handler(id, move |invocation| {
            let object = current(&invocation);
            let levels = depth::depth(object.body().to_string().as_bytes());
            let name = object.header().name.clone().unwrap_or_default();
            let number = object.body()["spec"]["number"].clone();
            calls.add(format!("{id} {name}: {levels} levels, {number}"));
            Box::pin(async move {
                if let Cause::Object(cause) = &invocation.cause
                    && let ObjectDetail::Background(it) = &cause.detail
                {
                    it.stopped.wait().await;
                }
                CallEnd::Returned(None)
            }) as BoxFuture<'static, CallEnd>
        });
        handler_of_examples(kind, function)
    }

    fn start(&self, handlers: Vec<Handler>) -> RunningOperator {
        RunningOperator::start(Operator {
            connect: testing::connect(self.link.client("ns1")),
            ..self.env.operator(Arc::new(self.functions.clone()), handlers)
        })
    }

    fn patches_of(&self, name: &str) -> usize {
        self.env.requests("PATCH", &format!("kopfexamples/{name}")).len()
    }
}

fn current(invocation: &Invocation) -> Arc<Object> {
    let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
    cause.current()
}

fn spec(levels: usize, number: u64) -> Value {
    json!({ "spec": { "nest": levels.to_string(), "number": number } })
}

fn deep(name: &str, levels: usize) -> Value {
    let mut body = object("ns1", name);
    body["spec"] = spec(levels, 1)["spec"].clone();
    body
}

#[tokio::test(start_paused = true)]
async fn an_object_of_a_thousand_levels_is_handled_as_any_other() {
    let stage = Stage::new();
    let handlers = || {
        let kinds = [(Kind::Create, "made"), (Kind::Update, "changed"), (Kind::Delete, "gone")];
        kinds.map(|(kind, id)| stage.handler(kind, id)).into()
    };
    let running = stage.start(handlers());
    for (name, levels) in [("a", 200), ("b", 1000)] {
        stage.env.create(deep(name, levels));
        pass(10).await;
        let levels = levels + ABOVE;
        assert_eq!(stage.calls.take(), [format!("made {name}: {levels} levels, 1")]);
        let stored = &stage.env.get(EXAMPLES, &format!("ns1/{name}"))["metadata"]["annotations"];
        let stored = stored[HANDLED].as_str().expect("an essence");
        assert_eq!(depth::depth(stored.as_bytes()), levels, "all of it is remembered");
    }
    running.stop().await;
    let running = stage.start(handlers());
    pass(10).await;
    assert!(stage.calls.take().is_empty(), "nothing has changed");
    stage.env.edit(EXAMPLES, "ns1/b", spec(999, 2));
    pass(10).await;
    assert_eq!(stage.calls.take(), ["changed b: 1001 levels, 2"]);
    stage.env.delete(EXAMPLES, "ns1/b");
    pass(10).await;
    assert_eq!(stage.calls.take(), ["gone b: 1001 levels, 2"]);
    assert_eq!(stage.env.server.list(EXAMPLES).len(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_nested_too_deep_is_reported_once_per_version_and_left_alone() {
    let (stage, log) = (Stage::new(), LogCapture::of("kopf"));
    let kinds = [
        (Kind::Create, "made"),
        (Kind::Event, "seen"),
        (Kind::Daemon, "daemon"),
        (Kind::Index, "index"),
        (Kind::Delete, "gone"),
    ];
    let running = stage.start(kinds.map(|(kind, id)| stage.handler(kind, id)).into());
    pass(1).await;
    stage.env.create(deep("a", 1500));
    stage.env.create(object("ns1", "b"));
    pass(10).await;
    let calls = stage.calls.take();
    assert!(calls.iter().any(|it| it.starts_with("made b")), "others are served: {calls:?}");
    assert!(calls.iter().all(|it| it.contains(" b: ")), "{calls:?}");
    // The same version, once more.
    stage.env.server.compact();
    stage.env.server.close_watches();
    pass(60).await;
    stage.env.edit(EXAMPLES, "ns1/a", spec(1400, 2));
    pass(60).await;
    let reports = log.count(
        "The object cannot be read: it is nested 1502 levels deep; at most 1024 are supported.",
    );
    assert_eq!(reports, 1, "{}", log.text());
    assert_eq!(log.count("it is nested 1402 levels deep"), 1, "a version of its own");
    assert_eq!(stage.patches_of("a"), 0);
    stage.env.edit(EXAMPLES, "ns1/a", spec(3, 3));
    pass(60).await;
    let calls = stage.calls.take();
    for id in ["made", "seen", "daemon", "index"] {
        let call = format!("{id} a: 5 levels, 3");
        assert!(calls.contains(&call), "{call} is mended: {calls:?}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_handled_before_an_object_was_nested_too_deep_stays() {
    let stage = Stage::new();
    let kinds = [(Kind::Update, "changed"), (Kind::Daemon, "daemon"), (Kind::Delete, "gone")];
    let running = stage.start(kinds.map(|(kind, id)| stage.handler(kind, id)).into());
    stage.env.create(deep("a", 5));
    pass(60).await;
    assert_eq!(stage.calls.take(), ["daemon a: 7 levels, 1"]);
    let handled = || stage.env.get(EXAMPLES, "ns1/a")["metadata"]["annotations"][HANDLED].clone();
    let (before, patches) = (handled(), stage.patches_of("a"));
    stage.env.edit(EXAMPLES, "ns1/a", spec(1500, 2));
    pass(60).await;
    assert_eq!((handled(), stage.patches_of("a")), (before, patches));
    stage.env.delete(EXAMPLES, "ns1/a");
    pass(60).await;
    assert!(stage.calls.take().is_empty());
    stage.env.edit(EXAMPLES, "ns1/a", spec(6, 3));
    pass(60).await;
    assert_eq!(stage.calls.take(), ["gone a: 8 levels, 3"]);
    assert!(stage.env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}
