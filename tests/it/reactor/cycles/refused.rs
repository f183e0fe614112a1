//! Changes that the server will never accept fail only their own handler; and recorded changes are stored.

use std::{collections::BTreeMap, time::Duration};

use kopf::{
    call::Invocation,
    logic::handlers::{
        handler::{ErrorsMode, Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    ports::BoxFuture,
    settings::Settings,
    testing::{EXAMPLES, Environment, Fate, Link, LogCapture, handler_of_examples, object, pass},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

use super::script::{Script, cause, impatient, patch, with_status};
use crate::vectors::catalogue;

const HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

fn annotation<'a>(object: &'a Value, name: &str) -> &'a Value {
    &object["metadata"]["annotations"][name]
}

/// Sets a label; a server rejects those with a space.
fn label(invocation: &Invocation, name: &str, value: &str) {
    let merge = json!({ "metadata": { "labels": { name: value } } });
    let mut patch = patch(invocation).lock();
    let mut whole = Value::Object(std::mem::take(&mut patch.merge));
    json_patch::merge(&mut whole, &merge);
    patch.merge = whole.as_object().cloned().expect("a map");
}

fn labels(script: &Script, (kind, id): (Kind, &'static str), value: &'static str) -> Handler {
    script.handler((kind, id), move |invocation| {
        label(invocation, id, value);
        CallEnd::Returned(None)
    })
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_the_status_nothing_but_results_is_lost() {
    let (env, script) = (with_status(), Script::default());
    let handlers = vec![
        script.handler((Kind::Create, "made"), |_| CallEnd::Returned(Some(json!({ "x": 1 })))),
        script.quiet(Kind::Create, "beside"),
        script.quiet(Kind::Update, "changed"),
        script.handler((Kind::Delete, "gone"), |_| CallEnd::Returned(Some(json!({ "x": 1 })))),
    ];
    let log = LogCapture::of("kopf.objects");
    env.refuse(403, "PATCH", "/status");
    let running = script.start(&env, (&Link::new(&env.server), handlers), impatient());
    env.create(object("ns1", "a"));
    pass(10).await;
    assert_eq!(script.calls.take(), ["made a", "beside a"]);
    assert!(
        log.has("Handler 'made' failed with an exception and will try again in 60 seconds"),
        "{}",
        log.text()
    );
    assert_eq!(env.get(EXAMPLES, "ns1/a")["status"], Value::Null);
    pass(60).await;
    assert_eq!(script.calls.take(), ["made a"], "its own backoff holds");
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 5 } }));
    pass(200).await;
    assert_eq!(script.count("beside a"), 0, "what is recorded is not repeated");
    script.calls.take();
    env.delete(EXAMPLES, "ns1/a");
    pass(10).await;
    assert_eq!(script.calls.take(), ["gone a"]);
    assert!(env.server.list(EXAMPLES).is_empty(), "nothing holds up the deletion");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_fails_its_own_handler() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![
        labels(&script, (Kind::Create, "good"), "fine"),
        labels(&script, (Kind::Create, "bad"), "not fine"),
        labels(&script, (Kind::Create, "last"), "fine"),
        script.quiet(Kind::Update, "changed"),
    ];
    let log = LogCapture::of("kopf.objects");
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(10).await;
    let seen = env.get(EXAMPLES, "ns1/a");
    assert_eq!(seen["metadata"]["labels"], json!({ "good": "fine", "last": "fine" }));
    let record = annotation(&seen, "kopf.zalando.org/bad").as_str().unwrap_or_default();
    assert!(
        record.contains(r#""failure":false"#) && record.contains("metadata.labels"),
        "{record}"
    );
    assert!(log.has("Handler 'bad' failed with an exception and will try again in 60 seconds: "));
    pass(120).await;
    assert_eq!(script.calls.take(), ["good a", "bad a", "last a", "bad a", "bad a"]);
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 5 } }));
    pass(1).await;
    env.delete(EXAMPLES, "ns1/a");
    pass(10).await;
    assert!(env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_handler_end_its_refused_changes() {
    let (env, script) = (Environment::default(), Script::default());
    let mut bad = labels(&script, (Kind::Create, "bad"), "not fine");
    bad.limits.retries = Some(2);
    let handlers = vec![bad, script.quiet(Kind::Update, "changed")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(200).await;
    assert_eq!(script.calls.take(), ["bad a", "bad a"]);
    assert!(annotation(&env.get(EXAMPLES, "ns1/a"), HANDLED).is_string());
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 5 } }));
    pass(10).await;
    assert_eq!(script.calls.take(), ["changed a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn limits_and_errors_of_daemons_and_timers_hold_for_their_rejected_changes() {
    let (env, script) = (Environment::default(), Script::default());
    let mut limited = labels(&script, (Kind::Daemon, "limited"), "not fine");
    limited.limits.retries = Some(2);
    let mut permanent = labels(&script, (Kind::Daemon, "permanent"), "not fine");
    permanent.limits.errors = Some(ErrorsMode::Permanent);
    let mut ignored = labels(&script, (Kind::Timer, "ignored"), "not fine");
    ignored.limits.errors = Some(ErrorsMode::Ignored);
    ignored.background.interval = Some(Duration::from_mins(50));
    let log = LogCapture::of("kopf.objects");
    let handlers = vec![limited, permanent, ignored];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(2000).await;
    assert_eq!(script.count("limited a"), 2, "{}", log.text());
    assert_eq!(script.count("permanent a"), 1, "{}", log.text());
    assert_eq!(script.count("ignored a"), 1, "{}", log.text());
    assert!(log.has("the server rejected its changes: "), "{}", log.text());
    running.stop().await;
}

/// Returns a handler with sub-handlers of these ids that set labels.
fn parent(script: &Script, subs: [(&'static str, &'static str); 2]) -> Handler {
    let (functions, calls) = (script.functions.clone(), script.calls.clone());
    let function = script.functions.handler("parent", move |invocation| {
        calls.add("parent");
        for (id, value) in subs {
            let mut declared =
                catalogue::declaration(&json!({ "on": "subhandler", "id": id, "fn": id }));
            let calls = calls.clone();
            declared.function = functions.handler(id, move |invocation| {
                calls.add(id);
                label(&invocation, id, value);
                Box::pin(async { CallEnd::Returned(None) }) as BoxFuture<'static, CallEnd>
            });
            invocation
                .children
                .as_ref()
                .expect("a change handler")
                .declare(declared)
                .expect("a declaration");
        }
        Box::pin(async { CallEnd::Returned(None) }) as BoxFuture<'static, CallEnd>
    });
    handler_of_examples(Kind::Create, function)
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_of_a_sub_handler_is_its_own() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![parent(&script, [("good", "fine"), ("bad", "not fine")])];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(10).await;
    assert_eq!(script.calls.take(), ["parent", "good", "parent", "bad"]);
    let seen = env.get(EXAMPLES, "ns1/a");
    assert_eq!(seen["metadata"]["labels"], json!({ "good": "fine" }));
    assert!(annotation(&seen, HANDLED).is_null(), "the parent is not finished");
    pass(60).await;
    assert_eq!(script.calls.take(), ["parent", "bad"], "what is recorded is not repeated");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_does_not_hold_up_a_deletion() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![
        labels(&script, (Kind::Create, "bad"), "not fine"),
        labels(&script, (Kind::Delete, "gone"), "not fine"),
        labels(&script, (Kind::Event, "seen"), "not fine"),
    ];
    let log = LogCapture::of("kopf.objects");
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(10).await;
    env.delete(EXAMPLES, "ns1/a");
    pass(10).await;
    assert_eq!(script.count("gone a"), 1);
    assert!(env.server.list(EXAMPLES).is_empty());
    assert!(log.has("The server rejected the changes of Handler 'gone'"), "{}", log.text());
    running.stop().await;
}

/// Kills an operator whose status cannot be stored: the connection gets no response.
async fn killed_before_the_status(handler: impl Fn(&Script) -> Handler) -> Value {
    let (env, script) = (with_status(), Script::default());
    let link = Link::new(&env.server);
    link.set_rule(
        |request| {
            if request.uri().path().ends_with("/status") { Fate::Hang } else { Fate::Pass }
        },
    );
    let running = script.start(&env, (&link, vec![handler(&script)]), Settings::default());
    env.create(object("ns1", "a"));
    pass(5).await;
    let seen = env.get(EXAMPLES, "ns1/a");
    assert!(annotation(&seen, HANDLED).is_null(), "recorded means stored: {seen}");
    drop(running);
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, vec![handler(&script)]), Settings::default());
    pass(5).await;
    assert_eq!(script.calls.lines(), ["made a", "made a"]);
    running.stop().await;
    let seen = env.get(EXAMPLES, "ns1/a");
    assert!(annotation(&seen, HANDLED).is_string());
    seen["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn no_result_of_a_recorded_handler_is_lost_with_the_process() {
    let result = |script: &Script| {
        script.handler((Kind::Create, "made"), |_| CallEnd::Returned(Some(json!({ "x": 1 }))))
    };
    assert_eq!(killed_before_the_status(result).await, json!({ "made": { "x": 1 } }));
}

#[tokio::test(start_paused = true)]
async fn no_function_of_a_patch_of_a_recorded_handler_is_lost_with_the_process() {
    let function = |script: &Script| {
        let set = script.functions.transformation("set", |mut body| {
            body["status"]["ready"] = true.into();
            body
        });
        script.handler((Kind::Create, "made"), move |invocation| {
            let set = kopf::logic::change::patch::Transformation::Scripted(set.clone());
            patch(invocation).lock().transformations.push(set);
            CallEnd::Returned(None)
        })
    };
    assert_eq!(killed_before_the_status(function).await, json!({ "ready": true }));
}

#[tokio::test(start_paused = true)]
async fn a_death_before_the_finalizer_is_removed_repeats_no_recorded_deletion_handler() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = || {
        let second = script.handler((Kind::Delete, "second"), |invocation| {
            match invocation.attempt.map(|it| it.retry) {
                Some(0) => CallEnd::Raised(Raised {
                    kind: RaisedKind::Temporary(Some(Duration::from_secs(10))),
                    ..Raised::of_host("not yet")
                }),
                _ => CallEnd::Returned(None),
            }
        });
        vec![script.quiet(Kind::Delete, "first"), second]
    };
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers()), Settings::default());
    env.create(object("ns1", "a"));
    pass(1).await;
    let is_release = |content: &str| content == "application/json-patch+json";
    link.set_rule(move |request| match request.headers().get("content-type") {
        Some(content) if content.to_str().is_ok_and(is_release) => Fate::Hang,
        _ => Fate::Pass,
    });
    env.delete(EXAMPLES, "ns1/a");
    pass(15).await;
    assert_eq!(script.calls.take(), ["first a", "second a", "second a"]);
    drop(running);
    let running = script.start(&env, (&Link::new(&env.server), handlers()), Settings::default());
    pass(15).await;
    assert_eq!(script.count("first a"), 0, "it was recorded");
    assert!(env.server.list(EXAMPLES).is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn long_messages_of_many_handlers_are_cut_to_what_an_object_may_have() {
    let (env, script) = (Environment::default(), Script::default());
    let names = (0..80).map(|it| &*format!("handler{it}").leak());
    let handlers = names.map(|id: &'static str| {
        script.handler((Kind::Create, id), |invocation| {
            if invocation.attempt.is_some_and(|it| it.retry > 0) {
                return CallEnd::Returned(None);
            }
            let kind = RaisedKind::Temporary(Some(Duration::from_secs(5)));
            CallEnd::Raised(Raised { kind, message: "x".repeat(4000), trace: None })
        })
    });
    let handlers = handlers.collect();
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(60).await;
    assert!(annotation(&env.get(EXAMPLES, "ns1/a"), HANDLED).is_string());
    assert_eq!(script.calls.lines().len(), 160);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn state_that_does_not_fit_into_the_annotations_is_logged_with_a_hint() {
    let (env, script) = (Environment::default(), Script::default());
    let log = LogCapture::of("kopf");
    let handlers = vec![script.quiet(Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    let mut full = object("ns1", "a");
    full["metadata"]["annotations"] = json!({ "of-others": "x".repeat(262_100) });
    env.create(full);
    pass(60).await;
    let text = log.text();
    let line = text.lines().find(|it| it.contains("Throttling for")).unwrap_or(&text);
    for expected in ["annotations: Too long", " hint: ", "kopf.StatusProgressStorage"] {
        assert!(line.contains(expected), "{expected:?} is not in the log:\n{line}");
    }
    assert_eq!(script.calls.take(), ["made a"], "it is not repeated");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_of_an_object_is_written_on_the_next_one_of_its_name() {
    for is_watched in [true, false] {
        let (env, script) = (with_status(), Script::default());
        let (calls, link) = (script.calls.clone(), Link::new(&env.server));
        let slow = script.functions.handler("made", move |invocation| {
            let calls = calls.clone();
            Box::pin(async move {
                calls.add("made");
                let uid = cause(&invocation).current().header().uid.clone();
                let uid = uid.unwrap_or_default();
                label(&invocation, "of", &uid);
                time::sleep(Duration::from_secs(3)).await;
                CallEnd::Returned(Some(json!({ "of": uid })))
            }) as BoxFuture<'static, CallEnd>
        });
        let handlers = vec![handler_of_examples(Kind::Create, slow)];
        let running = script.start(&env, (&link, handlers), Settings::default());
        pass(1).await;
        env.create(object("ns1", "a"));
        pass(1).await;
        if !is_watched {
            // The operator gets no response.
            link.set_rule(|request| match request.method().as_str() {
                "GET" if request.uri().query().is_some_and(|it| it.contains("watch")) => Fate::Hang,
                _ => Fate::Pass,
            });
            env.server.close_watches();
        }
        env.delete(EXAMPLES, "ns1/a");
        let second = env.create(object("ns1", "a"));
        pass(4).await;
        let seen = env.get(EXAMPLES, "ns1/a");
        let own = &second["metadata"]["uid"];
        let of = &seen["metadata"]["labels"]["of"];
        assert!(of.is_null() || of == own, "{seen}");
        let of = &seen["status"]["made"]["of"];
        assert!(of.is_null() || of == own, "{seen}");
        link.set(Fate::Pass);
        pass(60).await;
        let seen = env.get(EXAMPLES, "ns1/a");
        assert_eq!(&seen["metadata"]["labels"]["of"], own);
        assert_eq!(&seen["status"]["made"]["of"], own);
        assert!(annotation(&seen, HANDLED).is_string());
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_accepted_without_a_response_is_not_refused_when_it_is_sent_again() {
    for (has_status, status) in [(false, 403), (false, 422), (true, 403), (true, 422)] {
        let env = if has_status { with_status() } else { Environment::default() };
        let (script, link) = (Script::default(), Link::new(&env.server));
        let result = |_: &Invocation| CallEnd::Returned(Some(json!({ "x": 1 })));
        let handlers = vec![script.handler((Kind::Create, "made"), result)];
        // Of each path, the first PATCH is accepted without a response, and the second one is refused.
        let paths = Mutex::new(BTreeMap::<String, u32>::new());
        link.set_rule(move |request| {
            let mut paths = paths.lock();
            let count = paths.entry(request.uri().path().to_owned()).or_default();
            *count += u32::from(request.method() == "PATCH");
            match *count {
                1 => Fate::LoseResponse,
                2 if request.method() == "PATCH" => Fate::Refuse(status),
                _ => Fate::Pass,
            }
        });
        let running = script.start(&env, (&link, handlers), Settings::default());
        pass(1).await;
        env.create(object("ns1", "a"));
        pass(3000).await;
        assert_eq!(script.calls.lines(), ["made a"], "{has_status} {status}");
        let object = env.get(EXAMPLES, "ns1/a");
        assert_eq!(object["status"]["made"], json!({ "x": 1 }));
        assert!(annotation(&object, HANDLED).is_string(), "{object}");
        running.stop().await;
    }
}
