//! Conflicts: with other clients, with an older view, and with a lost response.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kopf::testing::EXAMPLES;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Asked, DEADLINE, HANDLED, IMPATIENT, World,
    front::{Fate, Gate, Line},
    said, until, until_says,
};

const LIFE: &str = r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx) ctx.logger:info("made") end)
kopf.on_update("kopfexamples", { id = "changed" }, function(ctx) ctx.logger:info("changed") end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) ctx.logger:info("gone") end)
"#;

fn is_patch(asked: &Asked) -> bool {
    asked.method == "PATCH"
}

/// H3: the response to the PATCH of the finalizer is lost.
#[tokio::test]
async fn the_creation_is_handled_although_the_response_to_the_finalizer_is_lost() {
    let world = World::new(LIFE).await;
    let is_first = AtomicBool::new(true);
    world.front.set_rule(move |it| {
        let is_lost = is_patch(it) && is_first.swap(false, Ordering::Relaxed);
        if is_lost { Fate::LoseResponse } else { Fate::Pass }
    });
    let operator = world.started("--standalone").await;
    world.create("a");
    until_says(&operator, "[ns1/a] made").await;
    until(&operator, "the end", || world.is_handled("a")).await;
}

/// H3: another client makes the change of a handler first, together with another change.
#[tokio::test]
async fn a_change_is_handled_although_another_client_was_faster_with_a_label() {
    let world = World::new(
        r#"
kopf.on_event("kopfexamples", function(ctx)
    ctx.patch.fns:append(function(body)
        body.metadata.labels = body.metadata.labels or {}
        body.metadata.labels.seen = "yes"
    end)
end)
kopf.on_create("kopfexamples", { id = "made" }, function() end)
kopf.on_update("kopfexamples", { id = "changed" }, function(ctx) ctx.logger:info("changed") end)
"#,
    )
    .await;
    let operator = world.started("--standalone").await;
    world.create("a");
    let is_labelled = || world.get("a")["metadata"]["labels"]["seen"] == "yes";
    until(&operator, "the label", || is_labelled() && world.is_handled("a")).await;
    let gate = Gate::new();
    world.front.set_fate(Fate::Hold(gate.clone()), |it| {
        is_patch(it) && it.body.to_string().contains("seen")
    });
    let before = world.front.count(is_patch);
    world.edit("a", json!({ "metadata": { "labels": { "seen": null } } }));
    until(&operator, "the label on its way", || world.front.count(is_patch) > before).await;
    world.edit("a", json!({ "metadata": { "labels": { "seen": "yes" } }, "spec": { "size": 1 } }));
    gate.open();
    let handled = || world.get("a")["metadata"]["annotations"][HANDLED].to_string();
    until(&operator, "the end of the change", || handled().contains("size")).await;
}

/// H4: an object is deleted while the finalizer is on its way, and another finalizer holds it.
#[tokio::test]
async fn a_finalizer_that_comes_too_late_for_a_deletion_is_not_sent_again_and_again() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    if ctx.name == "clock" and ctx.retry < 12 then kopf.retry("later", 0.25) end
    ctx.logger:info("made")
end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) ctx.logger:info("gone") end)
"#,
    )
    .await;
    let gate = Gate::new();
    world.front.set_fate(Fate::Hold(gate.clone()), |it| it.is("PATCH", "/kopfexamples/a"));
    let operator = world.started(IMPATIENT).await;
    let body = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": "ns1", "name": "a", "finalizers": ["other.dev/theirs"] },
    });
    world.server.create(EXAMPLES, body).expect("it is new");
    let patches = || world.front.count(|it| it.is("PATCH", "/kopfexamples/a"));
    until(&operator, "the finalizer on its way", || patches() > 0).await;
    world.delete("a");
    gate.open();
    until(&operator, "a refusal", || world.front.count(|it| it.status == Some(422)) > 0).await;
    // Twelve pauses of another object: more than enough for ten repetitions.
    world.create("clock");
    until_says(&operator, "[ns1/clock] made").await;
    assert!(patches() <= 3, "{} requests for the finalizer\n{}", patches(), operator.output());
}

/// M2, H4: an object changes faster than its events are handled.
#[tokio::test]
async fn an_object_that_changes_faster_than_its_events_are_handled_is_handled() {
    let world = World::new(
        r#"
kopf.on_event("kopfexamples", function() kopf.sleep(0.02) end)
kopf.on_create("kopfexamples", { id = "made" }, function(ctx) ctx.logger:info("made") end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) ctx.logger:info("gone") end)
"#,
    )
    .await;
    let operator = world.started("--standalone").await;
    world.create("a");
    let deadline = Instant::now() + DEADLINE;
    let mut number = 0;
    while said(&operator, "[ns1/a] made") == 0 {
        assert!(Instant::now() < deadline, "after {number} changes, it is not handled");
        world.edit("a", json!({ "spec": { "number": number } }));
        number += 1;
        sleep(Duration::from_millis(16)).await;
    }
}

/// H6: daemons change their objects once, and return.
#[tokio::test]
async fn a_condition_that_a_daemon_sets_before_it_returns_is_kept() {
    const OBJECTS: usize = 40;
    let world = World::new(
        r#"
kopf.daemon("kopfexamples", { id = "once" }, function(ctx)
    ctx.conditions:set("Ready", true, "Done", "done")
    ctx.logger:info("returned")
end)
"#,
    )
    .await;
    world.front.set_fate(Fate::Delay(Duration::from_millis(5)), is_patch);
    let operator = world.started("--standalone").await;
    for number in 0..OBJECTS {
        world.create(&format!("o{number}"));
    }
    until(&operator, "all daemons", || said(&operator, "returned") >= OBJECTS).await;
    let is_ready = |it: &Value| it["status"]["conditions"][0]["type"] == "Ready";
    let ready = || world.server.list(EXAMPLES).iter().filter(|it| is_ready(it)).count();
    until(&operator, "all conditions", || ready() == OBJECTS).await;
}

/// H8: an object is deleted and created again while its handler runs.
#[tokio::test]
async fn nothing_of_an_object_is_written_on_the_next_one_of_its_name() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    ctx.logger:info("made " .. ctx.uid)
    kube.get("v1", "ConfigMap", { name = "gate", namespace = "ns1" })
    return ctx.uid
end)
"#,
    )
    .await;
    let gate = Gate::new();
    world.front.set_fate(Fate::Hold(gate.clone()), |it| it.is("GET", "/configmaps/gate"));
    // The operator sees the new object only after the handler of the old one has ended.
    let operator = world.started("--standalone").await;
    let old = world.create("a")["metadata"]["uid"].clone();
    let old = old.as_str().expect("a uid");
    until_says(&operator, &format!("made {old}")).await;
    until(&operator, "the gate", || world.front.count(|it| it.path.contains("/gate")) > 0).await;
    let seen = Gate::new();
    let unseen = seen.clone();
    world.front.set_lines(move |it, _| {
        if it.watches("kopfexamples?") { Line::Hold(unseen.clone()) } else { Line::Pass }
    });
    world.server.remove(EXAMPLES, "ns1", "a").expect("it is there");
    let new = world.create("a")["metadata"]["uid"].clone();
    gate.open();
    until(&operator, "a request", || {
        world.front.count(|it| is_patch(it) && it.status.is_some()) > 0
    })
    .await;
    seen.open();
    until(&operator, "the result", || world.get("a")["status"]["made"] == new).await;
    let wrong = |it: &Asked| is_patch(it) && it.is_accepted() && it.body["status"]["made"] == old;
    assert_eq!(world.front.count(wrong), 0, "results of the old object\n{}", operator.output());
}

/// N1: a script is saved while objects come and requests are slow.
#[tokio::test]
async fn saves_while_objects_come_lose_no_creation() {
    const OBJECTS: usize = 60;
    let world = World::new(LIFE).await;
    world.front.set_fate(Fate::Delay(Duration::from_millis(300)), is_patch);
    let operator = world.started("--standalone").await;
    let mut script = LIFE.to_owned();
    for number in 0..OBJECTS {
        world.create(&format!("o{number}"));
        sleep(Duration::from_millis(50)).await;
        if number % 6 == 0 {
            let handler = format!(r#"{{ id = "seen{number}" }}, function() end"#);
            script = [&script, r#"kopf.on_event("kopfexamples", "#, &handler, ")\n"].concat();
            world.save(&script);
        }
    }
    let handled = || (0..OBJECTS).filter(|it| world.is_handled(&format!("o{it}"))).count();
    until(&operator, "all creations", || handled() == OBJECTS).await;
    assert_eq!(said(&operator, "] made"), OBJECTS, "each once\n{}", operator.output());
}
