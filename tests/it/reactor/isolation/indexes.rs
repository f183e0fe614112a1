//! Index functions, and the handlers that wait for their indexes.

use std::time::Duration;

use kopf::testing::Environment;
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::json;

use super::{FINALIZER, GOOD, Script, World, in_both, in_both_prepared, labeled, other};

/// An index function that never returns, and a handler that reads the index.
const SLEEPING: Script = Script {
    lua: r#"
        kopf.index("kopfexamples", { id = "slow" }, function(ctx) kopf.sleep(1000000000) end)
        kopf.on_create("others", { id = "looks", labels = { look = "yes" } }, function(ctx)
            ctx.logger:info("looks " .. tostring(ctx.slow ~= nil))
        end)
    "#,
    rhai: r#"
        kopf::index("kopfexamples", #{ id: "slow" }, |ctx| { kopf::sleep(1000000000); });
        kopf::on_create("others", #{ id: "looks", labels: #{ look: "yes" } }, |ctx| {
            ctx.logger.info(`looks ${ctx.slow != ()}`);
        });
    "#,
};

#[test]
fn an_index_function_that_waits_for_ever_holds_up_only_who_uses_its_index_and_not_for_long() {
    let mut looking = other("p");
    looking["metadata"]["labels"] = json!({ "look": "yes" });
    let before = [labeled("one", json!({})), labeled("two", json!({})), other("o"), looking];
    in_both(&[SLEEPING, GOOD], &before, &async |world: &World| {
        world.env.until(200).await;
        assert_eq!(world.seconds("good other o"), [0], "a script that does not use the index");
        let looks = world.seconds("looks true");
        assert!(looks.len() == 1 && (30..=61).contains(&looks[0]), "{looks:?}");
        for name in ["one", "two"] {
            let created = world.seconds(&format!("good create {name}"));
            assert!(created.len() == 1 && created[0] <= 61, "{name}: {created:?}");
        }
        let lines = world.lines("Indexer 'slow'");
        let line = lines.iter().find(|it| it.contains("settings.execution.event_timeout"));
        assert!(line.is_some(), "{lines:#?}");
        world.edit("one", json!({ "spec": { "n": 1 } }));
        world.env.until(210).await;
        assert_eq!(world.seconds("good update one"), [200], "it is not called again at once");
    });
}

/// An index that is complete late, because its list is slow.
const USING: Script = Script {
    lua: r#"
        kopf.index("others", { id = "slow" }, function(ctx) return { [ctx.name] = true } end)
        kopf.on_create("kopfexamples", { id = "uses", labels = { both = "yes" } }, function(ctx)
            ctx.logger:info("uses " .. tostring(ctx.slow.o ~= nil) .. " for " .. ctx.name)
        end)
        kopf.daemon("kopfexamples", { id = "stays", when = function(ctx) return ctx.slow.o ~= nil end }, function(ctx)
            ctx.logger:info("stays with " .. ctx.name)
        end)
    "#,
    rhai: r#"
        kopf::index("others", #{ id: "slow" }, |ctx| { let it = #{}; it[ctx.name] = true; it });
        kopf::on_create("kopfexamples", #{ id: "uses", labels: #{ both: "yes" } }, |ctx| {
            ctx.logger.info(`uses ${"o" in ctx.slow} for ${ctx.name}`);
        });
        kopf::daemon("kopfexamples", #{ id: "stays", when: |ctx| "o" in ctx.slow }, |ctx| {
            ctx.logger.info(`stays with ${ctx.name}`);
        });
    "#,
};

#[test]
fn handlers_of_one_object_wait_only_for_the_indexes_that_their_scripts_name() {
    let before = [other("o"), labeled("one", json!({})), labeled("both", json!({ "both": "yes" }))];
    // The list of the others is slow.
    let slow = |env: &Environment| {
        let late = FaultEffect::Latency(Duration::from_secs(20));
        env.server.fault(Fault::always(late).on("GET", "others"));
    };
    in_both_prepared(&[USING, GOOD], &before, slow, &async |world: &World| {
        world.env.until(5).await;
        assert_eq!(world.seconds("good create one"), [0]);
        assert!(world.lines("uses").is_empty() && world.lines("stays").is_empty());
        world.edit("one", json!({ "spec": { "n": 5 } }));
        world.edit("both", json!({ "spec": { "n": 5 } }));
        world.env.until(60).await;
        assert_eq!(world.seconds("good create one"), [0]);
        assert_eq!(world.seconds("good update one"), [5]);
        assert_eq!(world.seconds("stays with one"), [20]);
        // Handlers that share a change with a waiting one see the same state of it.
        assert_eq!(world.seconds("uses true for both"), [20]);
        assert_eq!(world.seconds("good create both"), [20]);
        for name in ["one", "both"] {
            let object = world.find(name).expect("it is there");
            let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
            assert_eq!(annotations.len(), 1, "all is handled: {annotations:?}");
        }
    });
}

/// A handler that waits for the daemon of another script, which has an index.
const WAITING: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "waits" }, function(ctx)
            ctx.logger:info("waits with " .. ctx.name)
            while not ctx.memo.started do kopf.sleep(1) end
            ctx.logger:info("waited with " .. ctx.name)
        end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "waits" }, |ctx| {
            ctx.logger.info(`waits with ${ctx.name}`);
            while ctx.memo.get("started", false) != true { kopf::sleep(1); }
            ctx.logger.info(`waited with ${ctx.name}`);
        });
    "#,
};

/// Daemons and timers that need an index, some of them by their filters.
const BACKGROUND: Script = Script {
    lua: r#"
        kopf.index("others", { id = "slow" }, function(ctx) return { [ctx.name] = true } end)
        kopf.daemon("kopfexamples", { id = "starts", when = function(ctx) return ctx.slow.o ~= nil end }, function(ctx)
            ctx.logger:info("starts with " .. ctx.name)
            ctx.memo.started = true
        end)
        kopf.daemon("kopfexamples", { id = "never", when = function(ctx) return ctx.slow.p ~= nil end }, function(ctx)
            ctx.logger:info("never with " .. ctx.name)
        end)
        kopf.timer("kopfexamples", { id = "ticks", interval = 100 }, function(ctx)
            ctx.logger:info("ticks with " .. ctx.name)
        end)
    "#,
    rhai: r#"
        kopf::index("others", #{ id: "slow" }, |ctx| { let it = #{}; it[ctx.name] = true; it });
        kopf::daemon("kopfexamples", #{ id: "starts", when: |ctx| "o" in ctx.slow }, |ctx| {
            ctx.logger.info(`starts with ${ctx.name}`);
            ctx.memo.started = true;
        });
        kopf::daemon("kopfexamples", #{ id: "never", when: |ctx| "p" in ctx.slow }, |ctx| {
            ctx.logger.info(`never with ${ctx.name}`);
        });
        kopf::timer("kopfexamples", #{ id: "ticks", interval: 100 }, |ctx| {
            ctx.logger.info(`ticks with ${ctx.name}`);
        });
    "#,
};

#[test]
fn daemons_start_when_their_indexes_are_complete_although_a_handler_of_another_script_runs() {
    let before = [other("o"), labeled("one", json!({}))];
    let slow = |env: &Environment| {
        let late = FaultEffect::Latency(Duration::from_secs(20));
        env.server.fault(Fault::always(late).on("GET", "others"));
    };
    in_both_prepared(&[BACKGROUND, WAITING], &before, slow, &async |world: &World| {
        world.env.until(90).await;
        assert_eq!(
            world.seconds("waits with one"),
            [0],
            "no script waits for the index of another"
        );
        assert_eq!(world.seconds("starts with one"), [20]);
        assert_eq!(world.seconds("ticks with one"), [20]);
        let waited = world.seconds("waited with one");
        assert!(waited == [20] || waited == [21], "it looks each second: {waited:?}");
        assert!(world.lines("never with").is_empty());
        world.env.until(150).await;
        assert_eq!(world.seconds("starts with one"), [20], "once");
        assert_eq!(world.seconds("ticks with one"), [20, 120], "no second timer");
        assert_eq!(world.finalizers("one"), json!([FINALIZER]));
        world.delete("one");
        world.env.until(200).await;
        assert!(world.find("one").is_none(), "daemons and timers have ended");
    });
}
