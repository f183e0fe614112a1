//! The condition of objects whose handlers fail: opt-in, written rarely, and next to those of others.

use kopf::{settings::Settings, testing::Environment};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};

use super::{Failing, Script, in_both, in_both_of};

/// `retried` fails until the spec ends that, `given_up` fails permanently for some objects.
const SCRIPT: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "retried" }, function(ctx)
            if ctx.retry < 2 then kopf.retry("not yet", 20) end
        end)
        kopf.on_create("kopfexamples", { id = "given_up" }, function(ctx)
            if ctx.name == "bad" then kopf.fail("never") end
        end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "retried" }, |ctx| {
            if ctx.retry < 2 { kopf.retry("not yet", 20); }
        });
        kopf::on_create("kopfexamples", #{ id: "given_up" }, |ctx| {
            if ctx.name == "bad" { kopf.fail("never"); }
        });
    "#,
};

/// Fails as long as the label requests it.
const TIMER: Script = Script {
    lua: r#"
        kopf.timer("kopfexamples", { interval = 1, backoff = 1, id = "tick" }, function(ctx)
            if ctx.labels.broken then error("broken") end
        end)
        kopf.on_create("kopfexamples", function(ctx) end)
    "#,
    rhai: r#"
        kopf::timer("kopfexamples", #{ interval: 1, backoff: 1, id: "tick" }, |ctx| {
            if "broken" in ctx.labels { throw "broken"; }
        });
        kopf::on_create("kopfexamples", |ctx| {});
    "#,
};

const EXAMPLES: &str = "kopfexamples.kopf.dev";

fn on(settings: &mut Settings) {
    settings.posting.condition = Some("HandlersReady".into());
}

/// Returns status, reason and message of the condition.
fn condition(env: &Environment, name: &str) -> Option<[String; 3]> {
    let object = env.get(EXAMPLES, &format!("ns1/{name}"));
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = list.into_iter().find(|it| it["type"] == "HandlersReady")?;
    assert!(found["lastTransitionTime"].is_string(), "{found}");
    Some(
        ["status", "reason", "message"].map(|it| found[it].as_str().unwrap_or_default().to_owned()),
    )
}

fn is(found: Option<[String; 3]>, status: &str, reason: &str, message: &str) {
    let found = found.expect("a condition");
    assert_eq!([found[0].as_str(), found[1].as_str()], [status, reason], "{found:?}");
    assert!(found[2].contains(message), "{found:?}");
}

#[test]
fn an_object_has_the_condition_while_and_after_a_handler_fails() {
    in_both(&SCRIPT, on, async |failing: &Failing| {
        failing.create("a");
        failing.create("bad");
        failing.env.until(10).await;
        is(
            condition(&failing.env, "a"),
            "False",
            "HandlerFailed",
            "'retried' failed temporarily (attempt 1)",
        );
        is(
            condition(&failing.env, "bad"),
            "False",
            "HandlerGaveUp",
            "'given_up' failed permanently",
        );
        failing.env.until(60).await;
        is(
            condition(&failing.env, "a"),
            "True",
            "HandlersSucceeded",
            "All handlers have succeeded.",
        );
        is(condition(&failing.env, "bad"), "False", "HandlerGaveUp", "never");
        // The remaining handlers do not fail.
        assert_eq!(failing.log.count("ERROR An unexpected error"), 0);
    });
}

#[test]
fn objects_have_no_condition_unless_a_setting_wants_it_and_a_handler_has_failed() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            failing.create("bad");
            failing.env.until(60).await;
            assert_eq!(condition(&failing.env, "bad"), None);
        },
    );
    in_both(&TIMER, on, async |failing: &Failing| {
        failing.create("fine");
        failing.env.until(60).await;
        assert_eq!(condition(&failing.env, "fine"), None);
    });
}

#[test]
fn conditions_of_others_stay_and_repeated_failures_are_written_rarely() {
    in_both(&TIMER, on, async |failing: &Failing| {
        let other = json!({ "type": "Other", "status": "True", "reason": "Fine" });
        let mut object = kopf::testing::object("ns1", "a");
        object["metadata"]["labels"] = json!({ "broken": "yes" });
        object["status"] = json!({ "conditions": [other] });
        failing.env.create(object);
        failing.env.until(5).await;
        is(condition(&failing.env, "a"), "False", "HandlerFailed", "broken");
        failing.env.until(600).await;
        let body = failing.env.get(EXAMPLES, "ns1/a");
        assert_eq!(body["status"]["conditions"][0], other);
        let writes = failing.env.requests("PATCH", "kopfexamples").len();
        assert!(writes <= 20, "{writes} writes about 600 failures");
        let healed = json!({ "metadata": { "labels": { "broken": null } } });
        failing.env.edit(EXAMPLES, "ns1/a", healed);
        failing.env.until(610).await;
        is(condition(&failing.env, "a"), "True", "HandlersSucceeded", "");
        assert_eq!(failing.env.get(EXAMPLES, "ns1/a")["status"]["conditions"][0], other);
    });
}

#[test]
fn a_condition_of_an_earlier_process_becomes_true_after_a_success() {
    in_both(&TIMER, on, async |failing: &Failing| {
        let mut object = kopf::testing::object("ns1", "a");
        let left = json!({ "type": "HandlersReady", "status": "False", "reason": "HandlerFailed",
            "message": "it failed", "lastTransitionTime": "2025-12-31T00:00:00Z" });
        object["status"] = json!({ "conditions": [left] });
        failing.env.create(object);
        failing.env.until(10).await;
        is(condition(&failing.env, "a"), "True", "HandlersSucceeded", "");
    });
}

#[test]
fn a_schema_without_conditions_is_reported_once() {
    let environment = || {
        let crd: Value = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "kopfexamples.kopf.dev" },
            "spec": {
                "group": "kopf.dev", "scope": "Namespaced",
                "names": { "kind": "KopfExample", "plural": "kopfexamples", "singular": "kopfexample" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                        "status": { "type": "object", "properties": { "size": { "type": "integer" } } },
                    } } },
                }],
            },
        });
        let env = Environment::new(ApiServer::builder().cluster(true));
        env.create(crd);
        env
    };
    in_both_of(environment, &TIMER, on, async |failing: &Failing| {
        // One after the other: of two that fail at the same time, both send requests before the first response.
        let mut requests = Vec::new();
        for (name, seconds) in [("a", 50), ("b", 100)] {
            let mut object = kopf::testing::object("default", name);
            object["metadata"]["labels"] = json!({ "broken": "yes" });
            failing.env.create(object);
            failing.env.until(seconds).await;
            requests.push(failing.env.requests("PATCH", "/status").len());
        }
        assert_eq!(failing.log.count("has no status.conditions"), 1, "{}", failing.log.text());
        // More than one for the first object, if it has changed meanwhile.
        assert!(requests[0] >= 1 && requests[1] == requests[0], "{requests:?}");
    });
}
