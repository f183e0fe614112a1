//! Functions that select resources.

use kopf::ports::Rejection;
use tokio::time::Instant;

use super::{GOOD, Script, World, in_both};

/// A selector function that never returns.
const SLEEPING: Script = Script {
    lua: r#"kopf.on_event(function(resource) kopf.sleep(1000000) return true end, { id = "all" }, function(ctx) end)"#,
    rhai: r#"kopf::on_event(|resource| { kopf::sleep(1000000); true }, #{ id: "all" }, |ctx| ());"#,
};

#[test]
fn a_selector_function_that_does_not_answer_blocks_no_later_reload() {
    in_both(&[GOOD], &[], &async |world: &World| {
        world.env.until(1).await;
        let start = Instant::now();
        let answer = world.reload(&[GOOD, SLEEPING]).await;
        let Err(Rejection::Selector(problem)) = answer else { panic!("it is refused") };
        assert!(problem.contains("no result within 10 s"), "{problem}");
        assert!(start.elapsed().as_secs() <= 11, "{:?}", start.elapsed());
        let start = Instant::now();
        world.reload(&[GOOD]).await.expect("it takes over");
        assert!(start.elapsed().as_secs() <= 1, "{:?}", start.elapsed());
    });
}
