//! Event handlers.

use serde_json::json;

use super::{GOOD, Script, World, in_both};

/// An event handler that never returns.
const SLEEPING: Script = Script {
    lua: r#"
        kopf.on_event("kopfexamples", { id = "h1" }, function(ctx) kopf.sleep(1000000000) end)
        kopf.on_event("kopfexamples", { id = "h2" }, function(ctx) kopf.sleep(1000000000) end)
    "#,
    rhai: r#"
        kopf::on_event("kopfexamples", #{ id: "h1" }, |ctx| { kopf::sleep(1000000000); });
        kopf::on_event("kopfexamples", #{ id: "h2" }, |ctx| { kopf::sleep(1000000000); });
    "#,
};

#[test]
fn an_event_handler_that_waits_for_ever_delays_others_once_and_not_for_long() {
    in_both(&[SLEEPING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        for second in [130, 140, 150] {
            world.env.until(second).await;
            world.edit("one", json!({ "spec": { "n": second } }));
        }
        world.env.until(200).await;
        let created = world.seconds("good create one");
        assert!(created.len() == 1 && created[0] <= 121, "{created:?}");
        assert_eq!(world.seconds("good update one"), [130, 140, 150]);
        assert_eq!(world.seconds("good event one")[0], 1, "scripts do not wait for each other");
        let lines = world.lines("Handler 'h1'");
        let line = lines.iter().find(|it| it.contains("settings.execution.event_timeout"));
        assert!(line.is_some(), "{lines:#?}");
    });
}

/// Event handlers that fail and that loop.
const FAILING: Script = Script {
    lua: r#"
        kopf.on_event("kopfexamples", { id = "h1" }, function(ctx) error("no idea") end)
        kopf.on_event("kopfexamples", { id = "h2" }, function(ctx) while true do end end)
    "#,
    rhai: r#"
        kopf::on_event("kopfexamples", #{ id: "h1" }, |ctx| { throw "no idea"; });
        kopf::on_event("kopfexamples", #{ id: "h2" }, |ctx| { loop {} });
    "#,
};

#[test]
fn event_handlers_that_fail_or_spin_cost_nobody_else() {
    in_both(&[FAILING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(3).await;
        world.edit("one", json!({ "spec": { "n": 3 } }));
        world.env.until(5).await;
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.seconds("good update one"), [3]);
    });
}

#[test]
fn events_of_an_honest_slow_handler_are_all_seen() {
    const SLOW: Script = Script {
        lua: r#"
            kopf.on_event("kopfexamples", { id = "slow" }, function(ctx)
                kopf.sleep(20)
                ctx.logger:info("slow " .. tostring(ctx.spec.n))
            end)
        "#,
        rhai: r#"
            kopf::on_event("kopfexamples", #{ id: "slow" }, |ctx| {
                kopf::sleep(20);
                ctx.logger.info(`slow ${ctx.spec.n}`);
            });
        "#,
    };
    in_both(&[SLOW], &[], &async |world: &World| {
        for number in 1..=4_u64 {
            world.env.until(number).await;
            if number == 1 {
                world.create("one", json!({}));
            } else {
                world.edit("one", json!({ "spec": { "n": number } }));
            }
        }
        world.env.until(100).await;
        let lines = world.lines("slow ");
        let seen = lines.iter().filter(|it| it.starts_with("slow ")).collect::<Vec<_>>();
        assert_eq!(seen.len(), 4, "{seen:?}");
        assert_eq!(seen[1..], ["slow 2", "slow 3", "slow 4"]);
    });
}

/// Event handlers of two scripts that run at the same time and change the object; the server rejects the change of the first one.
const REFUSED: [Script; 2] = [
    Script {
        lua: r#"
            kopf.on_event("kopfexamples", { id = "bad" }, function(ctx)
                ctx.patch.metadata.labels.bad = "not fine"
                kopf.sleep(2)
                ctx.patch.metadata.labels.worse = "not fine"
            end)
        "#,
        rhai: r#"
            kopf::on_event("kopfexamples", #{ id: "bad" }, |ctx| {
                ctx.patch.metadata.labels.bad = "not fine";
                kopf::sleep(2);
                ctx.patch.metadata.labels.worse = "not fine";
            });
        "#,
    },
    Script {
        lua: r#"
            kopf.on_event("kopfexamples", { id = "fine" }, function(ctx)
                kopf.sleep(1)
                ctx.patch.metadata.labels.fine = "fine"
            end)
        "#,
        rhai: r#"
            kopf::on_event("kopfexamples", #{ id: "fine" }, |ctx| {
                kopf::sleep(1);
                ctx.patch.metadata.labels.fine = "fine";
            });
        "#,
    },
];

#[test]
fn what_an_event_handler_changes_in_vain_is_not_blamed_on_those_that_run_beside_it() {
    let [bad, fine] = REFUSED;
    in_both(&[bad, fine, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(20).await;
        let object = world.find("one").expect("the object exists");
        assert_eq!(object["metadata"]["labels"], json!({ "fine": "fine" }));
        let lines = world.lines("The server rejected");
        let is_bad =
            |it: &String| it.starts_with("The server rejected the changes of Handler 'bad'");
        assert!(!lines.is_empty() && lines.iter().all(is_bad), "{lines:#?}");
        assert_eq!(world.seconds("good create one").len(), 1);
        assert_eq!(world.lines("Throttling"), Vec::<String>::new());
    });
}
