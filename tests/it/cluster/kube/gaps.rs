//! `kube.watch` and `kube.wait` of scripts across times without a watch: missed changes are reported afterwards, once.
//!
//! The server drops its history (410 Gone), or it restarts: another server replaces it, with the objects of the old one.

use std::time::Duration;

use kopf::{
    scripting::{Placement, Source},
    testing::{self, EXAMPLES, Environment, Link, RunningOperator, object, run_paused},
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Records on its object what it has seen.
const LUA: &str = r#"
    kopf.daemon("kopfexamples", { id = "watching" }, function(ctx)
        local seen = {}
        for event in kube.watch("configmaps", { label_selector = "watched=yes" }) do
            local meta = event.object.metadata
            seen[#seen + 1] = `{event.type} {event.object.kind} {meta.namespace}/{meta.name} {deep.get(event.object, "data.n", "-")}`
            kube.patch(ctx, { status = { seen = seen } })
        end
    end)
    kopf.daemon("kopfexamples", { id = "waiting" }, function(ctx)
        local two = kube.wait({ apiVersion = "v1", kind = "ConfigMap", name = "changed" }, function(it)
            return it and it.data.n == "2"
        end, "1h")
        kube.wait({ apiVersion = "v1", kind = "ConfigMap", name = "gone" }, "deleted", "1h")
        kube.patch(ctx, { status = { waited = two.data.n } })
    end)
"#;
const RHAI: &str = r#"
    kopf::daemon("kopfexamples", #{ id: "watching" }, |ctx| {
        let seen = [];
        for event in kube.watch("configmaps", #{ label_selector: "watched=yes" }) {
            let meta = event.object.metadata;
            seen += `${event.type} ${event.object.kind} ${meta.namespace}/${meta.name} ${deep::get(event.object, "data.n", "-")}`;
            kube.patch(ctx, #{ status: #{ seen: seen } });
        }
    });
    kopf::daemon("kopfexamples", #{ id: "waiting" }, |ctx| {
        let two = kube.wait(#{ apiVersion: "v1", kind: "ConfigMap", name: "changed" }, |it| {
            it != () && it.data.n == "2"
        }, "1h");
        kube.wait(#{ apiVersion: "v1", kind: "ConfigMap", name: "gone" }, "deleted", "1h");
        kube.patch(ctx, #{ status: #{ waited: two.data.n } });
    });
"#;
/// The events before the gap.
const BEFORE: [&str; 4] = [
    "ADDED ConfigMap ns1/changed 1",
    "ADDED ConfigMap ns1/gone 1",
    "ADDED ConfigMap ns1/kept 1",
    "ADDED ConfigMap ns1/replaced 1",
];
/// The events after it: existing objects in the order of the list, then those that are gone.
const MISSED: [&str; 5] = [
    "MODIFIED ConfigMap ns1/changed 2",
    "ADDED ConfigMap ns1/new 1",
    "DELETED ConfigMap ns1/replaced -",
    "ADDED ConfigMap ns1/replaced 2",
    "DELETED ConfigMap ns1/gone -",
];
/// The event with which the watch continues.
const AFTER: &str = "ADDED ConfigMap ns1/later 1";

/// Longer than any test, on the paused clock.
const DEADLINE: Duration = Duration::from_mins(30);

fn note(server: &ApiServer, name: &str, n: &str) {
    let metadata = json!({ "name": name, "namespace": "ns1", "labels": { "watched": "yes" } });
    let kind = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let mut body = kind;
    body["metadata"] = metadata;
    body["data"] = json!({ "n": n });
    server.create("configmaps", body).expect("a new object");
}

/// Changes objects while there is no watch.
fn miss(server: &ApiServer) {
    let two = json!({ "data": { "n": "2" } });
    server.merge("configmaps", "ns1", "changed", two).expect("it is there");
    for name in ["gone", "replaced"] {
        server.delete("configmaps", "ns1", name).expect("it is there");
    }
    note(server, "replaced", "2");
    note(server, "new", "1");
    // Never seen by the script.
    note(server, "passing", "1");
    server.delete("configmaps", "ns1", "passing").expect("it is there");
}

/// Runs an operator in this language that watches before, during and after `gap`.
fn check(language: &str, gap: &impl AsyncFn(&Link)) {
    run_paused(async {
        let env = Environment::default();
        for name in ["changed", "gone", "kept", "replaced"] {
            note(&env.server, name, "1");
        }
        env.create(object("ns1", "one"));
        let link = Link::new(&env.server);
        let text = if language == "lua" { LUA } else { RHAI };
        let source = Source::alone(format!("watching.{language}"), text);
        let (scripts, handlers) = env.load(vec![source], Placement::CurrentRuntime).await;
        let mut operator = env.operator(scripts, handlers);
        operator.connect = testing::connect(link.client("default"));
        let running = RunningOperator::start(operator);

        until(&link, "seen", json!(BEFORE)).await;
        gap(&link).await;
        let mut told = [&BEFORE[..], &MISSED].concat();
        until(&link, "seen", json!(told)).await;
        note(&link.server(), "later", "1");
        told.push(AFTER);
        until(&link, "seen", json!(told)).await;
        until(&link, "waited", json!("2")).await;
        // Long after, nothing is reported twice.
        sleep(DEADLINE).await;
        assert_eq!(status(&link)["seen"], json!(told), "{language}");
        running.stop().await;
    });
}

fn status(link: &Link) -> Value {
    let object = link.server().get(EXAMPLES, "ns1", "one").expect("the object");
    object["status"].clone()
}

async fn until(link: &Link, field: &str, wanted: Value) {
    let waiting = async {
        while status(link)[field] != wanted {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = timeout(DEADLINE, waiting).await.is_ok();
    assert!(in_time, "{field}: expected {wanted:#}, got {:#}", status(link)[field]);
}

/// Ends the watches, whose last version is then too old to continue: 410 Gone.
async fn forgotten(link: &Link) {
    let server = link.server();
    let before = server.requests().len();
    server.close_watches();
    miss(&server);
    server.compact();
    sleep(Duration::from_secs(7)).await;
    let requests = server.requests();
    let since = requests.iter().skip(before).filter(|it| it.path.ends_with("/configmaps"));
    let asked: Vec<_> = since.map(|it| it.query.contains("watch=true&allow")).collect();
    // The versions of `kube.watch` and of `kube.wait` are too old, so both list. How many watches follow depends on the waits.
    assert!(asked.starts_with(&[true, true, false, false]), "{asked:?}");
}

/// Ends the server. Another one starts with its objects, after a while without any server.
async fn restarted(link: &Link) {
    let old = link.replace(None).expect("a server");
    old.close_watches();
    sleep(Duration::from_secs(20)).await;
    let new = Environment::default().server;
    new.restore(old.export()).expect("the same resources");
    miss(&new);
    link.replace(Some(new));
}

#[test]
fn a_watch_whose_past_is_forgotten_lists_again_and_tells_what_it_missed() {
    for language in ["lua", "rhai"] {
        check(language, &forgotten);
    }
}

#[test]
fn a_watch_outlives_the_end_of_its_server_and_goes_on_with_the_next_one() {
    for language in ["lua", "rhai"] {
        check(language, &restarted);
    }
}
