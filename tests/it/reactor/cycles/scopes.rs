//! The scope: resources by the results of discovery, namespaces by their patterns and their life, with restricted permissions.

use std::time::Duration;

use kopf::{
    logic::handlers::{
        declare::{Argument, Marker},
        handler::{Callback, Kind},
        outcome::{Raised, RaisedKind},
    },
    reactor::NamespaceScope,
    settings::Settings,
    testing::{self, EXAMPLES, Environment, Link, LogCapture, examples, namespace, object, pass},
};
use kopf_apiserver::{ApiServer, Builder, Fault, FaultEffect, ResourceDef};
use serde_json::{Value, json};

use super::{heard::Listener, script::Script};

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

fn environment(resources: Vec<ResourceDef>) -> Environment {
    Environment::new(resources.into_iter().fold(ApiServer::builder(), Builder::resource))
}

fn namespaces(patterns: &[&str]) -> NamespaceScope {
    NamespaceScope::Namespaces(patterns.iter().map(|&it| it.into()).collect())
}

/// Returns the watches whose path contains this part.
fn watches(env: &Environment, part: &str) -> usize {
    let requests = env.server.requests();
    requests.iter().filter(|it| it.path.contains(part) && it.query.contains("watch=true")).count()
}

/// Returns the CRD of this group's `kopfexamples`.
fn definition(group: &str) -> Value {
    testing::definition(&ResourceDef::new(group, "v1", "kopfexamples", "KopfExample"))
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_served_until_nothing_in_it_blocks_its_end() {
    let env = environment(vec![examples()]);
    let held = json!({ "name": "ns1", "finalizers": ["kopf.dev/test"] });
    let held = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": held });
    env.create(held);
    let log = LogCapture::of("kopf.discovery");
    let operator = Listener::new(namespaces(&["ns*"])).hears_events("kopfexamples").start(&env);
    pass(1).await;
    let ending = |status: &str| {
        json!({
            "status": { "conditions": [
                { "type": "X", "status": status, "reason": "SomeLeft", "message": "one is left" },
            ] },
        })
    };
    env.delete("namespaces", "ns1");
    env.edit("namespaces", "ns1", ending("True"));
    pass(1).await;
    env.create(object("ns1", "a"));
    pass(1).await;
    assert_eq!(operator.heard(), ["kopfexamples ADDED a"]);
    let pending = "Namespace 'ns1' termination pending: SomeLeft: one is left";
    assert!(log.has(pending), "{:?} {:?}", log.lines(), env.server.list("namespaces"));
    env.edit("namespaces", "ns1", ending("False"));
    pass(1).await;
    assert_eq!(operator.heard(), ["kopfexamples DELETED a"], "with its namespace, it is gone");
    env.create(object("ns1", "b"));
    pass(1).await;
    assert_eq!(operator.end().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_list_namespaces_exact_names_are_served_at_once() {
    let env = environment(vec![examples()]);
    env.create(namespace("ns1"));
    env.create(object("ns1", "a"));
    for path in ["/api/v1/namespaces", "/customresourcedefinitions"] {
        env.refuse(403, "GET", path);
    }
    // As with Kubernetes' own defaults: attempts would take a minute.
    let mut listener = Listener::new(namespaces(&["ns1", "ns2", "other-*"]));
    listener.settings.networking.error_backoffs = vec![Duration::from_secs(10); 6];
    let log = LogCapture::of("kopf.discovery");
    let operator = listener.hears_events("kopfexamples").start(&env);
    pass(1).await;
    assert_eq!(operator.heard(), ["kopfexamples listed a"]);
    assert_eq!(watches(&env, "/namespaces/ns2/kopfexamples"), 1, "it may come");
    pass(3600).await;
    let told = log.lines().into_iter().map(|it| it.message).collect::<Vec<_>>();
    assert_eq!(
        told,
        [
            "Not enough permissions to list namespaces. Falling back to a list of namespaces which are assumed to \
             exist: {'ns1', 'ns2'}",
            "Not enough permissions to watch for resources: changes (creation/deletion/updates) will not be noticed; \
             the resources are only refreshed on operator restarts.",
        ],
        "each once"
    );
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn rights_that_come_later_are_noticed_without_a_restart() {
    let env = environment(vec![examples()]);
    env.refuse(403, "GET", "/api/v1/namespaces");
    let operator = Listener::new(namespaces(&["ns*"])).hears_events("kopfexamples").start(&env);
    pass(10).await;
    env.create(namespace("ns1"));
    env.create(object("ns1", "a"));
    env.server.clear_faults();
    pass(900).await;
    assert_eq!(operator.end().await, ["kopfexamples listed a"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_went_while_nobody_looked_is_let_go() {
    let env = environment(vec![examples()]);
    env.create(namespace("ns1"));
    env.create(object("ns1", "a"));
    let operator = Listener::new(namespaces(&["ns1"])).hears_events("kopfexamples").start(&env);
    pass(1).await;
    operator.heard();
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "/namespaces?watch=true").times(1));
    env.server.remove("namespaces", "", "ns1").expect("it is there");
    env.server.compact();
    env.server.close_watches();
    pass(5).await;
    env.create(object("ns1", "b"));
    pass(5).await;
    let heard = operator.end().await;
    assert!(!heard.contains(&"kopfexamples ADDED b".to_owned()), "{heard:?}");
    assert!(heard.contains(&"kopfexamples DELETED a".to_owned()), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn with_its_namespace_or_its_handlers_an_object_loses_its_daemons() {
    let env = environment(Vec::new());
    let categories = vec!["mine".into()];
    env.create(testing::definition(&ResourceDef { categories, ..examples() }));
    for place in ["ns1", "ns2"] {
        env.create(namespace(place));
        env.create(object(place, &format!("in-{place}")));
    }
    let mine = [("category", Argument::Value("mine".into()))];
    let operator = Listener::new(namespaces(&["ns*"]))
        .hears(("daemon", Kind::Daemon), Vec::new(), &mine, Duration::ZERO)
        .start(&env);
    pass(5).await;
    assert_eq!(operator.heard_sorted(), ["daemon runs in-ns1", "daemon runs in-ns2"]);
    env.server.remove("namespaces", "", "ns1").expect("it is there");
    pass(5).await;
    assert_eq!(operator.heard(), ["daemon stops in-ns1"]);
    let none = json!({ "spec": { "names": { "categories": [] } } });
    env.edit(DEFINITIONS, EXAMPLES, none);
    pass(5).await;
    assert_eq!(operator.end().await, ["daemon stops in-ns2"]);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_no_namespace_is_served_once_there_is_one_to_serve() {
    let mut cluster_scoped = ResourceDef::new("kopf.dev", "v1", "kopfwides", "KopfWide");
    cluster_scoped.namespaced = false;
    let env = environment(vec![cluster_scoped]);
    let wide =
        json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfWide", "metadata": { "name": "w" } });
    env.create(wide);
    let operator = Listener::new(namespaces(&["ns*"])).hears_events("kopfwides").start(&env);
    pass(1).await;
    assert_eq!(operator.heard(), [""; 0]);
    for name in ["ns1", "ns2"] {
        env.create(namespace(name));
        pass(1).await;
    }
    assert_eq!(operator.heard(), ["kopfwides listed w"], "one stream, however many namespaces");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn with_scanning_off_exact_names_are_served_and_nothing_is_looked_for() {
    let env = environment(vec![examples()]);
    env.create(object("ns1", "a"));
    let mut listener = Listener::new(namespaces(&["ns1", "app-*"])).hears_events("kopfexamples");
    listener.settings.scanning.disabled = true;
    let operator = listener.start(&env);
    pass(60).await;
    assert_eq!(operator.end().await, ["kopfexamples listed a"]);
    let looked = |part: &str| env.server.requests().iter().any(|it| it.path.ends_with(part));
    assert!(!looked("/namespaces") && !looked("/customresourcedefinitions"));
}

#[tokio::test(start_paused = true)]
async fn a_dead_api_group_costs_its_own_resources_until_it_answers() {
    let env = environment(vec![examples(), ResourceDef::new("dead.dev", "v1", "ghosts", "Ghost")]);
    env.create(json!({
        "apiVersion": "dead.dev/v1", "kind": "Ghost", "metadata": { "namespace": "ns1", "name": "g" },
    }));
    env.create(object("ns1", "a"));
    env.refuse(503, "GET", "/apis/dead.dev/v1");
    let log = LogCapture::of("kopf.discovery");
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_events("kopfexamples")
        .hears_events("ghosts")
        .start(&env);
    pass(3600).await;
    assert_eq!(operator.heard(), ["kopfexamples listed a"]);
    assert_eq!(
        log.count("Cannot discover the resources of API group 'dead.dev'"),
        1,
        "{:?}",
        log.lines()
    );
    assert_eq!(log.count("The cluster has no resource for"), 1, "{:?}", log.lines());
    env.server.clear_faults();
    pass(600).await;
    assert_eq!(operator.end().await, ["ghosts listed g"]);
    assert_eq!(log.count("'dead.dev' responds again"), 1);
}

#[tokio::test(start_paused = true)]
async fn only_the_groups_that_are_named_are_read_and_after_a_change_only_its_own() {
    let env = environment(vec![ResourceDef::new("other.dev", "v1", "others", "Other")]);
    env.create(definition("kopf.dev"));
    let selector =
        |group: &str| vec![Argument::Value(group.into()), Argument::Value("kopfexamples".into())];
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears(("one", Kind::Event), selector("kopf.dev"), &[], Duration::ZERO)
        .hears(("two", Kind::Event), selector("more.dev"), &[], Duration::ZERO)
        .start(&env);
    pass(5).await;
    let reads = |path: &str| env.server.requests().iter().filter(|it| it.path == path).count();
    assert_eq!((reads("/apis/kopf.dev/v1"), reads("/apis/other.dev/v1")), (0, 0));
    env.create(definition("more.dev"));
    pass(60).await;
    assert!((1..=2).contains(&reads("/apis/more.dev/v1")), "{}", reads("/apis/more.dev/v1"));
    assert_eq!((reads("/apis/kopf.dev/v1"), reads("/apis/other.dev/v1")), (0, 0));
    assert_eq!(watches(&env, "/apis/more.dev/v1/kopfexamples"), 1);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_becomes_ambiguous_is_not_served_whatever_happens_next() {
    let env = environment(Vec::new());
    env.create(definition("a.dev"));
    let log = LogCapture::of("kopf.discovery");
    let operator = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples").start(&env);
    pass(5).await;
    assert_eq!(watches(&env, "/a.dev/v1/kopfexamples"), 1);
    env.create(definition("b.dev"));
    pass(5).await;
    // In the reference, the one whose CRD was changed becomes the served one.
    for group in ["a.dev", "b.dev"] {
        let touched = json!({ "metadata": { "annotations": { "touched": "yes" } } });
        let name = format!("kopfexamples.{group}");
        env.edit(DEFINITIONS, &name, touched);
        pass(5).await;
    }
    for group in ["a.dev", "b.dev"] {
        let mut object = object("ns1", group);
        object["apiVersion"] = format!("{group}/v1").into();
        env.create(object);
    }
    pass(5).await;
    assert_eq!(operator.heard(), [""; 0]);
    let told = "Ambiguous resources will not be served";
    let told = log.lines().iter().filter(|it| it.message.starts_with(told)).count();
    assert_eq!(told, 1, "{:?}", log.lines());
    env.server.remove(DEFINITIONS, "", "kopfexamples.a.dev").expect("it is there");
    pass(5).await;
    assert_eq!(operator.end().await, ["kopfexamples listed b.dev"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_gets_other_names_is_served_by_those_who_want_them() {
    let env = environment(Vec::new());
    env.create(definition("kopf.dev"));
    env.create(object("ns1", "a"));
    let category = [("category", Argument::Value("mine".into()))];
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_events("kopfexamples")
        .hears(("mine", Kind::Event), Vec::new(), &category, Duration::ZERO)
        .start(&env);
    pass(5).await;
    assert_eq!(operator.heard(), ["kopfexamples listed a"]);
    let categories = |all: Value| json!({ "spec": { "names": { "categories": all } } });
    env.edit(DEFINITIONS, EXAMPLES, categories(json!(["mine"])));
    pass(5).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples listed a", "mine listed a"]);
    env.edit(DEFINITIONS, EXAMPLES, categories(json!([])));
    pass(5).await;
    assert_eq!(operator.end().await, ["kopfexamples listed a"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_means_the_core_group_for_watching_and_for_handling() {
    let metrics = ResourceDef::new("metrics.k8s.io", "v1", "pods", "PodMetrics");
    let env = environment(vec![metrics]);
    let metrics = vec![Argument::Value("metrics.k8s.io".into()), Argument::Value("pods".into())];
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_events("pods")
        .hears(("metrics", Kind::Event), metrics, &[], Duration::ZERO)
        .start(&env);
    pass(1).await;
    env.create(json!({
        "apiVersion": "metrics.k8s.io/v1", "kind": "PodMetrics",
        "metadata": { "namespace": "ns1", "name": "m" },
    }));
    pass(1).await;
    assert_eq!(operator.end().await, ["metrics ADDED m"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_the_cluster_are_served_only_when_they_are_named() {
    for (selector, times) in [
        (vec![Argument::Marker(Marker::Everything)], 0),
        (vec![Argument::Value("v1".into()), Argument::Value("events".into())], 1),
    ] {
        let env = environment(vec![examples()]);
        let operator = Listener::new(NamespaceScope::Cluster)
            .hears(("any", Kind::Event), selector, &[], Duration::ZERO)
            .start(&env);
        pass(1).await;
        assert_eq!(watches(&env, "/api/v1/events"), times);
        operator.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn functions_choose_among_all_resources_and_are_asked_once_for_each() {
    let env = environment(vec![examples(), ResourceDef::new("other.dev", "v1", "others", "Other")]);
    env.create(object("ns1", "a"));
    let asked = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&asked);
    let listener = Listener::new(NamespaceScope::Cluster);
    let function = listener.scripts.choice("choose", move |resource| {
        seen.lock().push(resource.to_string());
        if resource.group == "other.dev" {
            let kind = RaisedKind::Permanent;
            return Err(Raised { kind, message: "no idea".into(), trace: None });
        }
        Ok(resource.group == "kopf.dev")
    });
    let selector = vec![Argument::Callback(Callback::Function(function))];
    let log = LogCapture::of("kopf.discovery");
    let operator =
        listener.hears(("chosen", Kind::Event), selector, &[], Duration::ZERO).start(&env);
    pass(1).await;
    env.create(definition("new.dev"));
    pass(30).await;
    assert_eq!(operator.end().await, ["chosen listed a"]);
    let mut asked = asked.lock().clone();
    let times = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(times, asked.len(), "each once");
    assert!(asked.contains(&"kopfexamples.v1.new.dev".to_owned()));
    let told = "The resource selector choose failed for others.v1.other.dev, which it does not select: no idea";
    assert!(log.has(told), "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn server_side_selectors_are_sent_with_lists_and_watches_also_for_what_the_operator_needs() {
    let env = environment(vec![examples()]);
    env.create(namespace("ns1"));
    let mut listener = Listener::new(namespaces(&["ns*"])).hears_events("kopfexamples");
    let watching = &mut listener.settings.watching;
    watching.label_selectors.insert("*".into(), "b=1".into());
    watching.label_selectors.insert("kopf.dev/v1/kopfexamples".into(), "a=1".into());
    watching.field_selectors.insert("kex/y/z/w".into(), "x=1".into());
    let log = LogCapture::of("kopf.discovery");
    let operator = listener.start(&env);
    pass(1).await;
    operator.end().await;
    let asked = |part: &str| {
        let requests = env.server.requests();
        requests
            .iter()
            .filter(|it| it.path.ends_with(part))
            .map(|it| it.query.clone())
            .collect::<Vec<_>>()
    };
    assert!(asked("/v1/namespaces").iter().all(|it| it.contains("labelSelector=b%3D1")));
    assert!(
        asked("/customresourcedefinitions").iter().all(|it| it.contains("labelSelector=b%3D1"))
    );
    assert!(
        log.has("settings.watching.field_selectors: \"kex/y/z/w\" is ignored"),
        "{:?}",
        log.lines()
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_counts_as_deleted_and_keeps_its_finalizer() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Event, "seen"), script.quiet(Kind::Delete, "gone")];
    let mut settings = Settings::default();
    settings.watching.label_selectors.insert("kopfexamples".into(), "a=1".into());
    let running = script.start(&env, (&Link::new(&env.server), handlers), settings);
    let mut selected = object("ns1", "a");
    selected["metadata"]["labels"] = json!({ "a": "1" });
    env.create(selected);
    pass(10).await;
    env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "labels": null } }));
    pass(10).await;
    assert_eq!(script.count("seen DELETED a"), 1, "{:?}", script.calls.lines());
    env.delete(EXAMPLES, "ns1/a");
    pass(60).await;
    assert_eq!(
        env.get(EXAMPLES, "ns1/a")["metadata"]["finalizers"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(script.count("gone a"), 0);
    env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "labels": { "a": "1" } } }));
    pass(10).await;
    assert_eq!(script.count("gone a"), 1, "{:?}", script.calls.lines());
    assert!(env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}
