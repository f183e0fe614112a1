//! Memory of daemons and timers: the binary in a separate process, with an embedded API server.
//!
//! `cargo bench --bench background [-- OBJECTS]`. Each object has a waiting daemon and a timer between two calls, both of one Lua
//! script. Their memory is the difference to a run that only watches the same objects. Linux only: reads `/proc`.
//!
//! Measure the released binary, which is smaller than that of the benchmark profile: its file pages count, too.
//!
//! `KOPF_BINARY=$(scripts/build-static) cargo bench --bench background`
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

mod operator;

use std::{env, time::Duration};

use kopf::testing::{self, EXAMPLES};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::{
    process::Child,
    time::{Instant, sleep},
};

use self::operator::Site;

const NAMESPACE: &str = "default";
/// Default number of objects.
const OBJECTS: u32 = 10_000;
/// Maximum time until all daemons and timers run, or have stopped.
const PATIENCE: Duration = Duration::from_mins(5);
/// Time to free the memory of a load peak: the operator must be idle at two checks.
const REST: Duration = Duration::from_secs(20);
/// Number of samples of one row, and the pause between them: they last for ten seconds, the period in which an idle operator wakes up, maps pages of
/// its program, and releases them.
const SAMPLES: usize = 21;
const SAMPLE_PAUSE: Duration = Duration::from_millis(500);
/// Maximum memory of a process with 10,000 daemons and 10,000 timers.
const LIMIT_KIB: u64 = 40 * 1000 * 1000 / 1024;

/// The same objects without daemons and timers.
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
        "KiB              {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "resident", "anonymous", "file", "at most", "peak", "CPU s"
    );
    let (_, seen) = play("seen", SEEN, objects).await;
    let (empty, full) = play("background", BACKGROUND, objects).await;
    let more = full.saturating_sub(seen) * 1024;
    println!("an empty operator: {empty} KiB");
    println!(
        "each daemon or timer, in addition to its object: {} bytes",
        more / u64::from(2 * objects)
    );
    if objects == OBJECTS {
        let verdict = if full <= LIMIT_KIB { "met" } else { "EXCEEDED" };
        println!("the limit of {LIMIT_KIB} KiB for {} daemons and timers: {verdict}", 2 * OBJECTS);
    }
}

/// Runs a script with this many objects; returns its resident memory without and with them, in KiB.
async fn play(name: &str, script: &str, objects: u32) -> (u64, u64) {
    let server = ApiServer::builder().resource(testing::examples()).build();
    let site = Site::new("background", server);
    let server = &site.server;
    site.save(script);
    site.run(&[], async |operator| {
        sleep(REST).await;
        let empty = row(&format!("{name}: none"), operator).await;
        (0..objects).for_each(|number| create(server, number));
        let is_held = |it: &Value| it.pointer("/metadata/finalizers").is_some();
        if script == BACKGROUND {
            until(|| server.list(EXAMPLES).iter().all(is_held)).await;
        }
        sleep(REST).await;
        (empty, row(name, operator).await)
    })
    .await
}

/// Prints the memory and CPU time of the operator; returns its resident memory in KiB: the median of all samples.
async fn row(name: &str, operator: &Child) -> u64 {
    let of = |what| operator::memory(operator, what);
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.push((of("VmRSS"), of("RssAnon"), of("RssFile")));
        sleep(SAMPLE_PAUSE).await;
    }
    samples.sort_unstable();
    let (resident, anonymous, file) = samples.get(SAMPLES / 2).copied().unwrap_or_default();
    let most = samples.last().map_or(0, |(resident, ..)| *resident);
    let (peak, cpu) = (of("VmHWM"), operator::cpu(operator));
    println!(
        "{name:<16} {resident:>10} {anonymous:>10} {file:>10} {most:>10} {peak:>10} {cpu:>10.2}"
    );
    resident
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
