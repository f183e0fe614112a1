//! Discovery that is late, incomplete or wrong: served resources stay served, and missing ones are found later.

use std::time::Duration;

use kopf::{
    call::Cause,
    logic::handlers::{
        declare::Argument,
        handler::Kind,
        outcome::{CallEnd, Raised, RaisedKind},
    },
    reactor::NamespaceScope,
    settings::Settings,
    testing::{
        CallLog, EXAMPLES, Environment, LogCapture, NativeScripts, RunningOperator,
        cluster_peering, definition, examples, handler_of_examples, namespace, object, pass,
    },
};
use kopf_apiserver::{
    ApiServer, Fault, FaultEffect, ResourceDef,
    controllers::{self, Controllers},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::heard::{Listener, Listening};

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Returns a cluster with these CRDs.
fn environment(resources: &[ResourceDef]) -> Environment {
    let env = Environment::new(ApiServer::builder());
    for resource in resources {
        env.create(definition(resource));
    }
    env
}

fn refuse(env: &Environment, code: u16, path: &str) {
    let effect = FaultEffect::Refuse { code, retry_after_seconds: Some(60) };
    env.server.fault(Fault::always(effect).on("GET", path));
}

/// Hides a group from discovery, as a server that has just started does.
fn hide(env: &Environment, group: &str) {
    env.server.fault(Fault::always(FaultEffect::HiddenGroup(group.into())).on("GET", "/apis"));
}

/// Ends all watches. Those of CRDs, and others with an old version, begin with another list.
fn restart(env: &Environment) {
    env.create(namespace(&format!("restart-{}", env.server.revision())));
    env.server.compact();
    env.server.close_watches();
}

/// Returns an operator that receives events of examples, and runs a daemon for each.
fn listener() -> Listener {
    let listener = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples");
    listener.hears_examples("daemon", Kind::Daemon, Duration::ZERO)
}

/// Starts it with one object, `a`.
async fn started(env: &Environment) -> Listening {
    env.create(object("ns1", "a"));
    let operator = listener().start(env);
    pass(5).await;
    let heard = operator.heard_sorted();
    assert!(heard.contains(&"daemon runs a".to_owned()), "{heard:?}");
    assert_eq!(operator.unready(), [""; 0]);
    operator
}

/// Returns whether a handler was called because an object is gone, or a daemon must stop.
fn has_lost(heard: &[String]) -> bool {
    heard.iter().any(|it| it.contains("DELETED") || it.contains("stops"))
}

/// Checks that a new object is served.
async fn is_served(env: &Environment, operator: &Listening, name: &str) {
    env.create(object("ns1", name));
    pass(5).await;
    let heard = operator.heard();
    assert!(heard.contains(&format!("daemon runs {name}")), "{heard:?}");
}

/// Returns how many requests one after the other it takes until the first handler is called, at a server that takes a second for
/// each.
async fn round_trips(scope: NamespaceScope, settings: Settings, selector: &[&str]) -> u64 {
    let env = environment(&[examples(), cluster_peering("kopf.dev")]);
    env.create(namespace("ns1"));
    env.create(object("ns1", "a"));
    env.server.fault(Fault::always(FaultEffect::Latency(Duration::from_secs(1))));
    let selector = selector.iter().map(|&it| Argument::Value(it.into())).collect();
    let mut listener =
        Listener::new(scope).hears(("it", Kind::Event), selector, &[], Duration::ZERO);
    listener.settings = settings;
    let operator = listener.start(&env);
    let mut seconds = 0;
    while operator.heard().is_empty() {
        seconds += 1;
        assert!(seconds < 60, "no handler is called");
        env.until_moment(Duration::from_millis(seconds * 1000 + 500)).await;
    }
    operator.end().await;
    seconds
}

#[tokio::test(start_paused = true)]
async fn the_first_handler_is_called_after_two_round_trips_whatever_is_served() {
    let alone = || {
        let mut settings = Settings::default();
        settings.peering.standalone = true;
        settings
    };
    let namespaces = || NamespaceScope::Namespaces(vec!["ns*".into()]);
    for selector in [&["kopfexamples"][..], &["kopf.dev", "kopfexamples"]] {
        assert_eq!(
            round_trips(NamespaceScope::Cluster, alone(), selector).await,
            2,
            "{selector:?}"
        );
        assert_eq!(round_trips(namespaces(), alone(), selector).await, 2, "{selector:?}");
        // Other operators may have a higher priority.
        let meeting = Settings::default();
        assert_eq!(
            round_trips(NamespaceScope::Cluster, meeting, selector).await,
            3,
            "{selector:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_documents_are_read_at_the_start_and_those_of_one_group_when_it_changes() {
    let env = environment(&[examples()]);
    env.create(object("ns1", "a"));
    let operator = listener().start(&env);
    pass(5).await;
    let documents = |since: usize| {
        let is_document = |it: &String| it.split('/').count() <= 4;
        let paths = env.server.requests().into_iter().skip(since).map(|it| it.path);
        paths.filter(is_document).collect::<Vec<_>>()
    };
    assert_eq!(documents(0), ["/api", "/apis"]);
    let before = env.server.requests().len();
    env.edit(DEFINITIONS, EXAMPLES, json!({"metadata": {"labels": {"a": "b"}}}));
    pass(5).await;
    assert_eq!(documents(before), ["/apis", "/apis/kopf.dev/v1"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_discovery_hides_keeps_its_streams_and_daemons() {
    let env = environment(&[examples()]);
    let operator = started(&env).await;
    hide(&env, "kopf.dev");
    restart(&env);
    pass(4).await;
    let mut heard = operator.heard();
    env.server.clear_faults();
    pass(60).await;
    heard.extend(operator.heard());
    assert!(!has_lost(&heard), "{heard:?}");
    is_served(&env, &operator, "b").await;
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_answers_404_for_an_hour_is_red_and_served_again_afterwards() {
    let env = environment(&[examples()]);
    let operator = started(&env).await;
    refuse(&env, 404, "/apis/kopf.dev/v1");
    hide(&env, "kopf.dev");
    restart(&env);
    pass(3600).await;
    let unready = operator.unready();
    assert!(unready[0].starts_with("stream/kopfexamples.v1.kopf.dev"), "{unready:?}");
    let reads = env.requests("GET", "/apis").iter().filter(|it| it.path == "/apis").count();
    assert!((10..100).contains(&reads), "discovery is read {reads} times");
    env.server.clear_faults();
    pass(120).await;
    let heard = operator.heard();
    assert!(!has_lost(&heard), "{heard:?}");
    assert_eq!(operator.unready(), [""; 0]);
    is_served(&env, &operator, "b").await;
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_discovery_does_not_show_for_a_while_keeps_its_stream() {
    let versions = vec!["v1".to_owned(), "v2".into()];
    let env = environment(&[ResourceDef { versions, ..examples() }]);
    env.create(object("ns1", "a"));
    let selector = ["kopf.dev", "v2", "kopfexamples"].map(|it| Argument::Value(it.into()));
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears(("second", Kind::Event), selector.to_vec(), &[], Duration::ZERO)
        .start(&env);
    pass(5).await;
    assert_eq!(operator.heard(), ["second listed a"]);
    refuse(&env, 404, "/apis/kopf.dev/v2");
    restart(&env);
    pass(5).await;
    env.server.clear_faults();
    pass(60).await;
    env.create(object("ns1", "b"));
    pass(5).await;
    let heard = operator.end().await;
    assert!(!has_lost(&heard), "{heard:?}");
    assert!(heard.last().is_some_and(|it| it.ends_with(" b")), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_and_one_in_namespaces_survive_a_lag_alike() {
    let wides = ResourceDef::new("kopf.dev", "v1", "kopfwides", "KopfWide");
    let env = environment(&[examples(), ResourceDef { namespaced: false, ..wides }]);
    env.create(namespace("ns1"));
    env.create(object("ns1", "a"));
    env.create(
        json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfWide", "metadata": { "name": "w" } }),
    );
    let operator = Listener::new(NamespaceScope::Namespaces(vec!["ns*".into()]))
        .hears_events("kopfexamples")
        .hears_events("kopfwides")
        .start(&env);
    pass(5).await;
    assert_eq!(operator.heard_sorted(), ["kopfexamples listed a", "kopfwides listed w"]);
    hide(&env, "kopf.dev");
    restart(&env);
    pass(60).await;
    let heard = operator.end().await;
    assert!(!has_lost(&heard), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_crd_is_gone_only_when_discovery_has_not_shown_it_several_times() {
    let env = Environment::default();
    let operator = started(&env).await;
    hide(&env, "kopf.dev");
    restart(&env);
    pass(4).await;
    let heard = operator.heard();
    assert!(!has_lost(&heard), "it is doubtful: {heard:?}");
    env.server.clear_faults();
    pass(60).await;
    is_served(&env, &operator, "b").await;
    hide(&env, "kopf.dev");
    restart(&env);
    pass(60).await;
    let mut heard = operator.heard_sorted();
    heard.retain(|it| !it.contains("listed"));
    let gone =
        ["daemon stops a", "daemon stops b", "kopfexamples DELETED a", "kopfexamples DELETED b"];
    assert_eq!(heard, gone);
    let unready = operator.unready();
    assert!(unready[0].contains("kopfexamples"), "{unready:?}");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_was_deleted_while_nobody_watched_ends_its_streams() {
    let env = environment(&[examples()]);
    let operator = started(&env).await;
    env.server
        .fault(Fault::always(FaultEffect::LostEvent).on("", "customresourcedefinitions?watch"));
    env.server.remove(DEFINITIONS, "", EXAMPLES).expect("it is there");
    restart(&env);
    pass(60).await;
    let mut heard = operator.heard_sorted();
    heard.retain(|it| !it.contains("listed"));
    assert_eq!(heard, ["daemon stops a", "kopfexamples DELETED a"]);
    env.server.clear_faults();
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_crd_is_gone_at_once_and_red_until_it_is_created_again() {
    let env = environment(&[examples()]);
    let operator = started(&env).await;
    // Discovery still shows it, for a while.
    env.server.fault(
        Fault::always(FaultEffect::Refuse { code: 503, retry_after_seconds: None })
            .on("GET", "/apis")
            .times(3),
    );
    env.server.remove(DEFINITIONS, "", EXAMPLES).expect("it is there");
    pass(1).await;
    assert_eq!(operator.heard_sorted(), ["daemon stops a", "kopfexamples DELETED a"]);
    pass(600).await;
    let unready = operator.unready();
    assert!(unready.len() == 1 && unready[0].contains("kopfexamples"), "{unready:?}");
    env.create(definition(&examples()));
    pass(5).await;
    assert_eq!(operator.unready(), [""; 0]);
    is_served(&env, &operator, "b").await;
    operator.end().await;
}

/// Deletes the CRD and creates it again at once, with one object. The watch shows the deletion `late` seconds later, and the
/// creation another `late` seconds later. Returns the calls until then.
async fn recreated(env: &Environment, operator: &Listening, late: u64) -> Vec<String> {
    let watch = "customresourcedefinitions?watch";
    let fault = Fault::always(FaultEffect::LateEvent(Duration::from_secs(late))).on("", watch);
    env.server.fault(fault.times(2));
    env.server.remove(DEFINITIONS, "", EXAMPLES).expect("it is there");
    env.create(definition(&examples()));
    env.create(object("ns1", "b"));
    pass(3 * late + 5).await;
    operator.heard()
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_is_created_again_before_its_deletion_is_seen_keeps_its_streams() {
    for late in [0, 1, 3, 30] {
        let env = environment(&[examples()]);
        let operator = started(&env).await;
        let heard = recreated(&env, &operator, late).await;
        let runs = heard.iter().filter(|it| *it == "daemon runs b").count();
        let ends = heard
            .iter()
            .filter(|it| ["daemon stops b", "kopfexamples DELETED b"].contains(&it.as_str()));
        assert_eq!((runs, ends.count()), (1, 0), "{late}: {heard:?}");
        assert!(heard.contains(&"daemon stops a".to_owned()), "{late}: {heard:?}");
        assert_eq!(operator.unready(), [""; 0]);
        is_served(&env, &operator, "c").await;
        operator.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_deletion_of_a_crd_is_believed_if_crds_cannot_be_listed() {
    let env = environment(&[examples()]);
    let operator = started(&env).await;
    env.server.fault(
        Fault::always(FaultEffect::Refuse { code: 403, retry_after_seconds: None })
            .on("GET", "/customresourcedefinitions"),
    );
    let heard = recreated(&env, &operator, 3).await;
    assert!(heard.contains(&"kopfexamples DELETED b".to_owned()), "{heard:?}");
    env.server.clear_faults();
    pass(60).await;
    is_served(&env, &operator, "c").await;
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_never_had_a_resource_is_not_red() {
    let env = environment(&[]);
    let operator = listener().start(&env);
    pass(60).await;
    assert_eq!(operator.unready(), [""; 0]);
    operator.end().await;
}

/// Starts an operator; a CRD is created between its first discovery and its first list of CRDs.
async fn with_crd_during_the_start(env: &Environment) -> Listening {
    let slow = Fault::always(FaultEffect::Latency(Duration::from_secs(2)));
    env.server.fault(slow.on("GET", "/customresourcedefinitions").times(1));
    let operator = listener().start(env);
    pass(1).await;
    env.create(definition(&examples()));
    operator
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_is_applied_during_the_start_is_served() {
    let env = environment(&[]);
    let operator = with_crd_during_the_start(&env).await;
    pass(10).await;
    is_served(&env, &operator, "a").await;
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_discovery_shows_late_is_waited_for_and_red_meanwhile() {
    let env = environment(&[]);
    let operator = with_crd_during_the_start(&env).await;
    hide(&env, "kopf.dev");
    pass(300).await;
    let unready = operator.unready();
    assert!(unready.len() == 1 && unready[0].contains(EXAMPLES), "{unready:?}");
    env.server.clear_faults();
    pass(120).await;
    assert_eq!(operator.unready(), [""; 0]);
    is_served(&env, &operator, "a").await;
    operator.end().await;
}

/// Runs an operator whose deletion handler fails its first attempt. Returns the lines of successful calls.
fn start_deleting(env: &Environment, calls: &CallLog) -> RunningOperator {
    let (scripts, calls) = (NativeScripts::default(), calls.clone());
    let delete = scripts.handler("delete_fn", move |invocation| {
        let Cause::Object(cause) = &invocation.cause else { panic!("an object") };
        let name = cause.object.header().name.clone().unwrap_or_default();
        let is_first = invocation.attempt.as_ref().is_some_and(|it| it.retry == 0);
        if !is_first {
            calls.add(name);
        }
        Box::pin(async move {
            if is_first {
                let kind = RaisedKind::Temporary(Some(Duration::from_secs(1)));
                return CallEnd::Raised(Raised { kind, message: "not yet".into(), trace: None });
            }
            CallEnd::Returned(None)
        })
    });
    let handlers = vec![handler_of_examples(Kind::Delete, delete)];
    RunningOperator::start(env.operator(std::sync::Arc::new(scripts), handlers))
}

/// Returns a cluster of 30 objects, whose CRDs are deleted with their objects.
async fn with_thirty_objects(calls: &CallLog) -> (Environment, RunningOperator, JoinSet<()>) {
    let env = environment(&[examples()]);
    let mut tasks = JoinSet::new();
    tasks.spawn(controllers::run(env.server.clone(), Controllers::ALL));
    for number in 0..30 {
        env.create(object("default", &format!("o{number}")));
    }
    let operator = start_deleting(&env, calls);
    pass(10).await;
    let held = |it: &serde_json::Value| it["metadata"]["finalizers"].is_array();
    assert_eq!(env.server.list(EXAMPLES).iter().filter(|it| held(it)).count(), 30);
    (env, operator, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_deleted_with_its_objects_even_if_their_handlers_need_several_attempts() {
    let calls = CallLog::default();
    let (env, operator, _tasks) = with_thirty_objects(&calls).await;
    let log = LogCapture::of("kopf.");
    env.server.delete(DEFINITIONS, "", EXAMPLES).expect("it is there");
    pass(60).await;
    assert_eq!(env.server.list(EXAMPLES).len(), 0, "{}", log.text());
    assert!(env.server.get(DEFINITIONS, "", EXAMPLES).is_none());
    assert_eq!(calls.lines().len(), 30);
    assert!(!log.has("will not be served"), "{}", log.text());
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_during_the_deletion_of_a_crd_finishes_it() {
    let calls = CallLog::default();
    let (env, operator, _tasks) = with_thirty_objects(&calls).await;
    operator.stop().await;
    env.server.delete(DEFINITIONS, "", EXAMPLES).expect("it is there");
    pass(5).await;
    assert_eq!(env.server.list(EXAMPLES).len(), 30);
    let operator = start_deleting(&env, &calls);
    pass(60).await;
    assert_eq!((env.server.list(EXAMPLES).len(), calls.lines().len()), (0, 30));
    assert!(env.server.get(DEFINITIONS, "", EXAMPLES).is_none());
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_group_holds_up_nothing_and_is_red_until_it_answers() {
    for stuck in [false, true] {
        let ghosts = ResourceDef::new("dead.dev", "v1", "ghosts", "Ghost");
        let env = environment(&[examples()]);
        let operator = {
            env.create(definition(&ghosts));
            env.create(object("ns1", "a"));
            let mut listener = listener().hears_events("ghosts");
            // As by default: attempts would take a minute.
            listener.settings.networking.error_backoffs = vec![Duration::from_secs(10); 6];
            let path = "/apis/dead.dev/v1";
            if stuck {
                let effect = FaultEffect::Latency(Duration::from_hours(2));
                env.server.fault(Fault::always(effect).on("GET", path));
            } else {
                refuse(&env, 503, path);
            }
            listener.start(&env)
        };
        pass(if stuck { 15 } else { 1 }).await;
        let heard = operator.heard();
        assert!(heard.contains(&"daemon runs a".into()), "{heard:?}");
        is_served(&env, &operator, "b").await;
        pass(600).await;
        let unready = operator.unready();
        assert!(unready.len() == 1 && unready[0].contains("dead.dev"), "{unready:?}");
        let reads = env.requests("GET", "/apis/dead.dev").len();
        // Aborted requests are not logged.
        assert!(stuck || (5..60).contains(&reads), "the group is read {reads} times");
        env.server.clear_faults();
        pass(90).await;
        assert_eq!(operator.unready(), [""; 0]);
        env.create(json!({
            "apiVersion": "dead.dev/v1", "kind": "Ghost", "metadata": { "namespace": "ns1", "name": "g" },
        }));
        pass(5).await;
        let heard = operator.end().await;
        assert!(heard.contains(&"ghosts ADDED g".into()), "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn crds_and_namespaces_are_watched_although_their_groups_failed_at_the_start() {
    let env = environment(&[]);
    env.create(namespace("ns1"));
    for path in ["/apis/apiextensions.k8s.io/v1", "/api/v1"] {
        let effect = FaultEffect::Refuse { code: 503, retry_after_seconds: None };
        env.server.fault(Fault::always(effect).on("GET", path).times(2));
    }
    let operator = Listener::new(NamespaceScope::Namespaces(vec!["ns*".into()]))
        .hears_events("kopfexamples")
        .start(&env);
    pass(120).await;
    env.create(definition(&examples()));
    env.create(object("ns1", "a"));
    pass(10).await;
    assert_eq!(operator.end().await, ["kopfexamples listed a"]);
}
