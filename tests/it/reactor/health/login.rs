//! Credentials of scripts: priorities, rejections, expirations.

use expect_test::expect;
use kopf::telemetry::HealthState;

use super::cluster::{Cluster, in_both};

/// Handlers for objects, in both languages.
const CREATE: [&str; 2] = [
    "function create_fn(ctx) end kopf.on_create('kopfexamples', create_fn)\n",
    "fn create_fn(ctx) {} kopf::on_create(\"kopfexamples\", create_fn);\n",
];

fn scripts(lua: &str, rhai: &str) -> [String; 2] {
    [format!("{}{lua}", CREATE[0]), format!("{}{rhai}", CREATE[1])]
}

#[test]
fn the_next_credentials_are_used_at_once_when_the_first_are_rejected() {
    let [lua, rhai] = scripts(
        r#"
        kopf.on_login({id = "good"}, function(ctx)
            return kopf.ConnectionInfo({server = "https://there", token = "good"})
        end)
        kopf.on_login({id = "bad"}, function(ctx)
            return {server = "https://there", token = "bad", priority = 10}
        end)
        "#,
        r#"
        kopf::on_login(#{id: "good"}, |ctx| kopf::ConnectionInfo(#{server: "https://there", token: "good"}));
        kopf::on_login(#{id: "bad"}, |ctx| #{server: "https://there", token: "bad", priority: 10});
        "#,
    );
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        cluster.accept(&["good"]);
        cluster.create("one");
        let play = async {
            cluster.until(1).await;
            (cluster.logins(), cluster.handled())
        };
        cluster.run(source, play).await.0
    });
    assert_eq!(told.0, ["Bearer bad: 401", "Bearer good: 200"]);
    assert_eq!(told.1, ["one"]);
}

/// Returns login handlers that count.
fn counting() -> [String; 2] {
    scripts(
        r#"
        local logins = 0
        kopf.on_login({id = "login_fn"}, function(ctx)
            logins = logins + 1
            return kopf.ConnectionInfo({server = "https://there", token = "t" .. logins})
        end)
        "#,
        r#"
        let logins = 0;
        kopf::on_login(#{id: "login_fn"}, |ctx| {
            logins += 1;
            kopf::ConnectionInfo(#{server: "https://there", token: `t${logins}`})
        });
        "#,
    )
}

#[test]
fn a_revoked_token_is_replaced_and_the_watch_goes_on_with_the_new_one() {
    let [lua, rhai] = counting();
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        cluster.accept(&["t1"]);
        let play = async {
            cluster.until(10).await;
            cluster.accept(&["t2"]);
            cluster.create("one");
            cluster.until(20).await;
            let log = cluster.log();
            log.into_iter().filter(|it| it.contains("kopfexamples")).collect::<Vec<_>>().join("\n")
        };
        cluster.run(source, play).await.0
    });
    expect![[r"
        0 GET /apis/kopf.dev/v1/kopfexamples by Bearer t1: 200
        0 GET /apis/kopf.dev/v1/kopfexamples?watch by Bearer t1: 200
        10 PATCH /apis/kopf.dev/v1/namespaces/default/kopfexamples/one by Bearer t1: 401
        10 PATCH /apis/kopf.dev/v1/namespaces/default/kopfexamples/one by Bearer t2: 200
        10 GET /apis/kopf.dev/v1/kopfexamples?watch by Bearer t2: 200"]]
    .assert_eq(&told);
}

#[test]
fn credentials_are_renewed_before_they_expire() {
    // The script sees only the time of its call.
    let [lua, rhai] = scripts(
        r#"
        kopf.on_login({id = "login_fn"}, function(ctx)
            local minutes, seconds = string.match(ctx.started, "T00:(%d+):(%d+)")
            local now = tonumber(minutes) * 60 + tonumber(seconds)
            return {server = "https://there", token = "t" .. now, expiration = 1767225600 + now + 100}
        end)
        "#,
        r#"
        kopf::on_login(#{id: "login_fn"}, |ctx| {
            let now = parse_int(ctx.started.sub_string(14, 2)) * 60 + parse_int(ctx.started.sub_string(17, 2));
            #{server: "https://there", token: `t${now}`, expiration: 1767225600 + now + 100}
        });
        "#,
    );
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        let all: Vec<_> = (0..2000).map(|it| format!("t{it}")).collect();
        cluster.accept(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let play = async {
            for number in 0..6 {
                cluster.until(30 + number * 30).await;
                cluster.create(&format!("o{number}"));
            }
            // No requests for a while: the next one finds expired credentials, and does not send them.
            cluster.until(1000).await;
            cluster.create("late");
            cluster.until(1001).await;
            (cluster.log(), cluster.handled().len())
        };
        cluster.run(source, play).await.0
    });
    let (log, handled) = told;
    assert_eq!(handled, 7);
    for line in &log {
        let at: u64 = line.split(' ').next().and_then(|it| it.parse().ok()).expect("a second");
        let since: u64 = line
            .split("Bearer t")
            .nth(1)
            .and_then(|it| it.split(':').next())
            .and_then(|it| it.parse().ok())
            .expect("a token");
        // Renewed in the last fifth of their life: never used to the end.
        assert!(at - since < 100, "{line}");
        assert!(line.ends_with(": 200") || line.ends_with(": 201"), "{line}");
    }
    let renewed = log.iter().any(|it| it.starts_with("90 ") && it.contains("Bearer t90"));
    assert!(renewed, "{log:#?}");
}

#[test]
fn a_token_that_becomes_valid_is_noticed() {
    let [lua, rhai] = scripts(
        r#"kopf.on_login(function(ctx) return {server = "https://there", token = "static"} end)"#,
        r#"kopf::on_login(|ctx| #{server: "https://there", token: "static"});"#,
    );
    let told = in_both(&lua, &rhai, async |cluster: Cluster, source| {
        cluster.create("one");
        let play = async {
            cluster.until(300).await;
            let part = cluster.health.parts()["login"].clone();
            let ready = cluster.get("/readyz").await;
            let alive = cluster.get("/livez").await;
            let asked = cluster.log().len();
            cluster.accept(&["static"]);
            cluster.until(400).await;
            let after = cluster.health.parts()["login"].state;
            (
                part.state == HealthState::Unready,
                part.text,
                ready,
                alive.0,
                asked,
                after == HealthState::Ready,
                cluster.handled(),
            )
        };
        let (told, ended) = cluster.run(source, play).await;
        assert!(ended.is_ok(), "{ended:?}");
        told
    });
    let (unready, text, ready, alive, asked, recovered, handled) = told;
    assert!(unready && recovered);
    assert_eq!(
        text,
        "the server rejects the credentials of 'login': 401 Unauthorized: not through this gate"
    );
    assert_eq!(ready.0, 503);
    assert!(ready.1.contains("[-]login failed: the server rejects"), "{}", ready.1);
    assert_eq!(alive, 200);
    assert!((16..=24).contains(&asked), "{asked} requests in five minutes, two at a time");
    assert_eq!(handled, ["one"]);
}

#[test]
fn a_login_that_brings_nothing_ends_the_start_with_a_hint() {
    let [lua, rhai] =
        scripts("kopf.on_login(function(ctx) return nil end)", "kopf::on_login(|ctx| ());");
    assert_eq!(ends(&lua, &rhai), "no credentials were retrieved from the login handlers");
    let [lua, rhai] = scripts(
        "kopf.on_login(function(ctx) kopf.fail('the vault is sealed') end)",
        "kopf::on_login(|ctx| { kopf.fail(\"the vault is sealed\"); });",
    );
    assert_eq!(ends(&lua, &rhai), "authentication failed: 'login': the vault is sealed");
    let [lua, rhai] = scripts(
        "kopf.on_login(function(ctx) return {server = 'x', tokn = 't'} end)",
        "kopf::on_login(|ctx| #{server: \"x\", tokn: \"t\"});",
    );
    assert_eq!(
        ends(&lua, &rhai),
        "the login handler 'login': there is no field `tokn`; did you mean `token`?"
    );
    let [lua, rhai] = scripts(
        "kopf.on_login({errors = 'permanent'}, function(ctx) return kopf.ConnectionInfo({server = 'x', ca_path = 'a', ca_data = 'b'}) end)",
        "kopf::on_login(#{errors: \"permanent\"}, |ctx| kopf::ConnectionInfo(#{server: \"x\", ca_path: \"a\", ca_data: \"b\"}));",
    );
    assert_eq!(
        ends(&lua, &rhai),
        "authentication failed: 'login': kopf.ConnectionInfo: Both CA path & data are set. Need only one."
    );
}

/// Returns how an operator of this script ends by itself.
fn ends(lua: &str, rhai: &str) -> String {
    in_both(lua, rhai, async |cluster: Cluster, source| {
        let failure = cluster.run_until_it_ends(source).await.expect_err("a failure");
        assert!(failure.hint().is_some());
        failure.to_string()
    })
}

#[test]
fn native_logins_are_names_and_nothing_where_there_is_nothing() {
    use kopf::ports::NativeLogins;

    let told = in_both(
        r#"
        kopf.on_login({id = "or"}, function(ctx)
            return kopf.login_with_service_account(ctx) or kopf.login_with_kubeconfig(ctx)
        end)
        kopf.on_login({id = "plain"}, function(ctx)
            local login = kopf.login_with_service_account()
            login.priority = 7
            return login
        end)
        "#,
        r#"
        kopf::on_login(#{id: "or"}, |ctx| kopf.login_with_service_account(ctx) ?? kopf.login_with_kubeconfig(ctx));
        kopf::on_login(#{id: "plain"}, |ctx| {
            let login = kopf::login_with_service_account();
            login.priority = 7;
            login
        });
        "#,
        async |_, source| {
            let mut all = Vec::new();
            for (kubeconfig, service_account) in [(true, true), (true, false), (false, false)] {
                let logins = NativeLogins { kubeconfig, service_account };
                let results = super::probes::ask(
                    source.clone(),
                    kopf::logic::handlers::handler::Kind::Login,
                    logins,
                )
                .await;
                all.push(serde_json::to_string(&results.expect("results")).expect("JSON"));
            }
            all.join("\n")
        },
    );
    expect![[r#"
        {"or":{"login_with":"service_account"},"plain":{"login_with":"service_account","priority":7}}
        {"or":{"login_with":"kubeconfig"},"plain":{"login_with":"service_account","priority":7}}
        {"plain":{"login_with":"service_account","priority":7}}"#]]
    .assert_eq(&told);
}
