//! (g) A foreign finalizer or annotation is never touched; two operators on one resource do not undo each other's changes.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::NamespaceScope,
    testing::{EXAMPLES, Environment, object},
};
use serde_json::{Value, json};
use tokio::time;

use crate::reactor::cycles::heard::{Listener, Listening};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Starts an operator with a handler of each of these kinds.
fn start(env: &Environment, kinds: &[Kind]) -> Listening {
    let hears = |it: Listener, kind: &Kind| it.hears_examples("fn", *kind, Duration::ZERO);
    kinds.iter().fold(Listener::new(NamespaceScope::Cluster), hears).start(env)
}

fn patches(env: &Environment) -> usize {
    env.server.requests().iter().filter(|it| it.method == "PATCH").count()
}

fn finalizers(env: &Environment) -> Value {
    env.server.get(EXAMPLES, "ns", "a").expect("it is there")["metadata"]["finalizers"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_another_operator_needs_is_left_to_it() {
    let env = Environment::default();
    let needs = start(&env, &[Kind::Delete]);
    let does_not = start(&env, &[Kind::Create]);
    time::sleep(Duration::from_secs(1)).await;
    env.create(object("ns", "a"));
    time::sleep(Duration::from_mins(10)).await;
    assert_eq!(finalizers(&env), json!([FINALIZER]));
    let settled = patches(&env);
    assert!(settled < 15, "{settled} patches");
    time::sleep(Duration::from_hours(1)).await;
    assert_eq!(patches(&env), settled, "nobody fights");
    env.delete(EXAMPLES, "ns/a");
    time::sleep(Duration::from_mins(1)).await;
    assert!(env.server.get(EXAMPLES, "ns", "a").is_none(), "it is gone");
    assert_eq!(needs.end_with_names().await, ["a"], "the deletion was handled, once");
    assert_eq!(does_not.end_with_names().await, ["a"], "the creation was handled, once");
}

#[tokio::test(start_paused = true)]
async fn what_others_put_on_an_object_stays_as_it_is() {
    let env = Environment::default();
    let mut other = object("ns", "a");
    other["metadata"]["finalizers"] = json!(["example.com/other"]);
    other["metadata"]["annotations"] =
        json!({ "other.example.com/progress": "x", "kopf.dev/mine": "y" });
    env.create(other.clone());
    let operator = start(&env, &[Kind::Create, Kind::Delete]);
    time::sleep(Duration::from_mins(1)).await;
    assert_eq!(finalizers(&env), json!(["example.com/other", FINALIZER]));
    env.delete(EXAMPLES, "ns/a");
    time::sleep(Duration::from_mins(1)).await;
    let left = env.server.get(EXAMPLES, "ns", "a").expect("the other still holds it");
    assert_eq!(left["metadata"]["finalizers"], json!(["example.com/other"]));
    for (name, value) in other["metadata"]["annotations"].as_object().expect("a map") {
        assert_eq!(left["metadata"]["annotations"][name], *value, "{name}");
    }
    assert_eq!(operator.end_with_names().await, ["a", "a"]);
}

/// A user applies an older manifest, with the finalizer that the operator has removed since then.
#[tokio::test(start_paused = true)]
async fn a_finalizer_that_a_user_applies_again_does_not_hold_up_a_deletion_for_ever() {
    let env = Environment::default();
    let operator = start(&env, &[Kind::Create]);
    for round in 0..3 {
        let mut body = object("ns", "a");
        body["metadata"]["finalizers"] = json!([FINALIZER]);
        env.create(body);
        time::sleep(Duration::from_secs(10)).await;
        assert_eq!(finalizers(&env), Value::Null, "it is ours, and nobody needs it");
        env.edit(EXAMPLES, "ns/a", json!({ "metadata": { "finalizers": [FINALIZER] } }));
        time::sleep(Duration::from_mins(10)).await;
        assert_eq!(finalizers(&env), json!([FINALIZER]), "it may be of another operator");
        env.delete(EXAMPLES, "ns/a");
        time::sleep(Duration::from_secs(20)).await;
        assert_eq!(finalizers(&env), json!([FINALIZER]), "that operator has some time");
        time::sleep(Duration::from_secs(40)).await;
        assert!(env.server.get(EXAMPLES, "ns", "a").is_none(), "round {round}: it is gone");
    }
    assert_eq!(operator.end_with_names().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_another_operator_is_busy_with_is_left_to_it() {
    let env = Environment::default();
    let takes = Duration::from_mins(5);
    let needs = Listener::new(NamespaceScope::Cluster)
        .hears_examples("first", Kind::Delete, Duration::ZERO)
        .hears_examples("second", Kind::Delete, takes)
        .start(&env);
    let does_not = start(&env, &[Kind::Create]);
    time::sleep(Duration::from_secs(1)).await;
    env.create(object("ns", "a"));
    time::sleep(Duration::from_mins(1)).await;
    env.delete(EXAMPLES, "ns/a");
    time::sleep(Duration::from_mins(4)).await;
    assert_eq!(finalizers(&env), json!([FINALIZER]), "its second handler still runs");
    time::sleep(Duration::from_mins(2)).await;
    assert!(env.server.get(EXAMPLES, "ns", "a").is_none(), "it is gone");
    assert_eq!(needs.end_with_names().await, ["a", "a"]);
    does_not.end_with_names().await;
}
