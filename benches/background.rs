//! Memory of daemons and timers: the binary as a process of its own, against an embedded API server.
//!
//! `cargo bench --bench background [-- OBJECTS]`. Each object has a daemon that waits and a timer that rests, both of one Lua
//! script. What remains after the same objects were only seen is theirs. Linux only: reads `/proc`.
//!
//! `KOPF_BINARY=$(scripts/build-static)` measures the released binary, which is smaller than the one of the benchmark's profile:
//! its file pages count too.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first surprise")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

mod operator;

use std::{env, fs, net::Ipv4Addr, time::Duration};

use kopf::apiserver::{
    ApiServer, ResourceDef,
    serve::{Listener, Options},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// As messages of the server name the resource.
const EXAMPLES: &str = "kopfexamples.kopf.dev";
const NAMESPACE: &str = "default";
/// Objects, unless said otherwise.
const OBJECTS: u32 = 10_000;
/// How long it may take until all run, or have stopped.
const PATIENCE: Duration = Duration::from_mins(5);
/// What is allocated for the rush at the start is given back meanwhile.
const REST: Duration = Duration::from_secs(10);

/// The same objects with nothing in their background.
const SEEN: &str = "
    local seen = 0
    kopf.on_event('kopfexamples', function(ctx) seen += 1 end)
";

const BACKGROUND: &str = "
    kopf.daemon('kopfexamples', function(ctx)
        while not ctx.stopped:wait(600) do end
    end)
    kopf.timer('kopfexamples', { interval = 600 }, function(ctx) ctx.memo.ticks = (ctx.memo.ticks or 0) + 1 end)
";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let objects = env::args().find_map(|it| it.parse().ok()).unwrap_or(OBJECTS);
    println!("{}", operator::binary());
    println!(
        "{:<12} {:>12} {:>12} {:>12} {:>12}",
        "", "empty KiB", "objects KiB", "peak KiB", "CPU s"
    );
    let (_, seen) = play("seen", SEEN, objects).await;
    let (empty, full) = play("background", BACKGROUND, objects).await;
    let each = f64::from(u32::try_from(full.saturating_sub(seen)).unwrap_or(u32::MAX)) * 1024.0
        / f64::from(2 * objects);
    println!(
        "{} daemons and timers: {} KiB more than an empty operator,",
        2 * objects,
        full - empty
    );
    println!("{each:.0} bytes each on top of their objects");
}

/// Runs a script over this many objects; its memory without and with them, in KiB.
async fn play(name: &str, script: &str, objects: u32) -> (u64, u64) {
    let directory = env::temp_dir().join(format!("kopf-background-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let resource = ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample");
    let server = ApiServer::builder().resource(resource).build();
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let listener = Listener::bind(Options { address, beyond_loopback: false }).await;
    let listener = listener.expect("a port");
    let mut operator = operator::start(&directory, script, &listener.url());
    let stop = CancellationToken::new();
    let acts = async {
        sleep(REST).await;
        let empty = operator::memory(&operator, "VmRSS");
        (0..objects).for_each(|number| create(&server, number));
        let is_held = |it: &Value| it.pointer("/metadata/finalizers").is_some();
        if script == BACKGROUND {
            until(|| server.list(EXAMPLES).iter().all(is_held)).await;
        }
        sleep(REST).await;
        let full = operator::memory(&operator, "VmRSS");
        let (peak, cpu) = (operator::memory(&operator, "VmHWM"), operator::cpu(&operator));
        println!("{name:<12} {empty:>12} {full:>12} {peak:>12} {cpu:>12.2}");
        stop.cancel();
        (empty, full)
    };
    let ((), measured) = tokio::join!(listener.serve(server.clone(), stop.clone()), acts);
    operator.kill().await.expect("the operator ends");
    fs::remove_dir_all(&directory).expect("the directory is ours");
    measured
}

fn create(server: &ApiServer, number: u32) {
    let metadata = json!({ "name": format!("object-{number}"), "namespace": NAMESPACE });
    let spec = json!({ "field": "value", "number": number, "text": "x".repeat(200) });
    let body = json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": spec });
    server.create(EXAMPLES, body).expect("the object is new");
}

async fn until(is_done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_done() {
        assert!(Instant::now() < deadline, "not done in {PATIENCE:?}");
        sleep(Duration::from_millis(200)).await;
    }
}
