//! `kube.watch` and `kube.wait` of scripts over the times when nobody could watch: what was missed is told afterwards, once.
//!
//! The server forgets the past (410 Gone), or it is restarted: another one takes its place with the objects of the old one.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use kopf::{
    logic::registry::Registry,
    reactor,
    scripting::{Placement, ScriptHost, Source, Terms},
    testing,
};
use kopf_apiserver::{ApiServer, ResourceDef, ResponseBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::{JoinSet, LocalSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Tells on its object what it has seen.
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
/// What is told before the gap.
const BEFORE: [&str; 4] = [
    "ADDED ConfigMap ns1/changed 1",
    "ADDED ConfigMap ns1/gone 1",
    "ADDED ConfigMap ns1/kept 1",
    "ADDED ConfigMap ns1/replaced 1",
];
/// What is told after it: what is there in the order of the list, then what is not there any more.
const MISSED: [&str; 5] = [
    "MODIFIED ConfigMap ns1/changed 2",
    "ADDED ConfigMap ns1/new 1",
    "DELETED ConfigMap ns1/replaced -",
    "ADDED ConfigMap ns1/replaced 2",
    "DELETED ConfigMap ns1/gone -",
];
/// And then the watch goes on.
const AFTER: &str = "ADDED ConfigMap ns1/later 1";

const EXAMPLES: &str = "kopfexamples.kopf.dev";
/// No test needs so long, on the paused clock.
const DEADLINE: Duration = Duration::from_mins(30);

/// A server that can be exchanged while clients use it.
#[derive(Clone)]
struct Switch(Arc<Mutex<Option<ApiServer>>>);

impl tower::Service<Request<Body>> for Switch {
    type Response = Response<ResponseBody>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.0.lock().clone();
        Box::pin(async move {
            let away = std::io::ErrorKind::ConnectionRefused;
            let mut server = server.ok_or(away)?;
            Ok(tower::Service::call(&mut server, request)
                .await
                .unwrap_or_else(|never| match never {}))
        })
    }
}

impl Switch {
    fn server(&self) -> ApiServer {
        self.0.lock().clone().expect("a server")
    }

    fn turn(&self, server: Option<ApiServer>) -> Option<ApiServer> {
        std::mem::replace(&mut self.0.lock(), server)
    }
}

fn empty() -> ApiServer {
    let resource = ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample");
    ApiServer::builder().resource(resource).build()
}

fn note(server: &ApiServer, name: &str, n: &str) {
    let metadata = json!({ "name": name, "namespace": "ns1", "labels": { "watched": "yes" } });
    let kind = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let mut body = kind;
    body["metadata"] = metadata;
    body["data"] = json!({ "n": n });
    server.create("configmaps", body).expect("a new object");
}

/// What happens while nobody watches.
fn miss(server: &ApiServer) {
    let two = json!({ "data": { "n": "2" } });
    server.merge("configmaps", "ns1", "changed", two).expect("it is there");
    for name in ["gone", "replaced"] {
        server.delete("configmaps", "ns1", name).expect("it is there");
    }
    note(server, "replaced", "2");
    note(server, "new", "1");
    // Nobody ever hears of it.
    note(server, "passing", "1");
    server.delete("configmaps", "ns1", "passing").expect("it is there");
}

/// Plays a gap: an operator in this language watches before, while and after `gap` happens.
fn play(language: &str, gap: &impl AsyncFn(&Switch)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), async {
        let server = empty();
        for name in ["changed", "gone", "kept", "replaced"] {
            note(&server, name, "1");
        }
        let object = json!({ "metadata": { "name": "one", "namespace": "ns1" } });
        server.create(EXAMPLES, object).expect("a new object");
        let switch = Switch(Arc::new(Mutex::new(Some(server))));
        let (stop, mut operator) = (CancellationToken::new(), JoinSet::new());
        operator.spawn_local(run(language.to_owned(), switch.clone(), stop.clone()));

        until(&switch, "seen", json!(BEFORE)).await;
        gap(&switch).await;
        let mut told = [&BEFORE[..], &MISSED].concat();
        until(&switch, "seen", json!(told)).await;
        note(&switch.server(), "later", "1");
        told.push(AFTER);
        until(&switch, "seen", json!(told)).await;
        until(&switch, "waited", json!("2")).await;
        // Long after, nothing is told twice.
        sleep(DEADLINE).await;
        assert_eq!(status(&switch)["seen"], json!(told), "{language}");
        stop.cancel();
        while operator.join_next().await.is_some() {}
    });
}

async fn run(language: String, switch: Switch, stop: CancellationToken) {
    let text = if language == "lua" { LUA } else { RHAI };
    let source = Source::alone(format!("watching.{language}"), text);
    let terms = Terms::from(Placement::CurrentRuntime);
    let loaded = ScriptHost::load(vec![source], terms).await;
    let (scripts, handlers) = loaded.unwrap_or_else(|errors| panic!("{}", errors[0]));
    let registry = Registry::new(handlers).expect("ids are unique");
    let client = kube::Client::new(switch, "default");
    let operator = testing::operator(Arc::new(scripts), registry, client);
    reactor::run(operator, stop).await.expect("an operator that goes on");
}

fn status(switch: &Switch) -> Value {
    let object = switch.server().get(EXAMPLES, "ns1", "one").expect("the object");
    object["status"].clone()
}

async fn until(switch: &Switch, field: &str, wanted: Value) {
    let waiting = async {
        while status(switch)[field] != wanted {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = timeout(DEADLINE, waiting).await.is_ok();
    assert!(in_time, "{field}: expected {wanted:#}, got {:#}", status(switch)[field]);
}

/// Watches end, and what they have seen last is too old to go on from: 410 Gone.
async fn forgotten(switch: &Switch) {
    let server = switch.server();
    let before = server.requests().len();
    server.close_watches();
    miss(&server);
    server.compact();
    sleep(Duration::from_secs(7)).await;
    let requests = server.requests();
    let since = requests.iter().skip(before).filter(|it| it.path.ends_with("/configmaps"));
    let asked: Vec<_> = since.map(|it| it.query.contains("watch=true&allow")).collect();
    // Both that of `kube.watch` and that of `kube.wait` are too old, and list. How many watches follow is up to the waits.
    assert!(asked.starts_with(&[true, true, false, false]), "{asked:?}");
}

/// The server ends. Another one begins with its objects, after a while in which nobody answers.
async fn restarted(switch: &Switch) {
    let old = switch.turn(None).expect("a server");
    old.close_watches();
    sleep(Duration::from_secs(20)).await;
    let new = empty();
    new.restore(old.export()).expect("the same resources");
    miss(&new);
    switch.turn(Some(new));
}

#[test]
fn a_watch_whose_past_is_forgotten_lists_again_and_tells_what_it_missed() {
    for language in ["lua", "rhai"] {
        play(language, &forgotten);
    }
}

#[test]
fn a_watch_outlives_the_end_of_its_server_and_goes_on_with_the_next_one() {
    for language in ["lua", "rhai"] {
        play(language, &restarted);
    }
}
