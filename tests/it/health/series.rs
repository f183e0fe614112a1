//! What scripts count is seen at `/metrics`, and goes with the script.

use super::stage::{Stage, in_both};

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
    let told = in_both(LUA, RHAI, async |stage: Stage, source| {
        stage.accept(&["t"]);
        let play = async {
            stage.until(10).await;
            for name in ["one", "three"] {
                stage.create(name);
            }
            stage.until(20).await;
            stage.get("/metrics").await
        };
        let ((status, text), ended) = stage.run(source, play).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(status, 200);
        let lines: Vec<_> = text.lines().filter(|it| it.contains("kopf_script_")).collect();
        lines.join("\n")
    });
    expect_test::expect![[""]].assert_eq(&told);
}
