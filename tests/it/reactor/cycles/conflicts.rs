//! The requests of a cycle: conflicts, lost responses, older views, and responses that are not about the object.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kopf::{
    call::Invocation,
    logic::{
        change::{patch::Transformation, registry::Registry},
        handlers::{
            handler::Kind,
            outcome::{CallEnd, Raised, RaisedKind},
        },
    },
    settings::Settings,
    testing::{EXAMPLES, Environment, Fate, Link, object, pass},
};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::{Value, json};
use tokio::time;

use super::script::{Script, impatient, name, patch, statuses, with_status};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
const HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_finalizer_does_not_lose_the_creation() {
    let (env, script) = (Environment::default(), Script::default());
    env.server.fault(Fault::always(FaultEffect::TimeoutAfterwards).on("PATCH", "").times(1));
    let handlers = vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Delete, "gone")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(60).await;
    assert_eq!(script.calls.lines(), ["made a"]);
    env.delete(EXAMPLES, "ns1/a");
    pass(60).await;
    assert_eq!(script.calls.lines(), ["made a", "gone a"]);
    assert!(env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_has_solved_itself_does_not_lose_the_update() {
    let (env, script) = (Environment::default(), Script::default());
    let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
    let wanted = label.clone();
    let set = script.functions.transformation("set", move |mut body| {
        json_patch::merge(&mut body, &wanted);
        body
    });
    let label_all = move |invocation: &Invocation| {
        let set = Transformation::Scripted(set.clone());
        patch(invocation).lock().transformations.push(set);
        CallEnd::Returned(None)
    };
    let handlers = vec![
        script.handler((Kind::Event, "seen"), label_all),
        script.quiet(Kind::Create, "made"),
        script.quiet(Kind::Update, "changed"),
    ];
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(10).await;
    env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "labels": { "seen": null } } }));
    link.set_rule(|request| match request.method().as_str() {
        "PATCH" => Fate::Delay(Duration::from_secs(2)),
        _ => Fate::Pass,
    });
    pass(1).await;
    let mut both = label;
    both["spec"] = json!({ "size": 1 });
    env.edit(EXAMPLES, "ns1/a", both);
    pass(60).await;
    let object = env.get(EXAMPLES, "ns1/a");
    let handled = &object["metadata"]["annotations"][HANDLED];
    assert!(handled.to_string().contains("size"), "{handled}: {:?}", script.calls.lines());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_comes_too_late_for_a_deletion_is_given_up() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Delete, "gone")];
    let link = Link::new(&env.server);
    link.set(Fate::Pass);
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    link.set_rule(|request| match request.method().as_str() {
        "PATCH" => Fate::Delay(Duration::from_secs(2)),
        _ => Fate::Pass,
    });
    let mut body = object("ns1", "a");
    body["metadata"]["finalizers"] = json!(["other.dev/theirs"]);
    env.create(body);
    pass(1).await;
    env.delete(EXAMPLES, "ns1/a");
    pass(60).await;
    let statuses = statuses(&env, "PATCH");
    assert!(statuses.len() <= 2, "nothing is repeated for ever: {statuses:?}");
    let left = env.get(EXAMPLES, "ns1/a");
    assert_eq!(left["metadata"]["finalizers"], json!(["other.dev/theirs"]));
    env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "finalizers": null } }));
    pass(10).await;
    assert!(env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_faster_than_its_events_are_handled_gets_its_finalizer() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![
        script.slow("seen", Duration::from_millis(20)),
        script.quiet(Kind::Create, "made"),
        script.quiet(Kind::Delete, "gone"),
    ];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    for number in 0..1000 {
        time::sleep(Duration::from_millis(16)).await;
        env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "number": number } }));
    }
    assert_eq!(env.get(EXAMPLES, "ns1/a")["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(script.count("made a"), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn saves_while_objects_come_lose_no_creation_and_repeat_no_request() {
    const OBJECTS: usize = 30;
    let (env, script) = (Environment::default(), Script::default());
    let base = || vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Delete, "gone")];
    let link = Link::new(&env.server);
    link.set_rule(|request| match request.method().as_str() {
        "PATCH" => Fate::Delay(Duration::from_millis(300)),
        _ => Fate::Pass,
    });
    let running = script.start(&env, (&link, base()), Settings::default());
    pass(1).await;
    let mut handlers = base();
    for number in 0..OBJECTS {
        env.create(object("ns1", &format!("o{number}")));
        time::sleep(Duration::from_millis(100)).await;
        if number % 3 == 0 {
            let id: &'static str = format!("seen{number}").leak();
            handlers.push(script.quiet(Kind::Event, id));
            let registry = Registry::new(handlers.clone()).expect("unique ids");
            let generation = kopf::logic::generation::Generation::new(registry, None);
            running.reload(generation).await.expect("it takes over");
        }
    }
    pass(60).await;
    let unhandled: Vec<_> =
        (0..OBJECTS).filter(|it| script.count(&format!("made o{it}")) != 1).collect();
    assert!(unhandled.is_empty(), "not handled exactly once: {unhandled:?}");
    let conflicts = statuses(&env, "PATCH").iter().filter(|it| **it == 422).count();
    assert_eq!(conflicts, 0, "nobody else changes the objects");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lists_during_our_own_requests_lose_no_creation_and_repeat_no_request() {
    const OBJECTS: usize = 30;
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Delete, "gone")];
    let link = Link::new(&env.server);
    link.set_rule(|request| match request.method().as_str() {
        "PATCH" => Fate::Delay(Duration::from_millis(300)),
        _ => Fate::Pass,
    });
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    for number in 0..OBJECTS {
        env.create(object("ns1", &format!("o{number}")));
        time::sleep(Duration::from_millis(100)).await;
        if number % 4 == 0 {
            // The next watch meets a 410, and a list follows.
            env.server.compact();
            env.server.close_watches();
        }
    }
    pass(60).await;
    let unhandled: Vec<_> =
        (0..OBJECTS).filter(|it| script.count(&format!("made o{it}")) != 1).collect();
    assert!(unhandled.is_empty(), "not handled exactly once: {unhandled:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_not_sent_again_with_what_was_not() {
    let (env, script) = (with_status(), Script::default());
    let set = script.functions.transformation("set", |mut body| {
        body["spec"]["size"] = 3.into();
        body
    });
    let grow = move |invocation: &Invocation| {
        let set = Transformation::Scripted(set.clone());
        patch(invocation).lock().transformations.push(set);
        CallEnd::Returned(Some(json!("grown")))
    };
    let handlers = vec![script.handler((Kind::Create, "made"), grow)];
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers), impatient());
    pass(1).await;
    link.set_rule(|request| match request.headers().get("content-type") {
        Some(kind)
            if kind == "application/merge-patch+json"
                && !request.uri().path().ends_with("/status") =>
        {
            Fate::Refuse(500)
        }
        Some(_) | None => Fate::Pass,
    });
    env.create(object("ns1", "a"));
    pass(2).await;
    assert_eq!(env.get(EXAMPLES, "ns1/a")["spec"]["size"], 3);
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 5 } }));
    pass(2).await;
    link.set(Fate::Pass);
    pass(60).await;
    let object = env.get(EXAMPLES, "ns1/a");
    assert_eq!(object["spec"]["size"], 5, "the edit of the user stays");
    assert_eq!(object["status"], json!({ "made": "grown" }));
    assert_eq!(script.count("made a"), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_404_that_is_not_about_the_object_drops_nothing() {
    for path in ["/status", "kopfexamples/a"] {
        let (env, script) = (with_status(), Script::default());
        let result = |_: &Invocation| CallEnd::Returned(Some(json!(1)));
        let handlers = vec![script.handler((Kind::Create, "made"), result)];
        let link = Link::new(&env.server);
        let is_refused = AtomicBool::new(false);
        // As from a proxy without the route: the body names no object.
        link.set_rule(move |request| {
            let is_meant = request.method() == "PATCH" && request.uri().path().ends_with(path);
            let is_first = is_meant && !is_refused.fetch_or(is_meant, Ordering::Relaxed);
            if is_first { Fate::Refuse(404) } else { Fate::Pass }
        });
        let running = script.start(&env, (&link, handlers), impatient());
        pass(1).await;
        env.create(object("ns1", "a"));
        pass(60).await;
        assert_eq!(env.get(EXAMPLES, "ns1/a")["status"], json!({ "made": 1 }), "{path}");
        assert_eq!(script.count("made a"), 1, "{path}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_seen_during_the_pause_after_an_error() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Event, "seen"), script.quiet(Kind::Create, "made")];
    let mut settings = impatient();
    settings.queueing.error_delays = vec![Duration::from_mins(10)];
    let running = script.start(&env, (&Link::new(&env.server), handlers), settings);
    pass(1).await;
    env.refuse(500, "PATCH", "");
    env.create(object("ns1", "a"));
    pass(5).await;
    env.delete(EXAMPLES, "ns1/a");
    pass(1).await;
    assert_eq!(script.count("seen DELETED a"), 1, "{:?}", script.calls.lines());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_wait_for_a_retry_take_no_worker_from_others() {
    let (env, script) = (Environment::default(), Script::default());
    let later = |invocation: &Invocation| {
        if !name(invocation).starts_with("late") {
            return CallEnd::Returned(None);
        }
        let kind = RaisedKind::Temporary(Some(Duration::from_mins(1)));
        CallEnd::Raised(Raised { kind, message: "later".into(), trace: None })
    };
    let handlers = vec![script.handler((Kind::Create, "made"), later)];
    let mut settings = Settings::default();
    settings.queueing.worker_limit = Some(2);
    let running = script.start(&env, (&Link::new(&env.server), handlers), settings);
    for name in ["late1", "late2"] {
        env.create(object("ns1", name));
    }
    pass(10).await;
    env.create(object("ns1", "soon"));
    pass(2).await;
    assert_eq!(script.count("made soon"), 1, "{:?}", script.calls.lines());
    pass(60).await;
    assert_eq!(script.count("made late1"), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_daemon_changes_once_before_it_ends_is_not_lost_in_a_conflict() {
    const OBJECTS: usize = 40;
    let (env, script) = (with_status(), Script::default());
    let ready = script.functions.transformation("ready", |mut body| {
        json_patch::merge(&mut body, &json!({ "status": { "ready": true } }));
        body
    });
    let once = move |invocation: &Invocation| {
        let ready = Transformation::Scripted(ready.clone());
        patch(invocation).lock().transformations.push(ready);
        CallEnd::Returned(None)
    };
    let handlers = vec![script.handler((Kind::Daemon, "once"), once)];
    let link = Link::new(&env.server);
    link.set_rule(|request| match request.method().as_str() {
        "PATCH" => Fate::Delay(Duration::from_millis(5)),
        _ => Fate::Pass,
    });
    let running = script.start(&env, (&link, handlers), Settings::default());
    env.create_all((0..OBJECTS).map(|it| object("ns1", &format!("o{it}"))));
    pass(120).await;
    let lost = |it: &&Value| it["status"]["ready"] != true;
    let lost = env.server.list(EXAMPLES).iter().filter(lost).count();
    assert_eq!(lost, 0, "of {OBJECTS}");
    running.stop().await;
}
