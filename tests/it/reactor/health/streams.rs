//! The health of streams.

use kopf::testing::Fate;

use super::cluster::{Cluster, in_both};

const LUA: &str = r#"
kopf.on_login(function(ctx) return {server = "https://there", token = "t"} end)
kopf.on_startup(function(ctx) kopf.sleep(5) end)
kopf.on_create("kopfexamples", {id = "create_fn"}, function(ctx)
    if ctx.name == "bad" then kopf.fail("never") end
end)
"#;

const RHAI: &str = r#"
kopf::on_login(|ctx| #{server: "https://there", token: "t"});
kopf::on_startup(|ctx| kopf::sleep(5));
kopf::on_create("kopfexamples", #{id: "create_fn"}, |ctx| {
    if ctx.name == "bad" { kopf::fail("never"); }
});
"#;

/// Runs a test alongside the operator. Returns what the test returns.
fn run(what: &impl AsyncFn(&Cluster) -> String) -> String {
    in_both(LUA, RHAI, async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        let (told, ended) = cluster.run(source, what(&cluster)).await;
        assert!(ended.is_ok(), "{ended:?}");
        told
    })
}

#[test]
fn the_parts_of_a_healthy_operator_are_told() {
    let told = run(&async |cluster: &Cluster| {
        cluster.until(3).await;
        let early = cluster.get("/readyz").await;
        cluster.until(100).await;
        let late = cluster.get("/readyz").await;
        let verbose = cluster.get("/readyz?verbose").await;
        format!("{early:?}\n{late:?}\n{}", verbose.1)
    });
    expect_test::expect![[r#"
        (503, "[-]startup failed: the start-up handlers are running\nreadyz check failed\n")
        (200, "ok")
        [+]login ok: the server accepts 'login'
        [+]startup ok
        [+]stream/kopfexamples.v1.kopf.dev cluster-wide ok: watching (last report 5 s ago)
        readyz check passed
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_refused_stream_is_not_ready_until_it_is_let_in_again() {
    let told = run(&async |cluster: &Cluster| {
        cluster.until(10).await;
        cluster.link.set(Fate::Refuse(403));
        cluster.server.close_watches();
        cluster.until(60).await;
        let refused = cluster.get("/readyz").await;
        let excluded =
            cluster.get("/readyz?exclude=stream/kopfexamples.v1.kopf.dev%20cluster-wide").await;
        let alive = cluster.get("/healthz").await;
        cluster.accept(&["t"]);
        cluster.until(120).await;
        let after = cluster.get("/readyz").await;
        format!("{}\n{}{excluded:?} {alive:?} {after:?}", refused.0, refused.1)
    });
    expect_test::expect![[r#"
        503
        [+]login ok: the server accepts 'login'
        [+]startup ok
        [-]stream/kopfexamples.v1.kopf.dev cluster-wide failed: cannot list kopfexamples.v1.kopf.dev cluster-wide: 403 Forbidden: not through this gate
        readyz check failed
        (200, "ok") (200, "ok") (200, "ok")"#]].assert_eq(&told);
}

#[test]
fn a_stream_without_a_sound_is_not_ready() {
    let told = run(&async |cluster: &Cluster| {
        cluster.until(10).await;
        cluster.link.set(Fate::Hang);
        cluster.server.close_watches();
        let mut told = Vec::new();
        for second in [100, 1000] {
            cluster.until(second).await;
            let (status, text) = cluster.get("/readyz").await;
            told.push(format!(
                "{second}: {status} {}",
                text.lines().find(|it| it.contains("stream/")).unwrap_or(&text)
            ));
        }
        cluster.accept(&["t"]);
        cluster.until(1200).await;
        told.push(format!("{:?}", cluster.get("/readyz").await));
        told.join("\n")
    });
    expect_test::expect![[r#"
        100: 503 [+]stream/kopfexamples.v1.kopf.dev cluster-wide ok: watching (last report 95 s ago)
        1000: 503 [-]stream/kopfexamples.v1.kopf.dev cluster-wide failed: no report for 995 s
        (200, "ok")"#]]
    .assert_eq(&told);
}

#[test]
fn the_numbers_are_counted() {
    let told = run(&async |cluster: &Cluster| {
        cluster.until(10).await;
        for name in ["one", "two", "bad"] {
            cluster.create(name);
        }
        cluster.until(100).await;
        let (status, text) = cluster.get("/metrics").await;
        assert_eq!(status, 200);
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut lines: Vec<_> =
            text.lines().filter(|it| !it.starts_with('#') && !it.contains("duration")).collect();
        lines.sort_unstable();
        let text = lines.join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let text = text.replace("handlers.rhai", "handlers.lua");
        let (before, hash) = text.split_once("sha256=\"").expect("a hash");
        let (hash, after) = hash.split_once('"').expect("an end");
        assert_eq!(hash.len(), 64);
        format!("{before}sha256=\"HASH\"{after}")
    });
    expect_test::expect![[r#"
        kopf_api_requests_total{verb="discover",result="200"} 2
        kopf_api_requests_total{verb="list",result="200"} 2
        kopf_api_requests_total{verb="patch",result="200"} 3
        kopf_api_requests_total{verb="watch",result="200"} 2
        kopf_build_info{version="VERSION"} 1
        kopf_handler_calls_total{handler="create_fn",resource="kopfexamples.v1.kopf.dev",script="handlers.lua",outcome="permanent"} 1
        kopf_handler_calls_total{handler="create_fn",resource="kopfexamples.v1.kopf.dev",script="handlers.lua",outcome="success"} 2
        kopf_handler_calls_total{handler="login",resource="",script="handlers.lua",outcome="success"} 1
        kopf_handler_calls_total{handler="startup",resource="",script="handlers.lua",outcome="success"} 1
        kopf_leader 1
        kopf_objects_failed{handler="create_fn",resource="kopfexamples.v1.kopf.dev",script="handlers.lua"} 1
        kopf_objects_known 3
        kopf_objects_queued 0
        kopf_objects_retrying{handler="create_fn",resource="kopfexamples.v1.kopf.dev",script="handlers.lua"} 0
        kopf_oldest_retry_seconds{handler="create_fn",resource="kopfexamples.v1.kopf.dev",script="handlers.lua"} 0.0
        kopf_part_ready{part="login"} 1
        kopf_part_ready{part="startup"} 1
        kopf_part_ready{part="stream/kopfexamples.v1.kopf.dev cluster-wide"} 1
        kopf_part_silence_seconds{part="stream/kopfexamples.v1.kopf.dev cluster-wide"} 5.0
        kopf_paused 0
        kopf_script_cpu_seconds_total{script="handlers.lua"} 0
        kopf_script_generation 0
        kopf_script_generation_timestamp_seconds 0.0
        kopf_script_info{script="handlers.lua",sha256="HASH"} 1
        kopf_script_memory_bytes{script="handlers.lua"} 0
        kopf_script_memory_limit_bytes{script="handlers.lua"} 67108864
        kopf_stream_listings_total{resource="kopfexamples.v1.kopf.dev"} 1
        rest_client_requests_total{code="200",method="GET",host="there"} 6
        rest_client_requests_total{code="200",method="PATCH",host="there"} 3
        workqueue_adds_total{name="kopfexamples.v1.kopf.dev"} 6
        workqueue_depth{name="kopfexamples.v1.kopf.dev"} 0
        workqueue_retries_total{name="kopfexamples.v1.kopf.dev"} 0"#]]
    .assert_eq(&told);
}

#[test]
fn an_outage_is_not_ready_after_five_seconds_until_its_end() {
    let told = run(&async |cluster: &Cluster| {
        cluster.until(10).await;
        let server = cluster.link.replace(None);
        cluster.server.close_watches();
        let mut told = Vec::new();
        for second in [13, 18, 40] {
            cluster.until(second).await;
            let (status, text) = cluster.get("/readyz").await;
            let part = text.lines().find(|it| it.contains("api-server")).unwrap_or("-");
            let part = part.split(" s: ").next().unwrap_or_default();
            told.push(format!("{second}: {status} {part}"));
        }
        cluster.link.replace(server);
        cluster.accept(&["t"]);
        cluster.until(45).await;
        let (status, text) = cluster.get("/readyz?verbose").await;
        told.push(format!("45: {status} {}", text.contains("api-server")));
        told.join("\n")
    });
    expect_test::expect![[r"
        13: 200 -
        18: 503 [-]api-server failed: unreachable for 7
        40: 503 [-]api-server failed: unreachable for 29
        45: 200 false"]]
    .assert_eq(&told);
}
