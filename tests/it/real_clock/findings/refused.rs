//! Requests that the server refuses, and processes that are killed between two requests.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use kopf::testing::{EXAMPLES, definition, examples};
use serde_json::json;

use super::{
    DEFINITIONS, IMPATIENT, World,
    front::{Fate, status},
    said, until, until_says,
};

const LIFE: &str = r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    ctx.logger:info("made")
    return { size = 1 }
end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) ctx.logger:info("gone") end)
"#;

/// Returns a script that sets the size of the spec, where the schema requires an integer, and logs it.
fn sizing(value: &str) -> String {
    format!(
        r#"
kopf.on_create("kopfexamples", {{ id = "made" }}, function(ctx)
    ctx.patch.spec.size = {value}
    ctx.logger:info("made")
end)
kopf.on_delete("kopfexamples", {{ id = "gone" }}, function(ctx) ctx.logger:info("gone") end)
"#
    )
}

/// Returns a cluster whose examples have an integer as the size, and a string as the result of `made`.
async fn strict(script: &str) -> World {
    let world = World::with(&[], script).await;
    let mut crd = definition(&examples());
    let version = &mut crd["spec"]["versions"][0];
    version["subresources"] = json!({ "status": {} });
    version["schema"] = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "size": { "type": "integer" } } },
        "status": { "type": "object", "properties": { "made": { "type": "string" } } },
    } } });
    world.server.create(DEFINITIONS, crd).expect("it is new");
    world
}

/// H1: the operator has no permission for the status, and a handler returns a result.
#[tokio::test]
async fn an_object_is_deleted_although_the_status_is_forbidden() {
    let world = World::new(LIFE).await;
    let body = status(403, "Forbidden", "kopfexamples.kopf.dev \"a\" is forbidden");
    world.front.set_fate(Fate::Refuse(403, body), |it| it.is("PATCH", "/status"));
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "a refusal", || world.front.count(|it| it.status == Some(403)) > 0).await;
    world.delete("a");
    until_says(&operator, "[ns1/a] gone").await;
    until(&operator, "the end of the object", || world.is_gone("a")).await;
}

/// H1: the schema rejects the result of a handler.
#[tokio::test]
async fn an_object_is_deleted_although_its_schema_rejects_a_result() {
    let world = strict(LIFE).await;
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "a refusal", || world.front.count(|it| it.status == Some(422)) > 0).await;
    world.delete("a");
    until_says(&operator, "[ns1/a] gone").await;
    until(&operator, "the end of the object", || world.is_gone("a")).await;
}

/// H1: the schema rejects the change of a handler in the spec, and the object is deleted.
#[tokio::test]
async fn an_object_is_deleted_although_its_schema_rejects_a_patch() {
    let world = strict(&sizing("'large'")).await;
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "a refusal", || world.front.count(|it| it.status == Some(422)) > 0).await;
    world.delete("a");
    until_says(&operator, "[ns1/a] gone").await;
    until(&operator, "the end of the object", || world.is_gone("a")).await;
}

/// H1: the schema rejects the change of a handler in the spec, and the script is fixed.
#[tokio::test]
async fn a_fixed_script_is_called_although_the_patch_of_the_former_one_was_rejected() {
    let world = strict(&sizing("'large'")).await;
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "a refusal", || world.front.count(|it| it.status == Some(422)) > 0).await;
    world.save(&sizing("3"));
    until(&operator, "the size", || world.get("a")["spec"]["size"] == 3).await;
}

/// H1: the records of many sub-handlers with long messages do not fit into an object.
#[tokio::test]
async fn an_object_is_handled_although_the_messages_of_its_handlers_are_long() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function()
    for number = 1, 80 do
        kopf.subhandler({ id = `part{number}` }, function(ctx)
            if ctx.retry == 0 then kopf.retry(string.rep("x", 4096), 0.5) end
        end)
    end
end)
"#,
    )
    .await;
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "the end", || world.is_handled("a")).await;
}

/// H2: one request of a cycle is accepted, the next one fails, and a user changes the field that the first one has set.
#[tokio::test]
async fn the_edit_of_a_user_is_not_undone_by_a_request_that_is_repeated() {
    let setting =
        ["ctx.patch.spec.size = 3", "ctx.patch.fns:append(function(body) body.spec.size = 3 end)"];
    for set in setting {
        let script = format!(
            r#"
kopf.on_create("kopfexamples", {{ id = "made" }}, function(ctx)
    {set}
    return 1
end)
"#
        );
        let world = World::new(&script).await;
        let server = world.server.clone();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        world.front.set_rule(move |it| {
            let is_set = server.get(EXAMPLES, "ns1", "a").is_some_and(|it| it["spec"]["size"] == 3);
            let is_refused = is_set && it.method == "PATCH" && !ended.load(Ordering::Relaxed);
            let body = status(500, "InternalError", "not now");
            if is_refused { Fate::Refuse(500, body) } else { Fate::Pass }
        });
        let operator = world.started(IMPATIENT).await;
        world.create("a");
        until(&operator, "the size", || world.get("a")["spec"]["size"] == 3).await;
        // Two attempts are those of one request: the third one begins after the pause of the object.
        let refused = || world.front.count(|it| it.status == Some(500));
        let is_done = || world.get("a")["status"]["made"] == 1 && world.is_handled("a");
        until(&operator, "three refusals, or the end", || refused() > 2 || is_done()).await;
        is_over.store(true, Ordering::Relaxed);
        world.edit("a", json!({ "spec": { "size": 5 } }));
        until(&operator, "the result", || world.get("a")["status"]["made"] == 1).await;
        until(&operator, "the end", || world.is_handled("a")).await;
        assert_eq!(
            world.get("a")["spec"]["size"],
            5,
            "the edit, with `{set}`\n{}",
            operator.output()
        );
    }
}

/// H7: the process is killed between two requests of a cycle.
#[tokio::test]
async fn the_result_of_a_recorded_handler_survives_a_kill() {
    let world =
        World::new(r#"kopf.on_create("kopfexamples", { id = "made" }, function() return 1 end)"#)
            .await;
    let patches = AtomicUsize::new(0);
    world.front.set_rule(move |it| {
        let is_late = it.method == "PATCH" && patches.fetch_add(1, Ordering::Relaxed) > 0;
        if is_late { Fate::Hang } else { Fate::Pass }
    });
    let operator = world.started("--standalone").await;
    world.create("a");
    let is_patch = |it: &super::Asked| it.method == "PATCH";
    until(&operator, "two requests", || world.front.count(is_patch) > 1).await;
    operator.crash().await;
    world.front.pass();
    let operator = world.started("--standalone").await;
    until(&operator, "the result", || world.get("a")["status"]["made"] == 1).await;
}

/// H9: a response 404 that does not name the object.
#[tokio::test]
async fn a_404_that_is_not_about_the_object_loses_no_result() {
    let world = World::new(LIFE).await;
    let is_first = AtomicBool::new(true);
    world.front.set_rule(move |it| {
        let is_meant = it.is("PATCH", "/status") && is_first.swap(false, Ordering::Relaxed);
        let body = status(404, "NotFound", "the server could not find the requested resource");
        if is_meant { Fate::Refuse(404, body) } else { Fate::Pass }
    });
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until(&operator, "the result", || world.get("a")["status"]["made"]["size"] == 1).await;
    assert_eq!(said(&operator, "[ns1/a] made"), 1, "calls\n{}", operator.output());
}
