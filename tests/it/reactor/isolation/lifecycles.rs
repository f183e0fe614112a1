//! Lifecycle functions: one is the default of all scripts.

use serde_json::json;

use super::{GOOD, Script, World, in_both};

/// A lifecycle that fails until an object with the role `ready` exists.
const FAILING: Script = Script {
    lua: r#"
        kopf.index("kopfexamples", { id = "ready", labels = { role = "ready" } }, function() return { yes = true } end)
        kopf.set_default_lifecycle(function(handlers, ctx)
            if not ctx.ready.yes then error("not ready") end
            return handlers
        end)
        kopf.on_create("kopfexamples", { id = "own", backoff = 3 }, function(ctx) ctx.logger:info("own create " .. ctx.name) end)
        kopf.on_create("kopfexamples", { id = "few", backoff = 1, retries = 3 }, function(ctx) ctx.logger:info("few create " .. ctx.name) end)
    "#,
    rhai: r#"
        kopf::index("kopfexamples", #{ id: "ready", labels: #{ role: "ready" } }, |ctx| #{ yes: true });
        fn choose(handlers, ctx) {
            if !("yes" in ctx.ready) { throw "not ready"; }
            handlers
        }
        kopf::set_default_lifecycle(choose);
        kopf::on_create("kopfexamples", #{ id: "own", backoff: 3 }, |ctx| { ctx.logger.info(`own create ${ctx.name}`); });
        kopf::on_create("kopfexamples", #{ id: "few", backoff: 1, retries: 3 }, |ctx| { ctx.logger.info(`few create ${ctx.name}`); });
    "#,
};

#[test]
fn a_lifecycle_that_fails_costs_only_the_handlers_of_its_script() {
    in_both(&[FAILING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(9).await;
        assert_eq!(world.seconds("good create one"), [1]);
        assert!(world.lines("own create").is_empty());
        world.create("two", json!({ "role": "ready" }));
        world.env.until(30).await;
        assert_eq!(world.seconds("own create one"), [10], "after its backoff");
        assert!(world.lines("few create one").is_empty(), "it has no attempts left");
        assert_eq!(world.seconds("good create one"), [1]);
        let lines = world.lines("Handler 'own' failed temporarily");
        assert!(lines[0].contains("the lifecycle") && lines[0].contains("not ready"), "{lines:?}");
        assert_eq!(world.lines("Throttling"), Vec::<String>::new());
    });
}

/// A lifecycle that never returns.
const SLEEPING: Script = Script {
    lua: r#"
        kopf.set_default_lifecycle(function(handlers, ctx) kopf.sleep(1000000) return handlers end)
        kopf.on_create("kopfexamples", { id = "own" }, function(ctx) end)
    "#,
    rhai: r#"
        fn choose(handlers, ctx) { kopf::sleep(1000000); handlers }
        kopf::set_default_lifecycle(choose);
        kopf::on_create("kopfexamples", #{ id: "own" }, |ctx| ());
    "#,
};

#[test]
fn a_lifecycle_that_does_not_answer_is_not_waited_for_for_long() {
    in_both(&[SLEEPING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(40).await;
        let created = world.seconds("good create one");
        assert!(created.len() == 1 && created[0] <= 11, "{created:?}");
    });
}
