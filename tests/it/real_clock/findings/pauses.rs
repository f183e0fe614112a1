//! Pauses and waits: their length, and the work that they must not delay.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use kopf::testing::{EXAMPLES, examples};
use kopf_apiserver::ResourceDef;
use serde_json::json;

use super::{
    Asked, IMPATIENT, World,
    front::{Fate, status},
    leaders::shifted,
    said, until, until_says,
};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

const MADE: &str = r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx) ctx.logger:info("made") end)
"#;

/// H5: requests for one kind hang; another kind must be handled.
#[tokio::test]
async fn a_kind_is_handled_while_requests_for_another_kind_hang() {
    let others = ResourceDef::new("kopf.dev", "v1", "kopfothers", "KopfOther");
    let script = r#"
for _, kind in { "kopfexamples", "kopfothers" } do
    kopf.on_create(kind, { id = "made" }, function(ctx) ctx.logger:info("made") end)
end
"#;
    let world = World::with(&[examples(), others], script).await;
    world.front.set_fate(Fate::Hang, |it| it.is("PATCH", "/kopfexamples/"));
    let operator = world.started("--standalone").await;
    for number in 0..60 {
        world.create(&format!("o{number}"));
    }
    let hanging = || world.front.count(|it| it.is("PATCH", "/kopfexamples/"));
    until(&operator, "requests that hang", || hanging() >= 24 && said(&operator, "] made") == 60)
        .await;
    let body = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfOther", "metadata": { "namespace": "ns1", "name": "a" },
    });
    world.server.create("kopfothers.kopf.dev", body).expect("it is new");
    let is_handled = || {
        let object = world.server.get("kopfothers.kopf.dev", "ns1", "a").unwrap_or_default();
        object["metadata"]["annotations"][super::HANDLED].is_string()
    };
    until(&operator, "the other kind", is_handled).await;
}

/// N4: a record was written by a clock that was ten minutes ahead.
#[tokio::test]
async fn a_retry_that_a_clock_ahead_has_recorded_comes_after_its_own_pause() {
    let world = World::new(MADE).await;
    let record = json!({
        "started": shifted(600), "delayed": shifted(602), "purpose": "create", "retries": 1,
        "success": false, "failure": false, "message": "not yet",
    });
    let body = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {
            "namespace": "ns1", "name": "a",
            "annotations": { "kopf.zalando.org/made": record.to_string() },
        },
    });
    world.server.create(EXAMPLES, body).expect("it is new");
    let operator = world.started("--standalone").await;
    until_says(&operator, "[ns1/a] made").await;
}

/// M3: an object is deleted during the pause of ten minutes after an error.
#[tokio::test]
async fn a_deletion_is_seen_during_a_long_pause() {
    let world = World::new(
        r#"
kopf.on_event("kopfexamples", function(ctx) ctx.logger:info("seen " .. tostring(ctx.type)) end)
kopf.on_create("kopfexamples", { id = "made" }, function() end)
"#,
    )
    .await;
    let body = status(500, "InternalError", "not now");
    world.front.set_fate(Fate::Refuse(500, body), |it| it.method == "PATCH");
    let settings =
        "--standalone --set networking.error_backoffs=[] --set queueing.error_delays=[600]";
    let operator = world.started(settings).await;
    world.create("a");
    until_says(&operator, "[ns1/a] seen ADDED").await;
    until_says(&operator, "600").await;
    world.delete("a");
    until_says(&operator, "[ns1/a] seen DELETED").await;
}

/// M7: the version of a watch has expired, again and again.
#[tokio::test]
async fn versions_that_expire_again_and_again_mean_ever_fewer_lists() {
    let world = World::new(MADE).await;
    let body = status(410, "Expired", "too old resource version");
    world.front.set_fate(Fate::Refuse(410, body), |it| it.watches("kopfexamples?"));
    let operator = world.start("--standalone");
    let is_list = |it: &Asked| it.lists("kopfexamples");
    until(&operator, "seven lists", || world.front.count(is_list) >= 7).await;
    let asked = world.front.asked();
    let lists: Vec<_> = asked.iter().filter(|it| is_list(it)).map(|it| it.at).collect();
    let took = lists[6] - lists[0];
    assert!(took > Duration::from_secs(3), "seven lists within {took:?}");
}

/// M8: a user applies an exported manifest with the operator's finalizer, which is not needed any more, and deletes the object.
#[tokio::test]
async fn a_finalizer_that_a_user_applies_again_does_not_hold_up_the_deletion() {
    let world = World::new(MADE).await;
    let finalizers = |it: serde_json::Value| json!({ "metadata": { "finalizers": it } });
    let operator = world.started("--standalone").await;
    let mut body = finalizers(json!([FINALIZER]));
    body["apiVersion"] = json!("kopf.dev/v1");
    body["kind"] = json!("KopfExample");
    body["metadata"]["namespace"] = json!("ns1");
    body["metadata"]["name"] = json!("a");
    world.server.create(EXAMPLES, body).expect("it is new");
    let is_free = || world.get("a")["metadata"]["finalizers"].is_null();
    until(&operator, "the object without it", || is_free() && world.is_handled("a")).await;
    world.edit("a", finalizers(json!([FINALIZER])));
    world.delete("a");
    until(&operator, "the end of the object", || world.is_gone("a")).await;
}

/// M9: objects wait for a retry, and `worker_limit` is reached.
#[tokio::test]
async fn objects_that_wait_for_a_retry_take_no_worker_from_others() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    if ctx.name ~= "soon" then kopf.retry("later", 600) end
    ctx.logger:info("made")
end)
"#,
    )
    .await;
    let operator = world.started("--standalone --set queueing.worker_limit=2").await;
    world.create("late1");
    world.create("late2");
    until(&operator, "two retries", || said(&operator, "failed temporarily") >= 2).await;
    world.create("soon");
    until_says(&operator, "[ns1/soon] made").await;
}

/// L1: a connection dies silently.
#[tokio::test]
async fn a_request_without_a_response_is_repeated_after_half_a_minute() {
    let world = World::new(MADE).await;
    let is_first = AtomicBool::new(true);
    world.front.set_rule(move |it| {
        let is_lost = it.method == "PATCH" && is_first.swap(false, Ordering::Relaxed);
        if is_lost { Fate::Hang } else { Fate::Pass }
    });
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "the end", || world.is_handled("a")).await;
}

/// L2: the server requests a pause of an hour, and the object changes.
#[tokio::test]
async fn a_newer_event_ends_a_pause_of_an_hour() {
    let world = World::new(MADE).await;
    let patches = AtomicUsize::new(0);
    world.front.set_rule(move |it| {
        let is_first = it.method == "PATCH" && patches.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Fate::Later(3600) } else { Fate::Pass }
    });
    let operator = world.started("--standalone").await;
    world.create("a");
    until(&operator, "the refusal", || world.front.count(|it| it.status == Some(429)) > 0).await;
    world.edit("a", json!({ "spec": { "size": 1 } }));
    until(&operator, "the end", || world.is_handled("a")).await;
}
