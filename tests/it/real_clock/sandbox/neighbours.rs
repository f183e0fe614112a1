//! Nothing in the operator waits for a script that computes: shown by the order of events, not by their duration.
//!
//! Real threads. Six calls of four hostile scripts compute at once, more than the machine has processors, and end only when an
//! index has an entry. That entry is created last: after everything else was seen to work from its beginning to its end.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kopf::{
    features::probes::{Listener, Routes},
    ports::Clock,
    reactor::Operator,
    scripting::{Placement, Source, Terms},
    settings::Settings,
    telemetry::Health,
    testing::{self, EXAMPLES, Environment, RunningOperator, object},
};
use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const PEERINGS: &str = "clusterkopfpeerings.kopf.dev";
const LEASES: &str = "leases.coordination.k8s.io";
/// Each hostile call posts an event to the cluster when it begins: it cannot report it at its end.
const EVENTS: &str = "events";

/// After this time, the test has failed. Nothing is measured.
const PATIENCE: Duration = Duration::from_mins(2);
/// Far away: no call reaches its limit.
const CPU_LIMIT: Duration = Duration::from_hours(1);

/// Keeps running next to the others, and decides when they may end.
const NEIGHBOUR: &str = r#"
    kopf.index("kopfexamples", { id = "over", labels = { role = "over" } }, function(ctx)
        return { yes = true }
    end)
    kopf.on_create("kopfexamples", { id = "neighbour", labels = { role = "neighbour" } }, function(ctx)
        return "served"
    end)
"#;

/// Calls that let other calls of their script continue, and those that cannot.
const HOSTILE_LUA: [(&str, &str); 3] = [
    ("spins", "while not over.yes do end"),
    ("sorts", "table.sort({ 3, 2, 1 }, function(a, b) while not over.yes do end return a < b end)"),
    (
        "hoards",
        "local kept = {} for i = 1, 100000 do kept[i] = { i } end while not over.yes do kept[#kept % 1000 + 1] = {} end",
    ),
];

/// Three calls of one script, which compute in turns.
const HOSTILE_RHAI: &str = r#"
    fn spin(ctx) {
        kopf.info(ctx.body, #{ reason: "Hostile", message: "begins" });
        let over = ctx.over;
        while !("yes" in over) {}
        "ended"
    }
    kopf::on_create("kopfexamples", #{ id: "rhai", labels: #{ role: "rhai" } }, spin);
"#;

fn hostile_lua(id: &str, spin: &str) -> Source {
    let text = format!(
        r#"kopf.on_create("kopfexamples", {{ id = "{id}", labels = {{ role = "{id}" }} }}, function(ctx)
            kopf.info(ctx.body, {{ reason = "Hostile", message = "begins" }})
            local over = ctx.over
            {spin}
            return "ended"
        end)"#
    );
    Source::alone(format!("{id}.lua"), text)
}

/// The cluster, and the operator as in `kopf run`: on one thread.
struct Cluster {
    env: Environment,
    /// The port of the health endpoint.
    port: u16,
    running: RunningOperator,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Cluster {
    async fn open() -> Self {
        let builder = ApiServer::builder().resource(testing::examples());
        let builder = builder.resource(testing::cluster_peering("kopf.dev"));
        let env = Environment::with_clock(builder, Clock::system());
        let peering = json!({ "metadata": { "name": "default" } });
        env.server.create(PEERINGS, peering).expect("it is new");
        let (health, stop, mut serving) =
            (Health::default(), CancellationToken::new(), JoinSet::new());
        let listener = Listener::bind("127.0.0.1", 0).await.expect("a free port");
        let port = listener.address().expect("an address").port();
        serving.spawn(listener.serve(Arc::new(Routes::new(health.clone())), stop.clone()));
        let running = RunningOperator::start(Operator { health, ..operator(&env).await });
        Cluster { env, port, running, stop, serving }
    }

    async fn close(self) {
        self.stop.cancel();
        self.running.stop().await;
        self.serving.join_all().await;
    }

    fn create(&self, name: &str, role: &str) {
        let mut object = object("default", name);
        object["metadata"]["labels"] = json!({ "role": role });
        self.env.create(object);
    }

    /// Returns the result that a handler has stored on an object.
    fn result(&self, name: &str, id: &str) -> Option<Value> {
        self.env.server.get(EXAMPLES, "default", name)?["status"].get(id).cloned()
    }

    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let wait = async {
            while !is_so() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not in {PATIENCE:?}: {what}"));
    }

    /// Returns the time of the last keep-alive for other operators.
    fn last_seen(&self) -> Option<Timestamp> {
        let peering = self.env.server.get(PEERINGS, "", "default")?;
        let records = peering["status"].as_object()?.values();
        records.filter_map(|it| it["lastseen"].as_str()?.parse().ok()).max()
    }

    /// Returns the time of the last renewal of the lease.
    fn renewed(&self) -> Option<Timestamp> {
        let leases = self.env.server.list(LEASES);
        leases.iter().filter_map(|it| it["spec"]["renewTime"].as_str()?.parse().ok()).max()
    }

    async fn is_healthy(&self) -> bool {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("a connection");
        let request = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer.starts_with("HTTP/1.1 200")
    }
}

async fn operator(env: &Environment) -> Operator {
    let mut settings = Settings::default();
    settings.execution.cpu_limit = CPU_LIMIT;
    // As often as possible.
    settings.peering.lifetime = Duration::from_secs(2);
    settings.peering.clusterwide = true;
    settings.leadership.enabled = true;
    settings.leadership.retry_period = Duration::from_millis(200);
    let mut sources: Vec<_> = HOSTILE_LUA.iter().map(|(id, spin)| hostile_lua(id, spin)).collect();
    sources.push(Source::alone("hostile.rhai", HOSTILE_RHAI));
    sources.push(Source::alone("neighbour.lua", NEIGHBOUR));
    let terms = Terms::of(Placement::Threads, &settings);
    let (scripts, handlers) = env.load(sources, terms).await;
    Operator { settings: Arc::new(Mutex::new(settings)), ..env.operator(scripts, handlers) }
}

/// The objects that hostile handlers are called for, and these handlers.
const HOSTILE: [(&str, &str); 6] = [
    ("one", "spins"),
    ("two", "sorts"),
    ("three", "hoards"),
    ("four", "rhai"),
    ("five", "rhai"),
    ("six", "rhai"),
];

#[tokio::test]
async fn while_hostile_calls_compute_everything_else_goes_on() {
    let cluster = Cluster::open().await;
    for (name, role) in HOSTILE {
        cluster.create(name, role);
    }
    let begun =
        || cluster.env.server.list(EVENTS).iter().filter(|it| it["reason"] == "Hostile").count();
    cluster.until("all hostile calls have begun", || begun() == HOSTILE.len()).await;

    let since = Clock::system().now();
    assert!(cluster.is_healthy().await);
    cluster.create("object", "neighbour");
    let served = || cluster.result("object", "neighbour") == Some(json!("served"));
    cluster.until("a change reaches the neighbour, and its result the cluster", served).await;
    let is_later = |it: Option<Timestamp>| it.is_some_and(|it| it > since);
    cluster.until("a sign of life for other operators", || is_later(cluster.last_seen())).await;
    cluster.until("a renewal of the lease", || is_later(cluster.renewed())).await;
    assert!(cluster.is_healthy().await);

    for (name, id) in HOSTILE {
        assert_eq!(cluster.result(name, id), None, "{name}: it still computes");
    }
    cluster.create("over", "over");
    let all_ended =
        || HOSTILE.iter().all(|(name, id)| cluster.result(name, id) == Some(json!("ended")));
    cluster.until("the hostile calls end, each with its first attempt", all_ended).await;
    cluster.close().await;
}
