//! Patches of many objects: those of one script have a limit together, which handlers that only wait for their requests never meet.

use kopf::{
    scripting::{Placement, Terms},
    testing::run_paused,
};
use serde_json::{Value, json};

use super::{GOOD, Script, World, environment, labeled};

/// Small, so that few patches are enough.
const MEMORY_LIMIT: usize = 16 << 20;
const OBJECTS: usize = 100;

/// Each kind of handler requests changes of 50 KB.
const LARGE: Script = Script {
    lua: r#"
        local function large(ctx, field) ctx.patch.status[field] = string.rep("x", 50000) end
        local kinds = { labels = { large = "yes" } }
        kopf.on_event("kopfexamples", kinds, function(ctx)
            if ctx.status.seen == nil then large(ctx, "seen") end
        end)
        kopf.on_create("kopfexamples", { id = "large", labels = kinds.labels }, function(ctx) return string.rep("y", 50000) end)
        kopf.on_create("kopfexamples", { id = "again", labels = kinds.labels, backoff = 3 }, function(ctx)
            large(ctx, "again")
            if ctx.retry == 0 then error("not yet") end
        end)
        kopf.daemon("kopfexamples", { id = "daemon", labels = kinds.labels }, function(ctx) large(ctx, "daemon") end)
    "#,
    rhai: r#"
        fn large(ctx, field) { let text = ""; text.pad(50000, "x"); ctx.patch.status[field] = text; }
        kopf::on_event("kopfexamples", #{ labels: #{ large: "yes" } }, |ctx| {
            if ctx.status.seen == () { large(ctx, "seen"); }
        });
        kopf::on_create("kopfexamples", #{ id: "large", labels: #{ large: "yes" } }, |ctx| { let text = ""; text.pad(50000, "y"); text });
        kopf::on_create("kopfexamples", #{ id: "again", labels: #{ large: "yes" }, backoff: 3 }, |ctx| {
            large(ctx, "again");
            if ctx.retry == 0 { throw "not yet"; }
        });
        kopf::daemon("kopfexamples", #{ id: "daemon", labels: #{ large: "yes" } }, |ctx| { large(ctx, "daemon"); });
    "#,
};

#[test]
fn large_patches_of_many_objects_are_all_sent_and_release_what_they_count() {
    for extension in ["lua", "rhai"] {
        run_paused(async {
            let name = |number| format!("large-{number}");
            let all: Vec<_> =
                (0..OBJECTS).map(|it| labeled(&name(it), json!({ "large": "yes" }))).collect();
            let mut terms = Terms::from(Placement::CurrentRuntime);
            terms.limits.memory_limit = MEMORY_LIMIT;
            let world =
                World::start_with(environment(&all), extension, &[LARGE, GOOD], terms).await;
            world.env.until(1).await;
            world.create("one", json!({}));
            world.env.until(15).await;
            assert_eq!(world.seconds("good create one"), [1]);
            assert_eq!(world.lines("not sent yet"), [""; 0]);
            // Neither do the objects count as memory of the scripts, which keep nothing.
            assert_eq!(world.lines("of memory"), [""; 0]);
            for number in 0..OBJECTS {
                let object = world.find(&name(number)).expect("it exists");
                let lengths = ["seen", "large", "again", "daemon"]
                    .map(|it| object["status"][it].as_str().map(str::len));
                assert_eq!(lengths, [Some(50_000); 4], "{}", name(number));
                assert_eq!(object["status"]["kopf"], Value::Null);
            }
            world.running.stop().await;
        });
    }
}
