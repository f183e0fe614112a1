//! (a) An object that was deleted while the watch was down is noticed.

use std::time::Duration;

use kopf::{
    logic::{
        declare::{Argument, Marker},
        handler::Kind,
    },
    reactor::Scope,
    testing,
};
use kopf_apiserver::{ApiServer, Effect, Fault};
use serde_json::json;

use crate::cycles::{
    heard::{Listener, pass},
    watched::{EXAMPLES, object},
};

fn server() -> ApiServer {
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    for name in ["a", "b"] {
        let mut body = object("ns1", name);
        body["metadata"]["labels"] = json!({ "app": name });
        server.create(EXAMPLES, body).expect("it is new");
    }
    server
}

/// Deletes it so that no watch tells of it, and makes the watches list again.
fn delete_unseen(server: &ApiServer, name: &str) {
    server.fault(Fault::always(Effect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    server.delete(EXAMPLES, "ns1", name).expect("it is there");
    server.compact();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_went_while_nobody_looked_gets_its_deletion() {
    let server = server();
    let operator = Listener::new(Scope::Cluster).hears_events("kopfexamples").start(&server);
    pass(1).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples listed a", "kopfexamples listed b"]);
    delete_unseen(&server, "a");
    pass(1).await;
    assert_eq!(operator.heard(), [""; 0], "nobody could know");
    server.close_watches();
    pass(1).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples DELETED a", "kopfexamples listed b"]);
    server.fault(Fault::always(Effect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    server.merge(EXAMPLES, "ns1", "b", json!({ "spec": { "field": 1 } })).expect("it is there");
    server.compact();
    server.close_watches();
    pass(1).await;
    assert_eq!(operator.end().await, ["kopfexamples listed b"], "it is told once");
}

#[tokio::test(start_paused = true)]
async fn filters_by_labels_hold_for_it() {
    let server = server();
    let by_label = |it: &str| [("labels", Argument::Value(json!({ "app": it })))];
    let has_label =
        [("labels", Argument::Map(vec![("app".into(), Argument::Marker(Marker::Present))]))];
    let examples = || vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(Scope::Cluster)
        .hears(("of_a", Kind::Event), examples(), &by_label("a"), Duration::ZERO)
        .hears(("of_b", Kind::Event), examples(), &by_label("b"), Duration::ZERO)
        .hears(("of_any", Kind::Event), examples(), &has_label, Duration::ZERO)
        .start(&server);
    pass(1).await;
    operator.heard();
    delete_unseen(&server, "a");
    server.close_watches();
    pass(1).await;
    let heard = operator.heard_sorted();
    assert_eq!(heard, ["of_a DELETED a", "of_any DELETED a", "of_any listed b", "of_b listed b"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn its_daemons_stop_and_it_starts_anew_when_it_comes_back() {
    let server = server();
    let examples = vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(Scope::Cluster)
        .hears(("daemon", Kind::Daemon), examples, &[], Duration::ZERO)
        .start(&server);
    pass(5).await;
    assert_eq!(operator.heard_sorted(), ["daemon runs a", "daemon runs b"]);
    server.fault(Fault::always(Effect::LostEvent).on("", "kopfexamples?watch=true").times(1));
    server.remove(EXAMPLES, "ns1", "a").expect("it is there");
    server.compact();
    server.close_watches();
    pass(5).await;
    assert_eq!(operator.heard(), ["daemon stops a"]);
    server.clear_faults();
    server.create(EXAMPLES, object("ns1", "a")).expect("it is new");
    pass(5).await;
    assert_eq!(operator.heard(), ["daemon runs a"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_definition_that_is_gone_get_their_deletion() {
    let server = ApiServer::builder().build();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": EXAMPLES },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    server.create(definitions, definition).expect("it is new");
    server.create(EXAMPLES, object("ns1", "a")).expect("it is new");
    let operator = Listener::new(Scope::Cluster).hears_events("kopfexamples").start(&server);
    pass(1).await;
    assert_eq!(operator.heard(), ["kopfexamples listed a"]);
    server.remove(definitions, "", EXAMPLES).expect("it is there");
    pass(5).await;
    assert_eq!(operator.end().await, ["kopfexamples DELETED a"]);
}
