//! Memory and CPU time of an operator over many events: the binary in a separate process, with an embedded API server.
//!
//! `cargo bench --bench soak [-- EVENTS]`. Objects are edited in rounds, each edit is handled with two patches, and some objects
//! are replaced by new ones, to reveal leaks per object or per event. Linux only: reads `/proc`.
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
const OBJECTS: usize = 500;
/// One of this many objects is replaced in each round.
const REPLACED: usize = 10;
/// Default number of events.
const EVENTS: u64 = 1_000_000;
/// Number of lines in the table.
const LINES: u64 = 20;
/// Maximum time of one round.
const ROUND_MAX: Duration = Duration::from_mins(1);

const SCRIPT: &str = "
    local seen = 0
    kopf.on_event('kopfexamples', function(ctx) seen += 1 end)
    kopf.on_create('kopfexamples', { id = 'done' }, function(ctx) return { round = ctx.spec.round } end)
    kopf.on_update('kopfexamples', { id = 'done' }, function(ctx)
        ctx.memo.round = ctx.spec.round
        return { round = ctx.spec.round }
    end)
";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let events = env::args().find_map(|it| it.parse().ok()).unwrap_or(EVENTS);
    soak(events).await;
}

async fn soak(events: u64) {
    let mut resource = testing::examples();
    resource.status_subresource = true;
    let site = Site::new("soak", ApiServer::builder().resource(resource).build());
    site.save(SCRIPT);
    site.run(&[], async |operator| run(&site.server, operator, events).await).await;
}

/// Runs the rounds and prints the table.
async fn run(server: &ApiServer, operator: &Child, events: u64) {
    println!("{:>9} {:>8} {:>8} {:>10} {:>10}", "events", "s", "RSS KiB", "CPU s", "µs/event");
    let (begun, step) = (Instant::now(), (events / LINES).max(1));
    let mut next = 0;
    for round in 0_u64.. {
        for number in 0..OBJECTS {
            let name = format!("object-{number}");
            let spec = json!({ "round": round, "text": "x".repeat(1000) });
            let is_replaced = number % REPLACED == usize::try_from(round).unwrap_or(0) % REPLACED;
            if is_replaced && round > 0 {
                server.delete(EXAMPLES, NAMESPACE, &name).expect("the object is there");
            }
            if is_replaced || round == 0 {
                let metadata = json!({ "name": name, "namespace": NAMESPACE });
                let body = json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": spec });
                server.create(EXAMPLES, body).expect("the object is new");
            } else {
                let merge = json!({ "spec": spec });
                server.merge(EXAMPLES, NAMESPACE, &name, merge).expect("the object is there");
            }
        }
        wait(server, round).await;
        let seen = server.revision();
        if seen >= next {
            let (cpu, memory) = (operator::cpu(operator), operator::memory(operator, "VmRSS"));
            let per_event = cpu * 1e6 / f64::from(u32::try_from(seen).unwrap_or(u32::MAX));
            let elapsed = begun.elapsed().as_secs_f64();
            println!("{seen:>9} {elapsed:>8.1} {memory:>8} {cpu:>10.2} {per_event:>10.1}");
            next = seen + step;
        }
        if seen >= events {
            return;
        }
    }
}

/// Waits until all objects are handled in the state of this round.
async fn wait(server: &ApiServer, round: u64) {
    let deadline = Instant::now() + ROUND_MAX;
    let is_done = |it: &Value| it.pointer("/status/done/round") == Some(&json!(round));
    while !server.list(EXAMPLES).iter().all(is_done) {
        assert!(Instant::now() < deadline, "round {round} is not handled in {ROUND_MAX:?}");
        sleep(Duration::from_millis(20)).await;
    }
}
