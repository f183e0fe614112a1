//! Changes that no handler handles: `kopf dev` logs them, other commands only in verbose mode.

use kopf_apiserver::ApiServer;
use serde_json::json;

use super::{Failing, Script, in_both, in_both_of};
use kopf::testing::{Environment, examples};

const CREATION: Script = Script {
    lua: r#"kopf.on_create("kopfexamples", function(ctx) end)"#,
    rhai: r#"kopf::on_create("kopfexamples", |ctx| {});"#,
};

const FILTERED: Script = Script {
    lua: r#"
        kopf.on_update("kopfexamples", { labels = { wanted = "yes" } }, function(ctx) end)
        kopf.on_delete("kopfexamples", { optional = true }, function(ctx) end)
        kopf.on_event("pods", function(ctx) end)
    "#,
    rhai: r#"
        kopf::on_update("kopfexamples", #{ labels: #{ wanted: "yes" } }, |ctx| {});
        kopf::on_delete("kopfexamples", #{ optional: true }, |ctx| {});
        kopf::on_event("pods", |ctx| {});
    "#,
};

const SECRETS: Script = Script {
    lua: r#"kopf.on_create("secrets", function(ctx) end)"#,
    rhai: r#"kopf::on_create("secrets", |ctx| {});"#,
};

const HELD: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", function(ctx) end)
        kopf.on_delete("kopfexamples", function(ctx) ctx.logger:info("deleted") end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", |ctx| {});
        kopf::on_delete("kopfexamples", |ctx| ctx.logger.info("deleted"));
    "#,
};

/// Returns the lines about changes that no handler handles.
fn lines(failing: &Failing) -> Vec<String> {
    let lines = failing.log.lines().into_iter();
    lines
        .filter(|it| it.field("call.level") == Some("20"))
        .map(|it| it.message)
        .filter(|it| it.contains("no handler"))
        .collect()
}

#[test]
fn edits_and_deletions_without_a_handler_are_told_once() {
    in_both(
        &CREATION,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(10).await;
            assert_eq!(lines(failing), [""; 0]);
            let edit = |merge| failing.env.edit("kopfexamples.kopf.dev", "ns1/a", merge);
            edit(json!({ "spec": { "duration": "2m" } }));
            failing.env.until(20).await;
            edit(json!({ "status": { "seen": true } }));
            failing.env.until(30).await;
            failing.env.delete("kopfexamples.kopf.dev", "ns1/a");
            failing.env.until(40).await;
            assert_eq!(
                lines(failing),
                [
                    "spec.duration: (none) → 2m; no handler for updates",
                    "deleted; no handler for deletions"
                ]
            );
        },
    );
}

#[test]
fn handlers_with_other_filters_are_told_apart_from_none() {
    in_both(
        &FILTERED,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(10).await;
            failing.env.edit("kopfexamples.kopf.dev", "ns1/a", json!({ "spec": { "n": 1 } }));
            failing.env.until(20).await;
            failing.env.delete("kopfexamples.kopf.dev", "ns1/a");
            failing.env.until(30).await;
            assert_eq!(
                lines(failing),
                ["spec.n: (none) → 1; no handler with filters that match for updates"]
            );
        },
    );
}

#[test]
fn values_of_secrets_are_hidden() {
    let environment = || Environment::new(ApiServer::builder().cluster(true).resource(examples()));
    in_both_of(
        environment,
        &SECRETS,
        |_| {},
        async |failing: &Failing| {
            failing.env.create(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "namespace": "default", "name": "s" },
            "data": { "password": "aHVudGVyMg==" },
        }));
            failing.env.until(10).await;
            failing.env.edit("secrets", "default/s", json!({ "data": { "password": "c2VzYW1l" } }));
            failing.env.until(20).await;
            assert_eq!(
                lines(failing),
                ["data.password: (hidden) → (hidden); no handler for updates"],
                "{}",
                failing.log.text()
            );
        },
    );
}

#[test]
fn an_object_that_the_server_removes_despite_its_finalizer_is_told() {
    in_both(
        &HELD,
        |_| {},
        async |failing: &Failing| {
            for name in ["kept", "lost", "forced"] {
                failing.create(name);
            }
            failing.env.until(10).await;
            let server = &failing.env.server;
            server.remove("kopfexamples.kopf.dev", "ns1", "lost").expect("the object exists");
            failing.env.delete("kopfexamples.kopf.dev", "ns1/kept");
            // A user removes the finalizer on purpose.
            let bare = json!({ "metadata": { "finalizers": null } });
            server
                .merge("kopfexamples.kopf.dev", "ns1", "forced", bare)
                .expect("the object exists");
            server.remove("kopfexamples.kopf.dev", "ns1", "forced").expect("the object exists");
            failing.env.until(20).await;
            let lines = failing.log.lines().into_iter();
            let told: Vec<_> =
                lines.filter(|it| it.message.contains("although it had the finalizer")).collect();
            let names: Vec<_> = told.iter().map(|it| it.field("object.name")).collect();
            assert_eq!(names, [Some("lost")], "{}", failing.log.text());
        },
    );
}
