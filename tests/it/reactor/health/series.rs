//! The metrics of scripts are shown at `/metrics`, and are removed with the script.

use super::cluster::{Cluster, in_both};

const LUA: &str = r#"
kopf.on_login(function(ctx) return {server = "https://there", token = "t"} end)
kopf.on_create("kopfexamples", function(ctx)
    metrics.counter("seen_total", 1, {labels = {kind = ctx.resource.kind}, help = "Objects that were seen."})
    metrics.gauge("last_length", #ctx.name)
    metrics.histogram("length", #ctx.name, {buckets = {1, 4}})
end)
"#;

const RHAI: &str = r#"
kopf::on_login(|ctx| #{server: "https://there", token: "t"});
kopf::on_create("kopfexamples", |ctx| {
    metrics.counter("seen_total", 1, #{labels: #{kind: ctx.resource.kind}, help: "Objects that were seen."});
    metrics.gauge("last_length", ctx.name.len());
    metrics.histogram("length", ctx.name.len(), #{buckets: [1, 4]});
});
"#;

#[test]
fn a_script_counts_and_the_endpoint_shows_it() {
    let told = in_both(LUA, RHAI, async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        let play = async {
            cluster.until(10).await;
            // One after another: the gauge has the value that was set last.
            cluster.create("one");
            cluster.until(15).await;
            cluster.create("three");
            cluster.until(20).await;
            cluster.get("/metrics").await
        };
        let ((status, text), ended) = cluster.run(source, play).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(status, 200);
        let lines: Vec<_> =
            text.lines().filter(|it| it.contains("kopf_script_handlers_")).collect();
        lines.join("\n")
    });
    expect_test::expect![[r#"
        # HELP kopf_script_handlers_last_length Defined by a script.
        # TYPE kopf_script_handlers_last_length gauge
        kopf_script_handlers_last_length{} 5.0
        # HELP kopf_script_handlers_length Defined by a script.
        # TYPE kopf_script_handlers_length histogram
        kopf_script_handlers_length_sum{} 8.0
        kopf_script_handlers_length_count{} 2
        kopf_script_handlers_length_bucket{le="1.0"} 0
        kopf_script_handlers_length_bucket{le="4.0"} 1
        kopf_script_handlers_length_bucket{le="+Inf"} 2
        # HELP kopf_script_handlers_seen Objects that were seen..
        # TYPE kopf_script_handlers_seen counter
        kopf_script_handlers_seen_total{kind="KopfExample"} 2.0"#]]
    .assert_eq(&told);
}
