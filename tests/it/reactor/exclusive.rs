//! The option `exclusive` of timers.

use kopf::testing::examples;
use serde_json::json;

use super::scripted::{PLACE, World, in_both};

const LUA: &str = r#"
kopf.timer("kopfexamples", { id = "tick", interval = 10, exclusive = true }, function(ctx)
    ctx.logger:info("SAYS timer begins")
    kopf.sleep(4)
    ctx.logger:info("SAYS timer ends")
end)
kopf.on_create("kopfexamples", { id = "makes" }, function(ctx)
    ctx.logger:info("SAYS creation " .. ctx.retry)
    kopf.sleep(1)
    if ctx.retry == 0 then kopf.retry("not yet", 15) end
end)
kopf.on_update("kopfexamples", { id = "edits" }, function(ctx)
    ctx.logger:info("SAYS update begins")
    kopf.sleep(8)
    ctx.logger:info("SAYS update ends")
end)
kopf.on_delete("kopfexamples", { id = "ends" }, function(ctx)
    ctx.logger:info("SAYS deletion")
end)
"#;

const RHAI: &str = r#"
kopf::timer("kopfexamples", #{ id: "tick", interval: 10, exclusive: true }, |ctx| {
    ctx.logger.info("SAYS timer begins");
    kopf::sleep(4);
    ctx.logger.info("SAYS timer ends");
});
kopf::on_create("kopfexamples", #{ id: "makes" }, |ctx| {
    ctx.logger.info("SAYS creation " + ctx.retry);
    kopf::sleep(1);
    if ctx.retry == 0 { kopf::retry("not yet", 15); }
});
kopf::on_update("kopfexamples", #{ id: "edits" }, |ctx| {
    ctx.logger.info("SAYS update begins");
    kopf::sleep(8);
    ctx.logger.info("SAYS update ends");
});
kopf::on_delete("kopfexamples", #{ id: "ends" }, |ctx| {
    ctx.logger.info("SAYS deletion");
});
"#;

const TIMER: [&str; 2] = ["timer begins", "timer ends"];
const UPDATE: [&str; 2] = ["update begins", "update ends"];

impl World {
    /// Edits the object at the first second; returns the log of scripts from then to the second one.
    async fn says_after_edit(&self, edit: &str, (from, to): (u64, u64)) -> Vec<String> {
        self.env.until(from).await;
        let before = self.said().len();
        let object = format!("{PLACE}/one");
        self.env.edit(&examples().qualified(), &object, json!({ "spec": { "x": edit } }));
        self.env.until(to).await;
        self.said().split_off(before)
    }
}

#[test]
fn a_timer_is_not_called_while_a_change_is_handled_or_waits_for_a_retry() {
    in_both(|world| async move {
        world.create("one", &json!({}));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(25).await;
        let creation = ["creation 0", "creation 1"];
        assert_eq!(world.said(), [creation, TIMER].concat(), "{}", world.log.text());
        // The next call would be due two seconds after the edit.
        let said = world.says_after_edit("a", (29, 42)).await;
        assert_eq!(said, [UPDATE, TIMER].concat(), "{}", world.log.text());
        process.running.stop().await;
    });
}

#[test]
fn changes_are_handled_after_the_call_of_an_exclusive_timer() {
    in_both(|world| async move {
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.create("one", &json!({}));
        world.env.until(25).await;
        // The timer has begun one second before the edit.
        let said = world.says_after_edit("b", (32, 44)).await;
        assert_eq!(said, [&TIMER[1..], &UPDATE].concat(), "{}", world.log.text());
        // It has started again, so that the handler of the next edit waits. The deletion comes before its turn.
        let said = world.says_after_edit("c", (46, 47)).await;
        assert_eq!(said, TIMER[..0], "{}", world.log.text());
        let before = world.said().len();
        world.env.delete(&examples().qualified(), &format!("{PLACE}/one"));
        world.env.until(55).await;
        assert_eq!(
            world.said().split_off(before),
            ["timer ends", "deletion"],
            "{}",
            world.log.text()
        );
        assert!(world.env.server.list(&examples().qualified()).is_empty());
        process.running.stop().await;
    });
}
