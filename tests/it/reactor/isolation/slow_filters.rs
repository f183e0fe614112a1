//! Events during the evaluation of a filter: its handler ends, its object is deleted, its script is edited.

use serde_json::json;

use super::{Script, World, in_both, other};

/// A daemon that ends at the fifth second, a timer that fails permanently then, and an index. The filters take two seconds for
/// objects with a label.
const BRIEF: Script = Script {
    lua: r#"
        local function is_wanted(ctx)
            if ctx.labels.slow then kopf.sleep(2) end
            return true
        end
        kopf.daemon("kopfexamples", { id = "brief", when = is_wanted }, function(ctx)
            ctx.logger:info("daemon " .. ctx.name)
            kopf.sleep(4)
        end)
        kopf.timer("kopfexamples", { id = "tick", interval = 100, when = is_wanted }, function(ctx)
            ctx.logger:info("timer " .. ctx.name)
            kopf.sleep(4)
            kopf.fail("on purpose")
        end)
    "#,
    rhai: r#"
        fn is_wanted(ctx) {
            if "slow" in ctx.labels { kopf.sleep(2); }
            true
        }
        kopf::daemon("kopfexamples", #{ id: "brief", when: is_wanted }, |ctx| {
            ctx.logger.info(`daemon ${ctx.name}`);
            kopf.sleep(4);
        });
        kopf::timer("kopfexamples", #{ id: "tick", interval: 100, when: is_wanted }, |ctx| {
            ctx.logger.info(`timer ${ctx.name}`);
            kopf.sleep(4);
            kopf::fail("on purpose");
        });
    "#,
};

/// A daemon and a timer whose filters take two seconds.
const SLOW: Script = Script {
    lua: r#"
        local function is_wanted() kopf.sleep(2) return true end
        kopf.daemon("kopfexamples", { id = "stay", when = is_wanted }, function(ctx)
            ctx.logger:info("daemon first " .. ctx.name)
            ctx.stopped:wait()
        end)
        kopf.timer("kopfexamples", { id = "tick", interval = 100, when = is_wanted }, function(ctx)
            ctx.logger:info("timer first " .. ctx.name)
        end)
    "#,
    rhai: r#"
        fn is_wanted() { kopf.sleep(2); true }
        kopf::daemon("kopfexamples", #{ id: "stay", when: is_wanted }, |ctx| {
            ctx.logger.info(`daemon first ${ctx.name}`);
            ctx.stopped.wait();
        });
        kopf::timer("kopfexamples", #{ id: "tick", interval: 100, when: is_wanted }, |ctx| {
            ctx.logger.info(`timer first ${ctx.name}`);
        });
    "#,
};

const SLOW_EDITED: Script = Script {
    lua: r#"
        local function is_wanted() kopf.sleep(2) return true end
        kopf.daemon("kopfexamples", { id = "stay", when = is_wanted }, function(ctx)
            ctx.logger:info("daemon second " .. ctx.name)
            ctx.stopped:wait()
        end)
        kopf.timer("kopfexamples", { id = "tick", interval = 100, when = is_wanted }, function(ctx)
            ctx.logger:info("timer second " .. ctx.name)
        end)
    "#,
    rhai: r#"
        fn is_wanted() { kopf.sleep(2); true }
        kopf::daemon("kopfexamples", #{ id: "stay", when: is_wanted }, |ctx| {
            ctx.logger.info(`daemon second ${ctx.name}`);
            ctx.stopped.wait();
        });
        kopf::timer("kopfexamples", #{ id: "tick", interval: 100, when: is_wanted }, |ctx| {
            ctx.logger.info(`timer second ${ctx.name}`);
        });
    "#,
};

/// An index whose filter takes two seconds for objects with a label, and a handler that logs its content.
const INDEX: Script = Script {
    lua: r#"
        local function is_wanted(ctx)
            if ctx.labels.slow then kopf.sleep(2) end
            return true
        end
        kopf.index("kopfexamples", { id = "names", when = is_wanted }, function(ctx)
            return { [ctx.name .. " first"] = true }
        end)
        kopf.on_create("others", { id = "looks" }, function(ctx)
            for _, name in { "one first", "two first", "one second", "two second" } do
                if ctx.names[name] ~= nil then ctx.logger:info("has " .. name) end
            end
        end)
    "#,
    rhai: r#"
        fn is_wanted(ctx) {
            if "slow" in ctx.labels { kopf.sleep(2); }
            true
        }
        kopf::index("kopfexamples", #{ id: "names", when: is_wanted }, |ctx| { let it = #{}; it[ctx.name + " first"] = true; it });
        kopf::on_create("others", #{ id: "looks" }, |ctx| {
            for name in ["one first", "two first", "one second", "two second"] {
                if name in ctx.names { ctx.logger.info(`has ${name}`); }
            }
        });
    "#,
};

const INDEX_EDITED: Script = Script {
    lua: r#"
        local function is_wanted(ctx)
            if ctx.labels.slow then kopf.sleep(2) end
            return true
        end
        kopf.index("kopfexamples", { id = "names", when = is_wanted }, function(ctx)
            return { [ctx.name .. " second"] = true }
        end)
        kopf.on_create("others", { id = "looks" }, function(ctx)
            for _, name in { "one first", "two first", "one second", "two second" } do
                if ctx.names[name] ~= nil then ctx.logger:info("has " .. name) end
            end
        end)
    "#,
    rhai: r#"
        fn is_wanted(ctx) {
            if "slow" in ctx.labels { kopf.sleep(2); }
            true
        }
        kopf::index("kopfexamples", #{ id: "names", when: is_wanted }, |ctx| { let it = #{}; it[ctx.name + " second"] = true; it });
        kopf::on_create("others", #{ id: "looks" }, |ctx| {
            for name in ["one first", "two first", "one second", "two second"] {
                if name in ctx.names { ctx.logger.info(`has ${name}`); }
            }
        });
    "#,
};

#[test]
fn a_daemon_or_timer_that_ends_while_its_filter_is_evaluated_does_not_start_again() {
    in_both(&[BRIEF], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(4).await;
        world.edit("one", json!({ "metadata": { "labels": { "slow": "yes" } } }));
        world.env.until(60).await;
        assert_eq!(world.seconds("daemon one"), [1]);
        assert_eq!(world.seconds("timer one"), [1]);
    });
}

#[test]
fn a_daemon_or_timer_whose_object_is_deleted_while_its_filter_is_evaluated_does_not_start() {
    in_both(&[SLOW], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(2).await;
        // Without a finalizer it is gone at once.
        world.delete("one");
        assert_eq!(world.find("one"), None);
        world.env.until(60).await;
        assert_eq!(world.lines("daemon first"), [""; 0]);
        assert_eq!(world.lines("timer first"), [""; 0]);
    });
}

#[test]
fn a_daemon_or_timer_that_is_edited_while_its_filter_is_evaluated_starts_once() {
    in_both(&[SLOW], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(2).await;
        world.reload(&[SLOW_EDITED]).await.expect("it is accepted");
        world.env.until(60).await;
        assert_eq!(world.lines(" first one"), [""; 0], "the edited handlers are not called");
        assert_eq!(world.lines("daemon second one").len(), 1);
        assert_eq!(world.lines("timer second one").len(), 1);
    });
}

#[test]
fn an_object_that_is_deleted_while_the_filter_of_an_index_is_evaluated_is_not_in_it() {
    in_both(&[INDEX], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.create("two", json!({ "slow": "yes" }));
        world.env.until(2).await;
        world.delete("two");
        world.env.until(10).await;
        world.env.create(other("look"));
        world.env.until(11).await;
        assert_eq!(world.lines("has one"), ["has one first"]);
        assert_eq!(world.lines("has two"), [""; 0]);
    });
}

#[test]
fn an_index_that_is_edited_while_its_filter_is_evaluated_has_only_new_values() {
    in_both(&[INDEX], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.create("two", json!({ "slow": "yes" }));
        world.env.until(2).await;
        world.reload(&[INDEX_EDITED]).await.expect("it is accepted");
        world.env.until(20).await;
        world.env.create(other("look"));
        world.env.until(21).await;
        assert_eq!(world.lines("has one"), ["has one second"]);
        assert_eq!(world.lines("has two"), ["has two second"]);
    });
}
