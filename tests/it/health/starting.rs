//! The start of an operator: the start-up handlers first, then everything else.

use kopf::features::probes::Endpoint;

use super::{
    endpoint::{ask, request},
    stage::{Stage, in_both},
};

const LOGIN: [&str; 2] = [
    "kopf.on_login(function(ctx) return {server = 'https://there', token = 't'} end)\n",
    "kopf::on_login(|ctx| #{server: \"https://there\", token: \"t\"});\n",
];

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
    let told = in_both(&lua, &rhai, async |mut stage: Stage, source| {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        stage.liveness =
            Some(Endpoint { host: "127.0.0.1".into(), port, path: "/here/healthz".into() });
        stage.accept(&["t"]);
        stage.create("one");
        let play = async {
            stage.until(6).await;
            let is_refused = std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
            let before = (stage.log().len(), is_refused, stage.get("/readyz").await.0);
            stage.until(10).await;
            let answers = [
                ask(port, &request("GET", "/here/healthz")).await,
                ask(port, &request("GET", "/here")).await,
                ask(port, &request("POST", "/here/healthz")).await,
            ];
            let told = answers.map(|(line, body)| format!("{line} | {}", body.trim_end()));
            (before, stage.handled(), told.join("\n"))
        };
        let (told, ended) = stage.run(source, play).await;
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
        HTTP/1.1 404 Not Found | there are: /here/healthz, /healthz, /livez, /readyz, /metrics
        HTTP/1.1 405 Method Not Allowed | only GET and HEAD"#]]
    .assert_eq(&answers);
}

#[test]
fn an_operator_without_handlers_runs_and_touches_nothing() {
    let log = in_both(LOGIN[0], LOGIN[1], async |stage: Stage, source| {
        stage.accept(&["t"]);
        stage.create("one");
        let (log, ended) = stage
            .run(source, async {
                stage.until(100).await;
                stage.log()
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
    let told = in_both(lua, rhai, async |stage: Stage, source| {
        let begin = stage.clock.now();
        // If it did not end by itself, it would be told to after this time, and hang on.
        let ((), ended) = stage.run(source, stage.until(100)).await;
        (ended.map_err(|it| it.to_string()), stage.clock.now().duration_since(begin).as_secs())
    });
    let expected = Err("no credentials were retrieved from the login handlers".to_owned());
    assert_eq!(told, (expected, 100));
}
