//! The start of an operator: the start-up handlers first, then everything else.

use kopf::features::probes::ProbeEndpoint;

use super::{
    cluster::{Cluster, LOGIN, in_both},
    endpoint::{ask, request},
};
use crate::ports::free_port;

#[test]
fn nothing_is_asked_and_nothing_served_before_the_start_up_handlers_have_ended() {
    let lua = format!(
        "{}kopf.on_startup(function(ctx) kopf.sleep(7) end)
        kopf.on_probe({{id = 'answer'}}, function(ctx) return 42 end)
        kopf.on_create('kopfexamples', function(ctx) end)",
        LOGIN[0]
    );
    let rhai = format!(
        "{}kopf::on_startup(|ctx| kopf::sleep(7));
        kopf::on_probe(#{{id: \"answer\"}}, |ctx| 42);
        kopf::on_create(\"kopfexamples\", |ctx| ());",
        LOGIN[1]
    );
    let told = in_both(&lua, &rhai, async |mut cluster: Cluster, source| {
        let port = free_port();
        cluster.liveness =
            Some(ProbeEndpoint { host: "127.0.0.1".into(), port, path: "/here/healthz".into() });
        cluster.accept(&["t"]);
        cluster.create("one");
        let play = async {
            cluster.until(6).await;
            let is_refused = std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
            let before = (cluster.log().len(), is_refused, cluster.get("/readyz").await.0);
            cluster.until(10).await;
            let answers = [
                ask(port, &request("GET", "/here/healthz")).await,
                ask(port, &request("GET", "/here")).await,
                ask(port, &request("POST", "/here/healthz")).await,
            ];
            let told = answers.map(|(line, body)| format!("{line} | {}", body.trim_end()));
            (before, cluster.handled(), told.join("\n"))
        };
        let (told, ended) = cluster.run(source, play).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", port)).is_err(),
            "it ends with the operator"
        );
        told
    });
    let (before, handled, answers) = told;
    assert_eq!(before, (0, true, 503));
    assert_eq!(handled, ["one"]);
    expect_test::expect![[r#"
        HTTP/1.1 200 OK | {"answer":42}
        HTTP/1.1 404 Not Found | not found; available: /here/healthz, /healthz, /livez, /readyz, /metrics
        HTTP/1.1 405 Method Not Allowed | only GET and HEAD"#]]
    .assert_eq(&answers);
}

#[test]
fn an_operator_without_handlers_runs_and_touches_nothing() {
    let log = in_both(LOGIN[0], LOGIN[1], async |cluster: Cluster, source| {
        cluster.accept(&["t"]);
        cluster.create("one");
        let (log, ended) = cluster
            .run(source, async {
                cluster.until(100).await;
                cluster.log()
            })
            .await;
        assert!(ended.is_ok(), "{ended:?}");
        log
    });
    assert!(!log.is_empty());
    assert!(log.iter().all(|it| it.contains(" GET ") && !it.contains("kopfexamples")), "{log:#?}");
}

#[test]
fn an_operator_that_ends_by_itself_does_not_hang_in_its_clean_up() {
    let lua = "
        kopf.on_startup(function(ctx) ctx.settings.process.ultimate_exiting_timeout = '1m' end)
        kopf.on_login(function(ctx) return nil end)
        kopf.on_cleanup(function(ctx) kopf.sleep(36000) end)";
    let rhai = "
        kopf::on_startup(|ctx| { ctx.settings.process.ultimate_exiting_timeout = \"1m\"; });
        kopf::on_login(|ctx| ());
        kopf::on_cleanup(|ctx| kopf::sleep(36000));";
    let told = in_both(lua, rhai, async |cluster: Cluster, source| {
        let begin = cluster.clock.now();
        // If it did not end by itself, it would be stopped after this time, and hang.
        let ((), ended) = cluster.run(source, cluster.until(100)).await;
        (ended.map_err(|it| it.to_string()), cluster.clock.now().duration_since(begin).as_secs())
    });
    let expected = Err("no credentials were retrieved from the login handlers".to_owned());
    assert_eq!(told, (expected, 100));
}
