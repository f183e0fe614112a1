//! (a) An object that was deleted while the watch was down is detected.

use std::time::Duration;

use kopf::{
    logic::handlers::{
        declare::{Argument, Marker},
        handler::Kind,
    },
    reactor::NamespaceScope,
    testing::{EXAMPLES, Environment, definition, examples, object, pass},
};
use kopf_apiserver::{ApiServer, Fault, FaultEffect};
use serde_json::json;

use crate::reactor::cycles::heard::Listener;

fn environment() -> Environment {
    let env = Environment::default();
    for name in ["a", "b"] {
        let mut body = object("ns1", name);
        body["metadata"]["labels"] = json!({ "app": name });
        env.create(body);
    }
    env
}

/// Deletes an object without an event of a watch, and makes the watches list again.
fn delete_unseen(env: &Environment, name: &str) {
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    env.delete(EXAMPLES, &format!("ns1/{name}"));
    env.server.compact();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_went_while_nobody_looked_gets_its_deletion() {
    let env = environment();
    let operator = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples").start(&env);
    pass(1).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples listed a", "kopfexamples listed b"]);
    delete_unseen(&env, "a");
    pass(1).await;
    assert_eq!(operator.heard(), [""; 0], "nobody could know");
    env.server.close_watches();
    pass(1).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples DELETED a", "kopfexamples listed b"]);
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    env.edit(EXAMPLES, "ns1/b", json!({ "spec": { "field": 1 } }));
    env.server.compact();
    env.server.close_watches();
    pass(1).await;
    assert_eq!(operator.end().await, ["kopfexamples listed b"], "it is told once");
}

#[tokio::test(start_paused = true)]
async fn filters_by_labels_hold_for_it() {
    let env = environment();
    let by_label = |it: &str| [("labels", Argument::Value(json!({ "app": it })))];
    let has_label =
        [("labels", Argument::Map(vec![("app".into(), Argument::Marker(Marker::Present))]))];
    let examples = || vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears(("of_a", Kind::Event), examples(), &by_label("a"), Duration::ZERO)
        .hears(("of_b", Kind::Event), examples(), &by_label("b"), Duration::ZERO)
        .hears(("of_any", Kind::Event), examples(), &has_label, Duration::ZERO)
        .start(&env);
    pass(1).await;
    operator.heard();
    delete_unseen(&env, "a");
    env.server.close_watches();
    pass(1).await;
    let heard = operator.heard_sorted();
    assert_eq!(heard, ["of_a DELETED a", "of_any DELETED a", "of_any listed b", "of_b listed b"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn its_daemons_stop_and_it_starts_anew_when_it_comes_back() {
    let env = environment();
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_examples("daemon", Kind::Daemon, Duration::ZERO)
        .start(&env);
    pass(5).await;
    assert_eq!(operator.heard_sorted(), ["daemon runs a", "daemon runs b"]);
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    env.server.remove(EXAMPLES, "ns1", "a").expect("it is there");
    env.server.compact();
    env.server.close_watches();
    pass(5).await;
    assert_eq!(operator.heard(), ["daemon stops a"]);
    env.server.clear_faults();
    env.create(object("ns1", "a"));
    pass(5).await;
    assert_eq!(operator.heard(), ["daemon runs a"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_definition_that_is_gone_get_their_deletion() {
    let env = Environment::new(ApiServer::builder());
    env.create(definition(&examples()));
    env.create(object("ns1", "a"));
    let operator = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples").start(&env);
    pass(1).await;
    assert_eq!(operator.heard(), ["kopfexamples listed a"]);
    env.server
        .remove("customresourcedefinitions.apiextensions.k8s.io", "", EXAMPLES)
        .expect("it is there");
    pass(5).await;
    assert_eq!(operator.end().await, ["kopfexamples DELETED a"]);
}
