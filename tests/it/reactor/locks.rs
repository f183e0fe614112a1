//! `kopf.lock`: the release of locks when their calls do not end by themselves.

use kopf::testing::examples;
use serde_json::json;

use super::scripted::{PLACE, in_both};

/// A daemon that holds a lock until it is stopped from outside, and a change handler that needs it.
const LUA: &str = r#"
kopf.daemon("kopfexamples", { id = "holds", cancellation_timeout = 1, when = function(ctx) return ctx.spec.holds end }, function(ctx)
    kopf.lock("one", function()
        ctx.logger:info("SAYS holds VERSION")
        if ctx.spec.computes then
            while true do end
        end
        kopf.sleep("1h")
    end)
end)
kopf.on_create("kopfexamples", { id = "waits", when = function(ctx) return not ctx.spec.holds end }, function(ctx)
    kopf.lock("one", { timeout = "10m" }, function() ctx.logger:info("SAYS got") end)
end)
"#;

const RHAI: &str = r#"
kopf::daemon("kopfexamples", #{ id: "holds", cancellation_timeout: 1, when: |ctx| ctx.spec.holds == true }, |ctx| {
    kopf::lock("one", || {
        ctx.logger.info("SAYS holds VERSION");
        if ctx.spec.computes == true {
            loop {}
        }
        kopf::sleep("1h");
    });
});
kopf::on_create("kopfexamples", #{ id: "waits", when: |ctx| ctx.spec.holds != true }, |ctx| {
    kopf::lock("one", #{ timeout: "10m" }, || ctx.logger.info("SAYS got"));
});
"#;

#[test]
fn a_daemon_that_is_cancelled_frees_its_lock() {
    in_both(|world| async move {
        world.create("holder", &json!({ "holds": true }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        world.create("waiter", &json!({}));
        world.env.until(60).await;
        assert_eq!(world.said(), ["holds VERSION"], "{}", world.log.text());
        world.env.delete(&examples().qualified(), &format!("{PLACE}/holder"));
        world.env.until(70).await;
        assert_eq!(world.said(), ["holds VERSION", "got"], "{}", world.log.text());
        process.running.stop().await;
    });
}

#[test]
fn a_call_that_is_aborted_frees_its_lock() {
    in_both(|world| async move {
        world.create("holder", &json!({ "holds": true, "computes": true }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        assert!(world.log.has("used more than"), "{}", world.log.text());
        world.create("waiter", &json!({}));
        // The daemon is called again after its backoff, and aborted again.
        world.env.until(300).await;
        assert!(world.said().contains(&"got".to_owned()), "{}", world.log.text());
        process.running.stop().await;
    });
}

#[test]
fn a_reload_frees_the_locks_of_daemons_that_it_ends_and_keeps_those_of_others() {
    in_both(|world| async move {
        world.create("holder", &json!({ "holds": true }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        world.create("waiter", &json!({}));
        world.env.until(20).await;
        // Another line in the script does not affect the daemon: it keeps running, and keeps its lock.
        let same = world.source(&format!("{LUA}\n-- more\n"), &format!("{RHAI}\n// more\n"));
        process.reload(same).await;
        world.env.until(40).await;
        assert_eq!(world.said(), ["holds VERSION"], "{}", world.log.text());
        let edited =
            |text: &str| text.replace("VERSION", "2").replace("lock(\"one\", f", "lock(\"two\", f");
        let edited = |text: &str| edited(text).replacen("lock(\"one\", ||", "lock(\"two\", ||", 1);
        process.reload(world.source(&edited(LUA), &edited(RHAI))).await;
        world.env.until(60).await;
        let mut said = world.said();
        said.sort();
        assert_eq!(said, ["got", "holds 2", "holds VERSION"], "{}", world.log.text());
        process.running.stop().await;
    });
}
