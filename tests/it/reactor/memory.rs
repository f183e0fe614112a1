//! The memory that an operator keeps for its objects, counted to the byte: for thousands of objects, it is multiplied by thousands.
//!
//! The server uses the same heap, so the test does not count the total, but the bytes that the end of the operator frees.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::Invocation,
    heap,
    logic::handlers::{
        declare::Argument,
        handler::{Handler, Kind},
        outcome::CallEnd,
    },
    scripting::{Placement, Source},
    testing::{Environment, NativeScripts, RunningOperator, declared, pass},
};
use serde_json::{Value, json};
use tokio::task::LocalSet;

/// Enough for gaps in maps and lists to even out.
const OBJECTS: isize = 500;

/// Returns the bytes that an operator with handlers of these kinds keeps for each object at rest.
async fn kept(kinds: &[Kind]) -> isize {
    let (empty, full) = (held(kinds, 0).await, held(kinds, OBJECTS).await);
    (full - empty) / OBJECTS
}

async fn held(kinds: &[Kind], objects: isize) -> isize {
    held_in(Environment::default(), kinds, objects).await
}

async fn held_in(env: Environment, kinds: &[Kind], objects: isize) -> isize {
    env.create_all((0..objects).map(object));
    let scripts = NativeScripts::default();
    let handlers = kinds.iter().map(|kind| handler(*kind, &scripts)).collect();
    let running = RunningOperator::start(env.operator(Arc::new(scripts), handlers));
    pass(100).await;
    let held = heap::held();
    running.stop().await;
    held - heap::held()
}

fn handler(kind: Kind, scripts: &NativeScripts) -> Handler {
    let function = if kind == Kind::Daemon {
        scripts.handler("daemon_fn", |it| {
            let stopped = it.background().map(|it| it.stopped.clone());
            Box::pin(async move {
                let _kept = it;
                stopped.unwrap_or_default().wait().await;
                CallEnd::Returned(None)
            })
        })
    } else if kind == Kind::Reconcile {
        scripts.handler("reconcile_fn", |it| {
            let children = children_of(&it);
            Box::pin(async { CallEnd::Returned(Some(children)) })
        })
    } else {
        scripts.handler("other_fn", |_| Box::pin(async { CallEnd::Returned(None) }))
    };
    let interval = ("interval".to_owned(), Argument::Value(600.into()));
    let owns = ("owns".to_owned(), Argument::Value("configmaps".into()));
    let timer = (kind == Kind::Timer).then_some(interval);
    let options = timer.into_iter().chain((kind == Kind::Reconcile).then_some(owns)).collect();
    declared(kind, vec![Argument::Value("kopfexamples".into())], options, function)
}

/// Returns the result of a reconcile handler: one child, and a status.
fn children_of(invocation: &Invocation) -> Value {
    let live = invocation.background().expect("a reconcile handler").live.get();
    let name = live.header().name.clone().expect("a name");
    let data = json!({ "image": "example.com/image:1", "name": name });
    let child = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data });
    json!({ "children": [child], "status": { "children": 1 } })
}

fn object(number: isize) -> Value {
    let metadata = json!({ "name": format!("object-{number}"), "namespace": "default" });
    let spec = json!({ "field": "value", "number": number, "text": "x".repeat(200) });
    json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": spec })
}

#[tokio::test(start_paused = true)]
async fn what_waits_takes_little() {
    let seen = kept(&[Kind::Event]).await;
    // Its key, its entry in two maps, and among its flags the version that the operator's last request created.
    assert!(seen <= 272, "an object that was seen: {seen} bytes");
    let timed = kept(&[Kind::Timer]).await - seen;
    assert!(timed <= 768, "an object with a timer that rests: {timed} bytes more");
    let both = kept(&[Kind::Daemon, Kind::Timer]).await - seen - timed;
    // A call of a reconcile handler has its children: one pointer in each call.
    assert!(both <= 816, "a daemon that waits beside it: {both} bytes more");
}

/// Returns the bytes in small long-lived blocks of an operator with a waiting daemon in Lua for each object.
async fn lasting(objects: isize) -> isize {
    let env = Environment::default();
    env.create_all((0..objects).map(object));
    let text = "kopf.daemon('kopfexamples', function(ctx) ctx.stopped:wait() end)";
    let source = Source::alone("daemon.lua", text);
    let (scripts, handlers) = env.load(vec![source], Placement::CurrentRuntime).await;
    let running = RunningOperator::start(env.operator(scripts, handlers));
    pass(100).await;
    let lasting = heap::held_lasting();
    running.stop().await;
    lasting - heap::held_lasting()
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_apart_from_what_does_not() {
    LocalSet::new()
        .run_until(async {
            let each = (lasting(OBJECTS).await - lasting(0).await) / OBJECTS;
            // All that is kept for the object, the daemon, its request and its call. Without the channel of the request, 80 bytes are missing.
            assert!(
                each >= 1_200,
                "only {each} bytes of a waiting daemon are in long-lived blocks"
            );
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_and_its_child_take_little() {
    let both = kept(&[Kind::Reconcile]).await;
    // The child is compressed, and its known state is a list; as JSON and as a map, it took 5,500 bytes.
    assert!(both <= 3_200, "a parent with one child: {both} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_waits_for_its_turn_takes_little() {
    let none = waiting(0).await;
    let each = (waiting(OBJECTS).await - none) / OBJECTS;
    // After the start, all parents wait at once. The future of a call alone has 5,200 bytes; a waiting one has 500.
    assert!(each <= 3_000, "a parent that waits: {each} bytes");
}

/// Returns the bytes of parents while the first of them are being called.
async fn waiting(objects: isize) -> isize {
    let env = Environment::default();
    env.create_all((0..objects).map(object));
    let scripts = NativeScripts::default();
    let function = scripts.handler("reconcile_fn", |_| Box::pin(std::future::pending()));
    let owns = ("owns".to_owned(), Argument::Value("configmaps".into()));
    let selector = vec![Argument::Value("kopfexamples".into())];
    let handler = declared(Kind::Reconcile, selector, vec![owns], function);
    let running = RunningOperator::start(env.operator(Arc::new(scripts), vec![handler]));
    // Shorter than the time until the next ones are called.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let held = heap::held();
    running.stop().await;
    held - heap::held()
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_ends_gives_all_back() {
    let before = heap::held();
    held(&[Kind::Daemon, Kind::Timer], OBJECTS).await;
    // The task that closes the connections to the server runs later.
    pass(1).await;
    let left = heap::held() - before;
    // Includes what a thread keeps from its first use on; the smallest allocation for each object would be twice as much as this.
    assert!(left < 16 * OBJECTS, "{left} bytes of {OBJECTS} objects");
}
