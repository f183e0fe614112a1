//! Objects that a person suspends and resumes.

use serde_json::{Value, json};

use super::{Failing, Script, in_both};

const SCRIPT: Script = Script {
    lua: r#"
        kopf.on_update("kopfexamples", { id = "changed" }, function(ctx)
            ctx.logger:info("changed to " .. tostring(ctx.spec.size))
        end)
        kopf.on_event("kopfexamples", { id = "seen" }, function(ctx) ctx.logger:info("it was seen") end)
        kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) ctx.logger:info("it went") end)
        kopf.timer("kopfexamples", { id = "tick", interval = 10 }, function(ctx) ctx.logger:info("it ticks") end)
    "#,
    rhai: r#"
        kopf::on_update("kopfexamples", #{ id: "changed" }, |ctx| {
            ctx.logger.info(`changed to ${ctx.spec.size}`);
        });
        kopf::on_event("kopfexamples", #{ id: "seen" }, |ctx| { ctx.logger.info("it was seen"); });
        kopf::on_delete("kopfexamples", #{ id: "gone" }, |ctx| { ctx.logger.info("it went"); });
        kopf::timer("kopfexamples", #{ id: "tick", interval: 10 }, |ctx| { ctx.logger.info("it ticks"); });
    "#,
};

const EXAMPLES: &str = "kopfexamples.kopf.dev";

fn annotation(value: Option<&str>) -> Value {
    json!({ "metadata": { "annotations": { "kopf.zalando.org/kopf-suspended": value } } })
}

fn resize(failing: &Failing, size: u64) {
    failing.env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": size } }));
}

#[test]
fn a_suspended_object_has_no_handlers_and_its_changes_are_handled_afterwards_as_one() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            let count = |text: &str| failing.log.count(text);
            failing.create("a");
            failing.env.until(25).await;
            assert_eq!((count("it ticks"), count("changed to")), (3, 0));
            failing.env.edit(EXAMPLES, "ns1/a", annotation(Some("a backup")));
            failing.env.until(28).await;
            let (ticks, seen) = (count("it ticks"), count("it was seen"));
            resize(failing, 1);
            failing.env.until(60).await;
            resize(failing, 2);
            failing.env.until(100).await;
            assert_eq!(
                (count("it ticks"), count("it was seen"), count("changed to")),
                (ticks, seen, 0)
            );
            failing.env.edit(EXAMPLES, "ns1/a", annotation(None));
            failing.env.until(115).await;
            assert_eq!((count("changed to"), count("changed to 2")), (1, 1));
            assert!(count("it ticks") > ticks && count("it was seen") > seen);
        },
    );
}

#[test]
fn the_deletion_of_a_suspended_object_is_handled() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(5).await;
            failing.env.edit(EXAMPLES, "ns1/a", annotation(Some("")));
            failing.env.until(10).await;
            failing.env.delete(EXAMPLES, "ns1/a");
            failing.env.until(20).await;
            assert_eq!(failing.log.count("it went"), 1);
            assert!(failing.env.server.get(EXAMPLES, "ns1", "a").is_none());
        },
    );
}

#[test]
fn a_restart_keeps_the_suspension() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(5).await;
            failing.env.edit(EXAMPLES, "ns1/a", annotation(Some("")));
            failing.env.until(10).await;
            let again =
                Failing::start(failing.env.clone(), ("fails.lua", SCRIPT.lua), |_| {}).await;
            resize(failing, 5);
            failing.env.until(60).await;
            assert_eq!((again.log.count("it ticks"), again.log.count("it was seen")), (0, 0));
            again.running.stop().await;
        },
    );
}
