//! The probe handlers and the endpoint that calls them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use expect_test::expect;
use http::Method;
use kopf::{
    call::{Current, LiveGeneration, Memo},
    features::probes::{CountedScripts, Liveness, Routes},
    handling::activities::{ActivityError, RepeatedActivity},
    logic::{change::registry::Registry, generation::Generation, handlers::handler::Kind},
    ports::{Clock, NativeLogins},
    scripting::{Placement, ScriptHost, Source},
    telemetry::Health,
};
use serde_json::Value;

use super::cluster::{Cluster, in_both, read};

/// Returns the handlers of one activity of a script.
pub(super) async fn repeated_activity(
    source: Source,
    kind: Kind,
    health: &Health,
) -> RepeatedActivity {
    let loaded = ScriptHost::load(vec![source], Placement::CurrentRuntime).await;
    let (scripts, handlers) = loaded.unwrap_or_else(|errors| panic!("{}", errors[0]));
    let registry = Registry::new(handlers).expect("ids are unique");
    let generation = Generation::new(registry, None);
    RepeatedActivity {
        kind,
        current: Current::new(LiveGeneration { generation, ..LiveGeneration::default() }),
        fallback: Vec::new(),
        settings: Arc::default(),
        memo: Memo::default(),
        scripts: Arc::new(CountedScripts::new(Arc::new(scripts), health.metrics().clone())),
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        execution: kopf::settings::Settings::default().execution,
    }
}

/// Runs the handlers once.
pub(super) async fn ask(
    source: Source,
    kind: Kind,
    logins: NativeLogins,
) -> Result<BTreeMap<Arc<str>, Value>, ActivityError> {
    repeated_activity(source, kind, &Health::default()).await.run_with(logins, None).await
}

const LUA: &str = r#"
local calls = 0
kopf.on_probe({id = "calls"}, function(ctx)
    calls = calls + 1
    kopf.sleep(3)
    if calls == 3 then kopf.fail("third time unlucky") end
    return calls
end)
kopf.on_probe({id = "nothing"}, function(ctx) end)
kopf.on.probe({id = "activity"}, function(ctx) return {of = ctx.activity} end)
"#;

const RHAI: &str = r#"
let calls = 0;
kopf::on_probe(#{id: "calls"}, |ctx| {
    calls += 1;
    kopf::sleep(3);
    if calls == 3 { kopf::fail("third time unlucky"); }
    calls
});
kopf::on_probe(#{id: "nothing"}, |ctx| ());
kopf::on::probe(#{id: "activity"}, |ctx| #{of: ctx.activity});
"#;

#[test]
fn results_are_json_for_ten_seconds_and_one_run_serves_all_who_wait() {
    let told = in_both(LUA, RHAI, async |cluster: Cluster, source| {
        let health = Health::default();
        let probe = repeated_activity(source, Kind::Probe, &health).await;
        let routes = Routes::new(health).with_liveness("/healthz".into(), Liveness::new(probe));
        let get = async |second| {
            cluster.until(second).await;
            let path = "/healthz".parse().expect("a path");
            let (status, text) = read(routes.answer(&Method::GET, &path).await).await;
            format!("{second}: {status} {}", text.trim_end())
        };
        // The third request arrives while the first one is handled; results are as old as the end of their run.
        let mut told = futures::future::join_all([get(0), get(0), get(1)]).await;
        for second in [12, 14, 25, 30] {
            told.push(get(second).await);
        }
        told.join("\n")
    });
    expect![[r#"
        0: 200 {"activity":{"of":"probe"},"calls":1}
        0: 200 {"activity":{"of":"probe"},"calls":1}
        1: 200 {"activity":{"of":"probe"},"calls":1}
        12: 200 {"activity":{"of":"probe"},"calls":1}
        14: 200 {"activity":{"of":"probe"},"calls":2}
        25: 200 {"activity":{"of":"probe"},"calls":2}
        30: 500 probe failed: 'calls': third time unlucky"#]]
    .assert_eq(&told);
}

#[test]
fn health_and_metrics_do_not_wait_for_scripts() {
    let lua = "kopf.on_probe(function(ctx) kopf.sleep(3600) end)";
    let rhai = "kopf::on_probe(|ctx| kopf::sleep(3600));";
    in_both(lua, rhai, async |_: Cluster, source| {
        let health = Health::default();
        let probe = repeated_activity(source, Kind::Probe, &health).await;
        let routes = Routes::new(health).with_liveness("/live".into(), Liveness::new(probe));
        let get = async |path: &str| {
            read(routes.answer(&Method::GET, &path.parse().expect("a path")).await).await
        };
        let waiting = tokio::time::timeout(Duration::from_secs(10), get("/live"));
        let others = async {
            let begin = tokio::time::Instant::now();
            let statuses = [get("/livez").await.0, get("/readyz").await.0, get("/metrics").await.0];
            (statuses, begin.elapsed())
        };
        let (waiting, (statuses, took)) = tokio::join!(waiting, others);
        assert!(waiting.is_err());
        assert_eq!((statuses, took), ([200; 3], Duration::ZERO));
    });
}

#[test]
fn an_operator_without_probes_says_so_little() {
    let told = in_both("", "", async |_: Cluster, source| {
        let results = ask(source, Kind::Probe, NativeLogins::default()).await;
        results.expect("results").len()
    });
    assert_eq!(told, 0);
}
