//! Replicas with a leader, and peers.

use std::time::Duration;

use kopf::testing::{cluster_peering, examples};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Asked, World,
    front::{Fate, Gate, Line},
    now, said, until, until_says,
};

const LEASES: &str = "leases.coordination.k8s.io";
const PEERINGS: &str = "clusterkopfpeerings.kopf.dev";
const ELECTED: &str = "--leader-elect --set leadership.duration=5 --set leadership.renew_deadline=4 --set \
                       leadership.retry_period=0.5";

const MADE: &str = r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx) ctx.logger:info("made") end)
"#;

/// Returns the holder of the lease; empty if there is none.
fn holder(world: &World) -> String {
    let lease = world.server.get(LEASES, "default", "kopf").unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// H5: requests for objects are slow; the lease must be renewed nevertheless.
#[tokio::test]
async fn a_lease_is_renewed_while_requests_for_objects_hang() {
    let world = World::new(MADE).await;
    world.front.set_fate(Fate::Hang, |it| it.is("PATCH", "/kopfexamples/"));
    let operator = world.started(ELECTED).await;
    for number in 0..60 {
        world.create(&format!("o{number}"));
    }
    let hanging = || world.front.count(|it| it.is("PATCH", "/kopfexamples/"));
    until(&operator, "requests that hang", || hanging() >= 24 && said(&operator, "] made") == 60)
        .await;
    let is_renewal =
        |it: &Asked| it.path.contains("/leases/") && it.method != "GET" && it.is_accepted();
    let before = world.front.count(is_renewal);
    until(&operator, "ten renewals", || world.front.count(is_renewal) >= before + 10).await;
}

/// N2: a leader is frozen until another replica has its lease.
#[tokio::test]
async fn a_leader_that_was_frozen_writes_nothing_when_it_goes_on() {
    const OBJECTS: usize = 30;
    let world = World::new(
        r#"
kopf.timer("kopfexamples", { id = "tick", interval = 0.2 }, function(ctx)
    ctx.patch.spec.ticks = (ctx.spec.ticks or 0) + 1
    ctx.logger:info("ticks")
end)
kopf.daemon("kopfexamples", { id = "beat" }, function(ctx)
    while not ctx.stopped:wait(0.2) do
        ctx.logger:info("beats")
        kube.patch(ctx, { spec = { beats = ctx.started } })
    end
end)
"#,
    )
    .await;
    let operator = world.started(ELECTED).await;
    for number in 0..OBJECTS {
        world.create(&format!("o{number}"));
    }
    until(&operator, "its work", || said(&operator, "beats") > 100).await;
    operator.signal("STOP").await;
    // Longer than the lease. Pending requests arrive meanwhile.
    sleep(Duration::from_millis(5500)).await;
    let stamp = now().replace('Z', ".000000Z");
    let taken =
        json!({ "spec": { "holderIdentity": "other", "renewTime": stamp, "acquireTime": stamp } });
    world.server.merge(LEASES, "default", "kopf", taken).expect("a lease");
    let before = world.front.asked().len();
    let calls = calls_of(&operator.output());
    operator.signal("CONT").await;
    let ended = operator.ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.output);
    let asked = world.front.asked();
    let written: Vec<_> =
        asked[before..].iter().filter(|it| it.is("PATCH", "/kopfexamples/")).collect();
    assert!(
        written.is_empty(),
        "{} requests of a former leader: {written:?}\n{}",
        written.len(),
        ended.output
    );
    // A script has one thread: a call that was computing when it was frozen may reach its line.
    let later = calls_of(&ended.output) - calls;
    assert!(later <= 1, "{later} calls of a former leader\n{}", ended.output);
}

/// Returns how many lines the daemons and timers have logged.
fn calls_of(output: &str) -> usize {
    output.lines().filter(|it| it.ends_with("] beats") || it.ends_with("] ticks")).count()
}

/// M4: a leader stops, and its cleanup handler takes a while.
#[tokio::test]
async fn the_lease_is_held_until_the_cleanup_handlers_have_ended() {
    let world = World::new(
        &[
            MADE,
            r#"
kopf.on_cleanup(function()
    kube.get("v1", "ConfigMap", { name = "gate", namespace = "default" })
end)
"#,
        ]
        .concat(),
    )
    .await;
    let gate = Gate::new();
    world.front.set_fate(Fate::Hold(gate.clone()), |it| it.is("GET", "/configmaps/gate"));
    let operator = world.started(ELECTED).await;
    operator.signal("TERM").await;
    let is_cleaning = || world.front.count(|it| it.path.contains("/configmaps/gate")) > 0;
    until(&operator, "the cleanup handler", is_cleaning).await;
    assert_ne!(holder(&world), "", "it is released already\n{}", operator.output());
    gate.open();
    operator.ended().await;
    assert_eq!(holder(&world), "", "it is released at the end");
}

/// M1: a standby has not seen all changes of the former leader.
#[tokio::test]
async fn a_standby_with_an_old_view_does_not_repeat_what_the_leader_has_done() {
    let world = World::new(MADE).await;
    let leader = world.started(ELECTED).await;
    let second = world.again(MADE).await;
    let gate = Gate::new();
    let held = gate.clone();
    second.front.set_lines(move |it, line| {
        let is_late = line["object"]["metadata"]["annotations"].is_object();
        if is_late && it.watches("kopfexamples?") { Line::Hold(held.clone()) } else { Line::Pass }
    });
    let standby = second.started(ELECTED).await;
    world.create("a");
    until(&leader, "the end", || world.is_handled("a")).await;
    let first = holder(&world);
    drop(leader.stop().await);
    until(&standby, "another leader", || !["", &first].contains(&holder(&world).as_str())).await;
    until_says(&standby, "lead").await;
    world.create("b");
    gate.open();
    until_says(&standby, "[ns1/b] made").await;
    assert_eq!(said(&standby, "[ns1/a] made"), 0, "calls of the standby\n{}", standby.output());
}

async fn with_peering() -> World {
    let world = World::with(&[examples(), cluster_peering("kopf.dev")], MADE).await;
    let body = json!({
        "apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": { "name": "default" },
    });
    world.server.create(PEERINGS, body).expect("it is new");
    world
}

/// Lets a peer with a higher priority send a keep-alive from a clock that is `ahead` seconds ahead.
fn keep_alive(world: &World, (ahead, lifetime): (i64, u32)) {
    world
        .server
        .merge(PEERINGS, "", "default", peer(&shifted(ahead), lifetime))
        .expect("a peering");
}

fn peer(lastseen: &str, lifetime: u32) -> Value {
    json!({ "status": { "other": { "priority": 100, "lifetime": lifetime, "lastseen": lastseen } } })
}

/// Returns the time of a clock that is this many seconds ahead.
#[expect(clippy::disallowed_methods, reason = "the operator of the test runs on the real clock")]
pub(super) fn shifted(seconds: i64) -> String {
    let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    now.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

/// N3: a peer whose clock is ten minutes ahead has died.
#[tokio::test]
async fn a_dead_peer_whose_clock_was_ahead_holds_nobody_up() {
    let world = with_peering().await;
    keep_alive(&world, (600, 2));
    let operator = world.start("--peering default");
    world.create("a");
    until_says(&operator, "[ns1/a] made").await;
}

/// N3: a peer whose clock is ten minutes behind is alive.
#[tokio::test]
async fn a_peer_whose_clock_is_behind_is_alive_while_it_sends_keep_alives() {
    let world = with_peering().await;
    let operator = world.started("--peering default").await;
    let is_paused = || said(&operator, "Pausing operations") > 0;
    let keep_alives = async {
        loop {
            keep_alive(&world, (-600, 60));
            sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        () = until(&operator, "a pause", is_paused) => {}
        () = keep_alives => {}
    }
    // It removes its record.
    world
        .server
        .merge(PEERINGS, "", "default", json!({ "status": { "other": null } }))
        .expect("a peering");
    until_says(&operator, "Resuming operations").await;
    world.create("a");
    until_says(&operator, "[ns1/a] made").await;
}
