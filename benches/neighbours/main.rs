//! The effect of hostile scripts on other scripts: an operator as in `kopf run`, on one thread, with threads for its scripts.
//!
//! `cargo bench --bench neighbours [-- EVENTS]`. Two well-behaved scripts, one in each language, handle one event every few
//! milliseconds, alone and alongside four calls of one hostile script, each of which is repeated as soon as it ends. Latency is the
//! time from the change in the cluster until the handler has returned. Also measures the response time of `/healthz`, requested
//! from a separate thread, and the longest pauses between two keep-alives for peers and between two renewals of the lease,
//! which are due every second and every 200 ms.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

mod signs;
mod timed;

use std::{env, sync::Arc, time::Duration};

use jiff::Timestamp;
use kopf::{
    call::{Scripts as _, SharedPatch},
    features::probes::{Listener, Routes},
    logic::handlers::handler::Handler,
    ports::Clock,
    reactor::Operator,
    scripting::{LoadError, Placement, ScriptHost, Source, Terms},
    settings::Settings,
    telemetry::Health,
    testing::{self, Environment, RunningOperator, object},
};
use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    signs::{Pauses, Probe},
    timed::{Answer, Timed},
};

const PEERINGS: &str = "clusterkopfpeerings.kopf.dev";
const LEASES: &str = "leases.coordination.k8s.io";
/// Default number of events of each run.
const EVENTS: usize = 400;
/// Pause between two events.
const PACE: Duration = Duration::from_millis(5);
/// Number of concurrent hostile calls.
const CALLS: usize = 4;
/// Maximum time of one event, before the benchmark fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// The well-behaved scripts.
const NEIGHBOURS: [(&str, &str); 2] = [
    (
        "neighbour.lua",
        "kopf.on_event('kopfexamples', { id = 'lua' }, function(ctx) return #ctx.spec.items .. ctx.name end)",
    ),
    (
        "neighbour.rhai",
        "kopf::on_event(`kopfexamples`, #{ id: `rhai` }, |ctx| `${ctx.spec.items.len()}${ctx.name}`);",
    ),
];

/// Classes of hostile scripts: a name, the language, and the body of the function that is called.
const HOSTILE: [(&str, &str, &str); 12] = [
    ("a loop", "lua", "while true do end"),
    ("a loop in a comparator", "lua", "table.sort({ 3, 2, 1 }, function() while true do end end)"),
    ("growing memory", "lua", "local t = {} while true do t[#t + 1] = { #t } end"),
    ("deep recursion", "lua", "local function f() return 1 + f() end while true do pcall(f) end"),
    (
        "a pathological pattern",
        "lua",
        "string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))",
    ),
    (
        "long built-in functions",
        "lua",
        "while true do local s = string.rep('x', 4000000); s = string.reverse(s); s = string.upper(s) end",
    ),
    ("a loop", "rhai", "loop {}"),
    ("a loop in a comparator", "rhai", "[3, 2, 1].sort(|a, b| { loop {} })"),
    ("growing memory", "rhai", "let t = []; loop { t.push(#{ a: [t.len()] }); }"),
    ("deep recursion", "rhai", "loop { try { deep(0) } catch { } }"),
    (
        "a long search",
        "rhai",
        "let s = `a`; s.pad(4000000, 'a'); loop { s.index_of(`aaaaaaaaaaaaaaaaaaaaab`); }",
    ),
    (
        "long built-in functions",
        "rhai",
        "let s = `x`; s.pad(4000000, 'x'); loop { let t = s - 'y'; t.make_upper(); }",
    ),
];

/// The measurements of one run.
struct Measured {
    lua: Vec<Duration>,
    rhai: Vec<Duration>,
    health: Vec<Duration>,
    peering: Duration,
    lease: Duration,
}

fn main() {
    let events = env::args().find_map(|it| it.parse().ok()).unwrap_or(EVENTS);
    println!(
        "{events} events each, in milliseconds; keep-alives are due every 1000 ms, renewals every 200 ms"
    );
    println!(
        "{:<31} {:>20} {:>8} {:>20} {:>8} {:>13} {:>7} {:>7}",
        "",
        "Lua p50/p99/max",
        "more p99",
        "Rhai p50/p99/max",
        "more p99",
        "health p99/max",
        "peers",
        "lease"
    );
    let alone = play(None, events);
    tell("alone", &alone, &alone);
    for (name, language, body) in HOSTILE {
        let measured = play(Some((language, body)), events);
        tell(&format!("{language}: {name}"), &measured, &alone);
    }
    tell("alone again", &play(None, events), &alone);
}

fn tell(name: &str, measured: &Measured, alone: &Measured) {
    let latency =
        |of: &[Duration]| format!("{:.2}/{:.2}/{:.1}", at(of, 50), at(of, 99), at(of, 100));
    println!(
        "{name:<31} {:>20} {:>+8.2} {:>20} {:>+8.2} {:>13} {:>7.0} {:>7.0}",
        latency(&measured.lua),
        at(&measured.lua, 99) - at(&alone.lua, 99),
        latency(&measured.rhai),
        at(&measured.rhai, 99) - at(&alone.rhai, 99),
        format!("{:.1}/{:.1}", at(&measured.health, 99), at(&measured.health, 100)),
        milliseconds(measured.peering),
        milliseconds(measured.lease),
    );
}

fn milliseconds(it: Duration) -> f64 {
    it.as_secs_f64() * 1000.0
}

/// Returns a percentile, in milliseconds.
fn at(measured: &[Duration], percent: usize) -> f64 {
    let mut sorted = measured.to_vec();
    sorted.sort();
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().map_or(f64::NAN, milliseconds)
}

fn play(hostile: Option<(&str, &str)>, events: usize) -> Measured {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let measured = runtime.block_on(measure(hostile, events));
    runtime.shutdown_background();
    measured
}

/// A cluster and its operator.
struct Cluster {
    env: Environment,
    /// The port of its health endpoint.
    port: u16,
    scripts: Arc<Timed>,
    /// Receives which handler has returned, for which object, and when.
    answers: mpsc::Receiver<Answer>,
    /// The hostile handler, if any.
    hostile: Option<Arc<Handler>>,
    running: RunningOperator,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Cluster {
    async fn open(hostile: Option<(&str, &str)>) -> Self {
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
        let settings = settings();
        let mut sources = NEIGHBOURS.map(|(name, text)| Source::alone(name, text)).to_vec();
        sources.extend(hostile.map(source));
        let loaded = ScriptHost::load(sources, Terms::of(Placement::Threads, &settings)).await;
        let told =
            |errors: Vec<LoadError>| errors.iter().map(ToString::to_string).collect::<String>();
        let (host, mut handlers) = loaded.map_err(told).expect("the scripts load");
        let hostile = handlers.pop_if(|it| &*it.id == "hostile").map(Arc::new);
        let (tell, answers) = mpsc::channel(16);
        let scripts = Arc::new(Timed { host, tell });
        let running = RunningOperator::start(Operator {
            settings: Arc::new(Mutex::new(settings)),
            health,
            ..env.operator(Arc::<Timed>::clone(&scripts), handlers)
        });
        Cluster { env, port, scripts, answers, hostile, running, stop, serving }
    }

    /// Starts the hostile calls; each is repeated as soon as it ends.
    fn disturb(&self) -> JoinSet<()> {
        let mut calls = JoinSet::new();
        for hostile in self.hostile.iter().flat_map(|it| std::iter::repeat_n(it, CALLS)) {
            let (scripts, handler) = (Arc::clone(&self.scripts), Arc::clone(hostile));
            let body =
                json!({ "metadata": { "name": "hostile", "namespace": "default" }, "spec": {} });
            calls.spawn(async move {
                loop {
                    let call = testing::creation(&handler, body.clone(), SharedPatch::default());
                    drop(scripts.host.call(Arc::new(call)).await);
                }
            });
        }
        calls
    }

    /// Causes an event; returns which handlers were called, and their latencies.
    async fn event(&mut self, name: &str) -> Vec<(String, Duration)> {
        let began = Instant::now();
        create(&self.env, name);
        let mut told = Vec::new();
        while told.len() < NEIGHBOURS.len() {
            let answer = timeout(PATIENCE, self.answers.recv()).await.expect("in time");
            let Answer { handler, object, at } = answer.expect("an answer");
            // Objects that were both listed and watched at the start are reported twice.
            if object == name {
                told.push((handler, at.duration_since(began)));
            }
        }
        told
    }
}

async fn measure(hostile: Option<(&str, &str)>, events: usize) -> Measured {
    let mut cluster = Cluster::open(hostile).await;
    // The first event is not measured: it includes the start.
    drop(cluster.event("warm").await);
    let mut calls = cluster.disturb();
    let probe = Probe::start(cluster.port);
    let (mut lua, mut rhai) = (Vec::new(), Vec::new());
    let (mut peering, mut lease) = (Pauses::default(), Pauses::default());
    let mut next = Instant::now();
    for number in 0..events {
        sleep_until(next).await;
        next = Instant::now() + PACE;
        for (id, latency) in cluster.event(&format!("object-{number}")).await {
            if id == "lua" { lua.push(latency) } else { rhai.push(latency) }
        }
        peering.see(last_seen(&cluster.env.server));
        lease.see(renewed(&cluster.env.server));
    }
    let health = probe.end();
    calls.shutdown().await;
    cluster.stop.cancel();
    cluster.running.stop().await;
    cluster.serving.join_all().await;
    Measured { lua, rhai, health, peering: peering.longest, lease: lease.longest }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.peering.lifetime = Duration::from_secs(2);
    settings.peering.clusterwide = true;
    settings.leadership.enabled = true;
    settings.leadership.retry_period = Duration::from_millis(200);
    settings
}

fn source((language, body): (&str, &str)) -> Source {
    let text = if language == "lua" {
        format!("kopf.on_update('kopfexamples', {{ id = 'hostile' }}, function(ctx) {body} end)")
    } else {
        format!(
            "fn deep(n) {{ 1 + deep(n + 1) }}
             kopf::on_update(`kopfexamples`, #{{ id: `hostile` }}, |ctx| {{ {body} }});"
        )
    };
    Source::alone(format!("hostile.{language}"), text)
}

fn create(env: &Environment, name: &str) {
    let mut object = object("default", name);
    let spec = json!({ "items": ["a", "b", "c"], "text": "x".repeat(500) });
    object.as_object_mut().expect("an object").insert("spec".into(), spec);
    env.create(object);
}

fn last_seen(server: &ApiServer) -> Option<Timestamp> {
    let peering = server.get(PEERINGS, "", "default")?;
    let records = peering.get("status")?.as_object()?.values();
    records.filter_map(|it| it.get("lastseen")?.as_str()?.parse().ok()).max()
}

fn renewed(server: &ApiServer) -> Option<Timestamp> {
    let leases = server.list(LEASES);
    leases.iter().filter_map(|it| it.pointer("/spec/renewTime")?.as_str()?.parse().ok()).max()
}
