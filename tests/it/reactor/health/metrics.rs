//! The metrics are those of the documentation, and are bounded.

use std::{collections::BTreeSet, time::Duration};

use kopf::telemetry::ProcessUsage;

use super::cluster::{Cluster, in_both};

const LUA: &str = r#"
kopf.on_login(function(ctx) return {server = "https://there", token = "t"} end)
kopf.on_create("kopfexamples", {id = "create_fn"}, function(ctx)
    if ctx.retry == 0 then error(kopf.TemporaryError("not yet", 4)) end
    kopf.sleep(2)
end)
"#;

const RHAI: &str = r#"
kopf::on_login(|ctx| #{server: "https://there", token: "t"});
kopf::on_create("kopfexamples", #{id: "create_fn"}, |ctx| {
    if ctx.retry == 0 { throw kopf::TemporaryError("not yet", 4); }
    kopf::sleep(2);
});
"#;

/// Runs an operator with one object, and returns its page.
fn page(seconds: u64) -> String {
    in_both(LUA, RHAI, async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        let metrics = cluster.health.metrics();
        // Events that this test does not cause: counters without a value are not shown.
        metrics.vm_restarted("handlers.lua", "stuck");
        metrics.reviewed("webhook", "allowed", Duration::ZERO);
        metrics.connection_refused("timeout");
        metrics.stream_failed("pods.v1".into());
        metrics.reloaded("accepted");
        metrics.read_process(|| ProcessUsage {
            cpu_seconds: Some(1.5),
            resident_bytes: Some(5 << 30),
            virtual_bytes: Some(6 << 30),
            open_fds: Some(7),
            max_fds: Some(1024),
            start_seconds: Some(0.5),
        });
        let play = async {
            cluster.until(10).await;
            cluster.create("one");
            cluster.until(seconds).await;
            cluster.get("/metrics").await
        };
        let ((status, text), ended) = cluster.run(source, play).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(status, 200);
        let lines = text.lines().filter(|it| !it.contains("sha256="));
        let lines = lines.map(|it| it.replace("handlers.rhai", "handlers.lua"));
        let mut lines: Vec<_> = lines.collect();
        // The order of labels is random.
        lines.sort();
        lines.join("\n")
    })
}

/// Returns the names of the metrics on a page, as they are used in queries.
fn served(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    let named = types.map(|it| match it.split_once(' ').expect("a name and a type") {
        (name, "counter") => format!("{name}_total"),
        (name, "info") => format!("{name}_info"),
        (name, _) => name.to_owned(),
    });
    named.collect()
}

/// Returns the names in the first column of the tables of the documentation.
fn documented() -> BTreeSet<String> {
    let text = include_str!("../../../../docs/health.md");
    let (_, section) = text.split_once("## Metrics").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("a next section");
    let rows = section.lines().filter_map(|it| it.strip_prefix("| `"));
    let cells = rows.filter_map(|it| it.split(" | ").next());
    cells.flat_map(|it| it.split(", ")).map(|it| it.trim_matches('`').to_owned()).collect()
}

#[test]
fn the_documentation_lists_exactly_the_metrics_that_are_served() {
    // In the pause before the second attempt.
    assert_eq!(served(&page(13)), documented());
}

#[test]
fn queues_requests_and_the_process_have_the_names_that_people_know() {
    let text = page(30);
    let shown = |it: &&str| {
        ["workqueue_", "rest_client_requests", "process_"].iter().any(|name| it.starts_with(name))
            && !it.contains("_bucket")
    };
    let lines: Vec<_> = text.lines().filter(shown).collect();
    expect_test::expect![[r#"
        process_cpu_seconds_total 1.5
        process_max_fds 1024
        process_open_fds 7
        process_resident_memory_bytes 5368709120
        process_start_time_seconds 0.5
        process_virtual_memory_bytes 6442450944
        rest_client_requests_total{code="200",method="GET",host="there"} 6
        rest_client_requests_total{code="200",method="PATCH",host="there"} 3
        workqueue_adds_total{name="kopfexamples.v1.kopf.dev"} 4
        workqueue_depth{name="kopfexamples.v1.kopf.dev"} 0
        workqueue_queue_duration_seconds_count{name="kopfexamples.v1.kopf.dev"} 4
        workqueue_queue_duration_seconds_sum{name="kopfexamples.v1.kopf.dev"} 0.0
        workqueue_retries_total{name="kopfexamples.v1.kopf.dev"} 1
        workqueue_work_duration_seconds_count{name="kopfexamples.v1.kopf.dev"} 4
        workqueue_work_duration_seconds_sum{name="kopfexamples.v1.kopf.dev"} 2.0"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn an_object_counts_as_waiting_for_its_retry_neither_in_the_queue_nor_as_work() {
    // In the pause before the second attempt.
    let text = page(13);
    for line in [
        "workqueue_depth{name=\"kopfexamples.v1.kopf.dev\"} 0",
        "workqueue_retries_total{name=\"kopfexamples.v1.kopf.dev\"} 1",
        "kopf_objects_retrying{handler=\"create_fn\",resource=\"kopfexamples.v1.kopf.dev\",script=\"handlers.lua\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
}
