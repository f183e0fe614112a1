//! The end of an operator: running handlers finish, then the clean-up handlers run.

use super::cluster::{Cluster, LOGIN, in_both};

#[test]
fn a_running_handler_gets_its_moment_and_its_result_is_kept() {
    let lua = format!(
        "{}function slow_fn(ctx) kopf.sleep(1.5) return 'done' end kopf.on_create('kopfexamples', slow_fn)",
        LOGIN[0]
    );
    let rhai = format!(
        "{}fn slow_fn(ctx) {{ kopf::sleep(1.5); \"done\" }} kopf::on_create(\"kopfexamples\", slow_fn);",
        LOGIN[1]
    );
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        let play = async {
            cluster.until(10).await;
            cluster.create("one");
            cluster.until(11).await;
        };
        let ((), ended) = cluster.run(source, play).await;
        let shutdown = cluster.get("/readyz").await.1;
        (ended.is_ok(), cluster.handled(), shutdown)
    });
    assert_eq!(told.1, ["one"]);
    assert!(told.0);
    assert!(told.2.contains("[-]shutdown failed: the operator is stopping"), "{}", told.2);
}

#[test]
fn clean_up_comes_after_the_streams_and_its_failure_is_that_of_the_operator() {
    let lua = format!(
        "{}kopf.on_cleanup(function(ctx) kopf.fail('cannot clean') end) kopf.on_create('kopfexamples', function(ctx) end)",
        LOGIN[0]
    );
    let rhai = format!(
        "{}kopf::on_cleanup(|ctx| {{ kopf::fail(\"cannot clean\"); }}); kopf::on_create(\"kopfexamples\", |ctx| ());",
        LOGIN[1]
    );
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        let ((), ended) = cluster.run(source, cluster.until(10)).await;
        let streams =
            cluster.health.parts().into_keys().filter(|it| it.starts_with("stream/")).count();
        (ended.map_err(|it| it.to_string()), streams)
    });
    assert_eq!(told, (Err("cleanup failed: 'cleanup': cannot clean".into()), 0));
}
