//! Filters: `when`, and functions of labels, annotations and fields.

use serde_json::{Value, json};

use super::{FINALIZER, GOOD, Script, World, in_both};

/// A handler of each category whose filter fails.
const FAILING: Script = Script {
    lua: r#"
        local function fails(ctx) return ctx.spec.no.such.field == 1 end
        local function fails_of(value, ctx) error("no idea") end
        local function bad(ctx) ctx.logger:info("hostile " .. ctx.name) end
        kopf.on_create("kopfexamples", { id = "h1", when = fails }, bad)
        kopf.on_update("kopfexamples", { id = "h2", labels = { x = fails_of } }, bad)
        kopf.on_update("kopfexamples", { id = "h3", field = "spec.n", new = fails_of }, bad)
        kopf.on_event("kopfexamples", { id = "h4", annotations = { x = fails_of } }, bad)
        kopf.daemon("kopfexamples", { id = "h5", when = kopf.not_(fails) }, bad)
        kopf.timer("kopfexamples", { id = "h6", interval = 1, when = fails }, bad)
        kopf.index("kopfexamples", { id = "h7", when = fails }, bad)
    "#,
    rhai: r#"
        fn fails(ctx) { ctx.spec.no.such.field == 1 }
        fn fails_of(value, ctx) { throw "no idea" }
        fn bad(ctx) { ctx.logger.info(`hostile ${ctx.name}`); }
        kopf::on_create("kopfexamples", #{ id: "h1", when: fails }, bad);
        kopf::on_update("kopfexamples", #{ id: "h2", labels: #{ x: fails_of } }, bad);
        kopf::on_update("kopfexamples", #{ id: "h3", field: "spec.n", "new": fails_of }, bad);
        kopf::on_event("kopfexamples", #{ id: "h4", annotations: #{ x: fails_of } }, bad);
        kopf::daemon("kopfexamples", #{ id: "h5", when: kopf::not_(fails) }, bad);
        kopf::timer("kopfexamples", #{ id: "h6", interval: 1, when: fails }, bad);
        kopf::index("kopfexamples", #{ id: "h7", when: fails }, bad);
    "#,
};

#[test]
fn a_filter_that_fails_costs_only_its_own_handler() {
    in_both(&[FAILING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        for second in [10, 11, 20] {
            world.env.until(second).await;
            world.edit("one", json!({ "spec": { "n": second } }));
        }
        world.env.until(30).await;
        world.delete("one");
        world.env.until(60).await;
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.seconds("good update one"), [10, 11, 20]);
        assert_eq!(world.seconds("good delete one"), [30]);
        assert!(world.seconds("good event one").contains(&20));
        assert_eq!(
            world.find("one"),
            None,
            "no filter of a handler that needs the finalizer fails"
        );
        assert_eq!(world.lines("hostile"), Vec::<String>::new());
        assert_eq!(world.lines("Throttling"), Vec::<String>::new());
    });
}

#[test]
fn a_filter_that_fails_is_reported_with_its_handler_and_its_next_attempt() {
    in_both(&[FAILING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(9).await;
        let lines = world.lines("Handler 'h1'");
        let text =
            "Handler 'h1' is skipped: its filter 'fails' failed (attempt 1), retrying in 1 s: ";
        assert!(lines[0].starts_with(text), "{lines:#?}");
        assert_eq!(world.seconds("Handler 'h1' is skipped"), [1, 2, 3, 5, 8]);
        assert_eq!(world.seconds("Daemon 'h5' is skipped"), [1, 2, 3, 5, 8]);
        assert_eq!(world.seconds("Indexer 'h7' is skipped"), [1, 2, 3, 5, 8]);
        let events = world.lines("Handler 'h4' is skipped");
        let text = "Handler 'h4' is skipped: its filter 'fails_of' failed, retrying with the next event: no idea";
        assert!(events.iter().all(|it| it.starts_with(text)) && !events.is_empty(), "{events:#?}");
    });
}

/// Filters that loop, in handlers of several categories.
const SPINNING: Script = Script {
    lua: r#"
        local function spins() while true do end end
        local function bad(ctx) ctx.logger:info("hostile " .. ctx.name) end
        kopf.on_event("kopfexamples", { id = "h1", when = spins }, bad)
        kopf.on_create("kopfexamples", { id = "h2", when = spins }, bad)
        kopf.daemon("kopfexamples", { id = "h3", when = spins }, bad)
    "#,
    rhai: r#"
        fn spins(ctx) { loop {} }
        fn bad(ctx) { ctx.logger.info(`hostile ${ctx.name}`); }
        kopf::on_event("kopfexamples", #{ id: "h1", when: spins }, bad);
        kopf::on_create("kopfexamples", #{ id: "h2", when: spins }, bad);
        kopf::daemon("kopfexamples", #{ id: "h3", when: spins }, bad);
    "#,
};

#[test]
fn a_filter_that_spins_costs_only_its_own_handler() {
    in_both(&[SPINNING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(5).await;
        world.edit("one", json!({ "spec": { "n": 5 } }));
        world.env.until(8).await;
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.seconds("good update one"), [5]);
        assert_eq!(world.lines("hostile"), Vec::<String>::new());
    });
}

/// Filters that sleep, in handlers of all categories.
const SLEEPING: Script = Script {
    lua: r#"
        local function sleeps() kopf.sleep(1000000) return true end
        local function bad(ctx) ctx.logger:info("hostile " .. ctx.name) end
        kopf.index("kopfexamples", { id = "h1", when = sleeps }, bad)
        kopf.on_event("kopfexamples", { id = "h2", when = sleeps }, bad)
        kopf.daemon("kopfexamples", { id = "h3", when = sleeps }, bad)
        kopf.on_create("kopfexamples", { id = "h4", when = sleeps }, bad)
        kopf.on_update("kopfexamples", { id = "h5", labels = { x = sleeps } }, bad)
    "#,
    rhai: r#"
        fn sleeps(ctx) { kopf::sleep(1000000); true }
        fn sleeps_of(value) { kopf::sleep(1000000); true }
        fn bad(ctx) { ctx.logger.info(`hostile ${ctx.name}`); }
        kopf::index("kopfexamples", #{ id: "h1", when: sleeps }, bad);
        kopf::on_event("kopfexamples", #{ id: "h2", when: sleeps }, bad);
        kopf::daemon("kopfexamples", #{ id: "h3", when: sleeps }, bad);
        kopf::on_create("kopfexamples", #{ id: "h4", when: sleeps }, bad);
        kopf::on_update("kopfexamples", #{ id: "h5", labels: #{ x: sleeps_of } }, bad);
    "#,
};

#[test]
fn filters_that_sleep_delay_others_once_and_not_for_long() {
    in_both(&[SLEEPING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        for second in [20, 30, 60] {
            world.env.until(second).await;
            world.edit("one", json!({ "spec": { "n": second } }));
        }
        world.env.until(90).await;
        let created = world.seconds("good create one");
        assert!(created.len() == 1 && created[0] <= 15, "all filters together: {created:?}");
        assert_eq!(world.seconds("good update one"), [20, 30, 60]);
        let lines = world.lines("Handler 'h4' is skipped");
        assert!(lines[0].contains("no result within"), "{lines:#?}");
        assert_eq!(world.lines("hostile"), Vec::<String>::new());
    });
}

/// A creation whose filter fails until an object with the role `ready` exists.
const LATE: Script = Script {
    lua: r#"
        kopf.index("kopfexamples", { id = "ready", labels = { role = "ready" } }, function() return { yes = true } end)
        local function is_ready(ctx)
            if not ctx.ready.yes then error("not ready") end
            return true
        end
        local function says(what)
            return function(ctx) ctx.logger:info("late " .. what .. " " .. ctx.name) end
        end
        local labels = { role = kopf.ABSENT }
        kopf.on_create("kopfexamples", { id = "l1", labels = labels, when = is_ready }, says("create"))
        kopf.on_delete("kopfexamples", { id = "l2", labels = labels, when = is_ready }, says("delete"))
        kopf.daemon("kopfexamples", { id = "l3", labels = labels, when = is_ready }, says("daemon"))
    "#,
    rhai: r#"
        kopf::index("kopfexamples", #{ id: "ready", labels: #{ role: "ready" } }, |ctx| #{ yes: true });
        fn is_ready(ctx) {
            if !("yes" in ctx.ready) { throw "not ready"; }
            true
        }
        let labels = #{ role: kopf::ABSENT };
        kopf::on_create("kopfexamples", #{ id: "l1", labels: labels, when: is_ready }, |ctx| { ctx.logger.info(`late create ${ctx.name}`); });
        kopf::on_delete("kopfexamples", #{ id: "l2", labels: labels, when: is_ready }, |ctx| { ctx.logger.info(`late delete ${ctx.name}`); });
        kopf::daemon("kopfexamples", #{ id: "l3", labels: labels, when: is_ready }, |ctx| { ctx.logger.info(`late daemon ${ctx.name}`); });
    "#,
};

#[test]
fn a_filter_that_works_again_brings_its_handler_back_and_calls_no_other_again() {
    in_both(&[LATE, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(10).await;
        assert!(!is_handled(world.find("one").as_ref()), "the change is not over");
        world.create("two", json!({ "role": "ready" }));
        world.env.until(60).await;
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.seconds("late create one"), [13], "with the pauses of other errors");
        assert_eq!(world.seconds("late daemon one"), [13]);
        let object = world.find("one");
        assert!(is_handled(object.as_ref()), "{object:?}");
    });
}

fn is_handled(object: Option<&Value>) -> bool {
    let annotations = object.map(|it| &it["metadata"]["annotations"]);
    let annotations = annotations.and_then(Value::as_object);
    annotations.is_some_and(|it| {
        it.len() == 1 && it.contains_key("kopf.zalando.org/last-handled-configuration")
    })
}

#[test]
fn a_deletion_waits_for_a_filter_that_fails_and_calls_no_other_handler_twice() {
    in_both(&[LATE, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(6).await;
        world.delete("one");
        world.env.until(10).await;
        assert_eq!(world.seconds("good delete one"), [6]);
        assert_eq!(world.finalizers("one"), json!([FINALIZER]), "somebody may need it");
        world.create("two", json!({ "role": "ready" }));
        world.env.until(60).await;
        assert_eq!(world.seconds("good delete one"), [6]);
        assert_eq!(world.lines("late delete one").len(), 1);
        assert_eq!(world.find("one"), None);
    });
}

/// The filter of the only handler that needs the finalizer fails for objects with a label.
const BREAKABLE: Script = Script {
    lua: r#"
        local function is_wanted(ctx)
            if ctx.labels.broken then error("broken") end
            return ctx.labels.wanted == "yes"
        end
        kopf.on_delete("kopfexamples", { id = "gone", when = is_wanted }, function(ctx)
            ctx.logger:info("goes " .. ctx.name)
        end)
    "#,
    rhai: r#"
        fn is_wanted(ctx) {
            if "broken" in ctx.labels { throw "broken"; }
            ctx.labels.get("wanted") == "yes"
        }
        kopf::on_delete("kopfexamples", #{ id: "gone", when: is_wanted }, |ctx| { ctx.logger.info(`goes ${ctx.name}`); });
    "#,
};

#[test]
fn the_finalizer_stays_as_it_is_while_nobody_knows_whether_it_is_needed() {
    in_both(&[BREAKABLE], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("held", json!({ "wanted": "yes" }));
        world.create("free", json!({ "wanted": "yes", "broken": "yes" }));
        world.env.until(3).await;
        assert_eq!(world.finalizers("held"), json!([FINALIZER]));
        assert_eq!(world.finalizers("free"), Value::Null);
        world.edit("held", json!({ "metadata": { "labels": { "broken": "yes" } } }));
        world.env.until(20).await;
        assert_eq!(world.finalizers("held"), json!([FINALIZER]));
        world.delete("held");
        world.env.until(40).await;
        assert_eq!(world.finalizers("held"), json!([FINALIZER]));
        world.edit("held", json!({ "metadata": { "labels": { "broken": null } } }));
        world.edit("free", json!({ "metadata": { "labels": { "broken": null } } }));
        world.env.until(80).await;
        assert_eq!(world.lines("goes held").len(), 1);
        assert_eq!(world.find("held"), None);
        assert_eq!(world.finalizers("free"), json!([FINALIZER]));
    });
}

/// A creation whose filter fails for objects with a label.
const PICKY: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "picky", when = function(ctx)
            if ctx.labels.broken then error("broken") end
            return true
        end }, function(ctx)
            kopf.register({ id = "sub" }, function() ctx.logger:info("picky create " .. ctx.name) end)
        end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "picky", when: |ctx| {
            if "broken" in ctx.labels { throw "broken"; }
            true
        } }, |ctx| {
            kopf.register(#{ id: "sub" }, |sub| { sub.logger.info(`picky create ${sub.name}`); });
        });
    "#,
};

#[test]
fn an_edit_that_makes_the_filter_work_brings_the_creation_and_is_an_update_for_the_others() {
    in_both(&[PICKY, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({ "broken": "yes" }));
        world.env.until(10).await;
        world.edit("one", json!({ "metadata": { "labels": { "broken": null } } }));
        world.env.until(30).await;
        assert_eq!(world.seconds("picky create one"), [10], "an edit is not waited for");
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.seconds("good update one"), [10]);
        let object = world.find("one");
        assert!(is_handled(object.as_ref()), "nothing is left behind: {object:?}");
    });
}

#[test]
fn an_edit_that_does_not_make_the_filter_work_completes_the_change_without_its_handler() {
    in_both(&[PICKY, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({ "broken": "yes" }));
        world.env.until(10).await;
        world.edit("one", json!({ "spec": { "n": 1 } }));
        world.env.until(30).await;
        assert_eq!(world.seconds("good update one"), [10]);
        let lines = world.lines("A change is completed without Handler 'picky'");
        assert_eq!(lines.len(), 1, "{lines:?}");
        world.edit("one", json!({ "metadata": { "labels": { "broken": null } } }));
        world.env.until(90).await;
        assert_eq!(world.seconds("good update one"), [10, 30]);
        assert!(is_handled(world.find("one").as_ref()));
    });
}

/// The filter of a daemon that runs begins to fail.
const WATCHER: Script = Script {
    lua: r#"
        kopf.daemon("kopfexamples", { id = "stays", when = function(ctx)
            if ctx.labels.broken then error("broken") end
            return true
        end }, function(ctx)
            ctx.logger:info("begins")
            ctx.stopped:wait()
            ctx.logger:info("ends")
        end)
    "#,
    rhai: r#"
        kopf::daemon("kopfexamples", #{ id: "stays", when: |ctx| {
            if "broken" in ctx.labels { throw "broken"; }
            true
        } }, |ctx| {
            ctx.logger.info("begins");
            ctx.stopped.wait();
            ctx.logger.info("ends");
        });
    "#,
};

#[test]
fn a_daemon_runs_on_while_its_filter_fails_and_stops_with_its_object() {
    in_both(&[WATCHER, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(5).await;
        world.edit("one", json!({ "metadata": { "labels": { "broken": "yes" } } }));
        world.env.until(30).await;
        assert_eq!((world.seconds("begins"), world.seconds("ends")), (vec![1], vec![]));
        world.delete("one");
        world.env.until(60).await;
        assert_eq!((world.seconds("begins"), world.seconds("ends")), (vec![1], vec![30]));
        assert_eq!(world.find("one"), None);
    });
}

#[test]
fn a_filter_that_is_mended_is_asked_at_once() {
    const MENDED: Script = Script {
        lua: r#"
            local function bad(ctx) ctx.logger:info("mended " .. ctx.name) end
            kopf.on_create("kopfexamples", { id = "h1", when = function() return true end }, bad)
        "#,
        rhai: r#"
            fn bad(ctx) { ctx.logger.info(`mended ${ctx.name}`); }
            kopf::on_create("kopfexamples", #{ id: "h1", when: |ctx| true }, bad);
        "#,
    };
    in_both(&[FAILING, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({}));
        world.env.until(25).await;
        world.reload(&[MENDED, GOOD]).await.expect("it takes over");
        world.env.until(40).await;
        assert_eq!(world.seconds("mended one"), [25]);
        assert_eq!(world.seconds("good create one"), [1]);
    });
}

#[test]
fn a_refused_handler_keeps_its_retry_when_the_object_changes_while_a_filter_fails() {
    const REFUSED: Script = Script {
        lua: r#"
            kopf.on_create("kopfexamples", { id = "wants", backoff = 5 }, function(ctx)
                ctx.logger:info("wants create")
                ctx.patch.metadata.labels.wanted = if ctx.retry > 0 then "fine" else "not fine"
            end)
        "#,
        rhai: r#"
            kopf::on_create("kopfexamples", #{ id: "wants", backoff: 5 }, |ctx| {
                ctx.logger.info("wants create");
                ctx.patch.metadata.labels.wanted = if ctx.retry > 0 { "fine" } else { "not fine" };
            });
        "#,
    };
    in_both(&[PICKY, REFUSED, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({ "broken": "yes" }));
        world.env.until(3).await;
        world.edit("one", json!({ "spec": { "n": 1 } }));
        world.env.until(30).await;
        assert_eq!(world.seconds("wants create"), [1, 6]);
        assert_eq!(world.seconds("good create one"), [1]);
        let object = world.find("one").expect("the object exists");
        assert_eq!(object["metadata"]["labels"]["wanted"], "fine");
    });
}

#[test]
fn a_handler_that_failed_for_good_and_was_edited_is_called_when_its_filter_works() {
    const FAILED: Script = Script {
        lua: r#"
            kopf.on_create("kopfexamples", { id = "h1", retries = 1 }, function() error("no idea") end)
        "#,
        rhai: r#"
            kopf::on_create("kopfexamples", #{ id: "h1", retries: 1 }, |ctx| { throw "no idea"; });
        "#,
    };
    in_both(&[FAILED, GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        world.create("one", json!({ "broken": "yes" }));
        world.env.until(5).await;
        assert!(is_handled_with_failures(world.find("one").as_ref()));
        world.reload(&[EDITED, GOOD]).await.expect("it takes over");
        world.env.until(10).await;
        world.edit("one", json!({ "spec": { "n": 1 } }));
        world.env.until(20).await;
        assert_eq!(world.lines("mended one"), Vec::<String>::new());
        assert_eq!(world.seconds("good update one"), [10]);
        world.edit("one", json!({ "metadata": { "labels": { "broken": null } } }));
        world.env.until(90).await;
        assert_eq!(world.lines("mended one").len(), 1);
        assert_eq!(world.seconds("good create one"), [1]);
        assert_eq!(world.lines("Throttling"), Vec::<String>::new());
    });
}

/// The same handler after an edit; its filter fails for objects with a label.
const EDITED: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "h1", retries = 1, when = function(ctx)
            if ctx.labels.broken then error("broken") end
            return true
        end }, function(ctx) ctx.logger:info("mended " .. ctx.name) end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "h1", retries: 1, when: |ctx| {
            if "broken" in ctx.labels { throw "broken"; }
            true
        } }, |ctx| { ctx.logger.info(`mended ${ctx.name}`); });
    "#,
};

fn is_handled_with_failures(object: Option<&Value>) -> bool {
    let annotations = object.map(|it| &it["metadata"]["annotations"]);
    let has = |name: &str| annotations.is_some_and(|it| !it[name].is_null());
    has("kopf.zalando.org/last-handled-configuration") && has("kopf.zalando.org/kopf-failed")
}
