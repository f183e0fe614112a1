//! A second operator with the same handlers is reported once; a restart and a rolling update are not reported.

use std::sync::Arc;

use kopf::{
    cluster::KubeCluster,
    features::duplicates::Duplicates,
    logic::replicas::duplicates,
    settings::Settings,
    telemetry::Health,
    testing::{self, Environment, LogCapture},
};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Returns the name of the lease of all operators of the test.
fn lease() -> String {
    duplicates::name("finalizer", "all namespaces", &["kopfexamples".to_owned()])
}

/// An operator that watches for others. Dropping it is a `kill -9`.
struct Member {
    task: JoinSet<()>,
    stop: CancellationToken,
    health: Health,
}

impl Member {
    fn start(env: &Environment, identity: &str) -> Self {
        let settings = Arc::new(Settings::default());
        let cluster = Arc::new(KubeCluster::over(testing::client(&env.server), settings));
        let (stop, health) = (CancellationToken::new(), Health::default());
        let (name, identity, clock) = (lease(), identity.to_owned(), env.clock);
        let watch = Duplicates { cluster, name, identity, clock, health: health.clone() };
        let mut task = JoinSet::new();
        task.spawn(watch.watch(stop.clone()));
        Member { task, stop, health }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }

    fn part(&self) -> Option<String> {
        self.health.parts().get("duplicate").map(|it| it.text.clone())
    }
}

fn environment() -> Environment {
    Environment::new(kopf_apiserver::ApiServer::builder().cluster(true))
}

fn holder(env: &Environment) -> String {
    let lease = env.get("leases.coordination.k8s.io", &format!("default/{}", lease()));
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_second_operator_is_reported_without_a_flood_until_one_ends() {
    let (env, log) = (environment(), LogCapture::of("kopf.peering"));
    let first = Member::start(&env, "first\u{1b}[2K");
    env.until(5).await;
    let second = Member::start(&env, "second");
    env.until(80).await;
    assert_eq!(log.text(), "", "it may be a rolling update");
    env.until(3_000).await;
    let told = "Another operator with the same resources, namespaces and finalizer has been running for 100 s: first\\u{1b}[2K.";
    assert_eq!((log.count(told), log.lines().len()), (1, 1), "{}", log.text());
    assert_eq!(first.part(), None);
    assert!(second.part().is_some_and(|it| it.contains("is running: first")));
    first.stop().await;
    env.until(3_100).await;
    assert!(log.has("The other operator has stopped"), "{}", log.text());
    assert_eq!((holder(&env).as_str(), second.part()), ("second", None));
}

#[tokio::test(start_paused = true)]
async fn a_crash_with_a_restart_is_not_reported() {
    let (env, log) = (environment(), LogCapture::of("kopf.peering"));
    for round in 0..5_u64 {
        let member = Member::start(&env, &format!("process-{round}"));
        env.until(300 * (round + 1)).await;
        assert_eq!(holder(&env), format!("process-{round}"));
        drop(member);
    }
    assert_eq!(log.text(), "");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_is_not_reported() {
    let (env, log) = (environment(), LogCapture::of("kopf.peering"));
    let mut old = Member::start(&env, "pod-0");
    for round in 1..5_u64 {
        env.until(300 * round).await;
        let new = Member::start(&env, &format!("pod-{round}"));
        // It becomes ready; then the old pod has its grace period.
        env.until(300 * round + 75).await;
        old.stop().await;
        old = new;
    }
    env.until(1_500).await;
    assert_eq!((log.text().as_str(), holder(&env).as_str()), ("", "pod-4"));
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_nothing_is_logged_or_repeated() {
    let (env, log) = (environment(), LogCapture::of("kopf.peering"));
    env.refuse(403, "GET", "leases");
    let member = Member::start(&env, "one");
    env.until(1_000).await;
    member.stop().await;
    assert!(log.lines().iter().all(|it| it.level >= tracing::Level::DEBUG), "{}", log.text());
    assert_eq!(env.requests("GET", "leases").len(), 1);
    assert_eq!(env.server.list("leases.coordination.k8s.io"), [json!(null); 0]);
}
