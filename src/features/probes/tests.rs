//! Tests of the reports, and of the parameters that select them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use expect_test::expect;
use http::Method;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    endpoint::{ProbeEndpoint, UrlError},
    report::{Check, CheckOptions, report},
    routes::Routes,
};
use crate::telemetry::{Health, HealthState, LogControl, LogLevels, PartHealth};

fn parts(now: Instant) -> BTreeMap<String, PartHealth> {
    let part = |state, text: &str, age: u64, silence: Option<u64>| PartHealth {
        state,
        text: text.to_owned(),
        seen: now - Duration::from_secs(age),
        silence_max: silence.map(Duration::from_secs),
    };
    let parts = [
        ("fine", part(HealthState::Ready, "", 1000, None)),
        ("said", part(HealthState::Ready, "standby of a", 1000, None)),
        ("heard", part(HealthState::Ready, "watching", 7, Some(7))),
        ("silent", part(HealthState::Ready, "watching", 8, Some(7))),
        ("trying", part(HealthState::Unready, "403 Forbidden", 3, Some(7))),
        ("lost", part(HealthState::Unready, "no answer", 9, Some(7))),
        ("dead", part(HealthState::Dead, "a bug", 1, None)),
    ];
    parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_part_is_reported_with_its_reason() {
    tokio::time::advance(Duration::from_secs(5000)).await;
    let now = Instant::now();
    let told =
        report(Check::Ready, &parts(now), &CheckOptions::parse("exclude=trying&exclude=x+y"), now);
    assert!(!told.is_fine);
    expect![[r#"
        [-]dead failed: a bug; restart the operator
        [+]fine ok
        [+]heard ok: watching (last report 7 s ago)
        [-]lost failed: no answer; no report for 9 s
        [+]said ok: standby of a
        [-]silent failed: no report for 8 s
        [+]trying excluded: ok
        warn: some health checks cannot be excluded: no matches for ["x y"]
        readyz check failed
    "#]]
    .assert_eq(&told.text);
}

#[tokio::test(start_paused = true)]
async fn only_parts_that_need_a_restart_fail_the_liveness_check() {
    tokio::time::advance(Duration::from_secs(5000)).await;
    let now = Instant::now();
    let mut all = parts(now);
    let told = report(Check::Alive("livez"), &all, &CheckOptions::default(), now);
    assert!(!told.is_fine && told.text.ends_with("livez check failed\n"));
    all.remove("dead");
    let told = report(Check::Alive("livez"), &all, &CheckOptions::default(), now);
    assert_eq!((told.is_fine, told.text.as_str()), (true, "ok"));
    let told = report(Check::Alive("livez"), &all, &CheckOptions::parse("verbose"), now);
    assert!(told.is_fine && told.text.ends_with("livez check passed\n"));
}

#[test]
fn options_are_percent_encoded() {
    let options =
        CheckOptions::parse("verbose=1&exclude=stream%2Fpods.v1%20in+%27ns1%27&other=%zz");
    assert!(options.verbose);
    assert_eq!(options.exclude, ["stream/pods.v1 in 'ns1'"]);
    assert_eq!(
        CheckOptions::parse("exclude=%e"),
        CheckOptions { verbose: false, exclude: vec!["%e".into()] }
    );
    assert!(!CheckOptions::parse("verbose=false").verbose);
}

#[test]
fn an_endpoint_is_a_url_with_defaults() {
    let shown = |url: &str| url.parse::<ProbeEndpoint>().map(|it| it.to_string());
    let fine = [
        ("http://0.0.0.0:8080/healthz", "http://0.0.0.0:8080/healthz"),
        ("http://:8080/healthz", "http://localhost:8080/healthz"),
        ("http://host", "http://host:80/"),
        ("http://host:81?x#y", "http://host:81/"),
        ("http://[::1]:8080/a/b?c=d", "http://[::1]:8080/a/b"),
        ("http://[::1]/a", "http://[::1]:80/a"),
        ("http://", "http://localhost:80/"),
    ];
    for (url, expected) in fine {
        assert_eq!(shown(url).as_deref(), Ok(expected));
    }
    for url in ["https://host/", "host:80", "ftp://x", ""] {
        assert_eq!(shown(url), Err(UrlError::Scheme(url.into())));
    }
    for url in ["http://host:port/", "http://host:99999", "http://::1/x:y"] {
        assert_eq!(shown(url), Err(UrlError::Port(url.into())), "{url}");
    }
    assert_eq!(UrlError::Scheme("https://x".into()).to_string(), "Unsupported scheme: https://x");
}

/// A log with one level, which stores the levels that were set.
#[derive(Default)]
struct FakeLog(Mutex<LogLevels>);

impl LogControl for FakeLog {
    fn levels(&self) -> LogLevels {
        self.0.lock().clone()
    }

    fn set_level(&self, script: Option<&str>, level: &str) -> Result<(), String> {
        if level != "debug" {
            return Err("the level is debug".into());
        }
        let mut levels = self.0.lock();
        match script {
            Some(script) => drop(levels.scripts.insert(script.to_owned(), level.to_owned())),
            None => level.clone_into(&mut levels.level),
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn levels_of_the_log_are_read_and_set_from_this_machine_only() {
    let routes = Routes::new(Health::default()).with_log(Arc::new(FakeLog::default()));
    let ask = async |method: Method, path: &str, is_local| {
        let answer = routes.levels(&method, &path.parse().expect("a path"), is_local);
        let (status, body) = (answer.status().as_u16(), answer.into_body());
        let body = body.collect().await.expect("a body").to_bytes();
        (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
    };
    let path = "/debug/log?level=debug&script=dir%2Fa.lua";
    assert_eq!(ask(Method::PUT, path, false).await.0, 403);
    assert_eq!(ask(Method::GET, "/debug/log", false).await.0, 403);
    let set = (200, "{\"level\":\"\",\"scripts\":{\"dir/a.lua\":\"debug\"}}\n".to_owned());
    assert_eq!(ask(Method::PUT, path, true).await, set);
    assert_eq!(ask(Method::GET, "/debug/log", true).await, set);
    let wrong = (400, "the level is debug\n".to_owned());
    assert_eq!(ask(Method::PUT, "/debug/log?level=loud", true).await, wrong);
    assert_eq!(ask(Method::PUT, "/debug/log", true).await.0, 400);
    assert_eq!(ask(Method::POST, path, true).await.0, 405);
}
