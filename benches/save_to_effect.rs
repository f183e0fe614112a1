//! From saving a script to its effect: the binary in a separate process, with an embedded API server.
//!
//! `cargo bench --bench save_to_effect [-- EDITS]`. A daemon patches an object with the number of the edit. Measures the time
//! from the save to the PATCH with the new number, for a file and for a `ConfigMap`.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

#[expect(dead_code, reason = "not every benchmark uses all of it")]
mod operator;

use std::{env, time::Duration};

use kopf::testing::{self, EXAMPLES};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use self::operator::Site;

/// The resource, as in messages of the server.
const CONFIGMAPS: &str = "configmaps";
const NAMESPACE: &str = "default";
/// Default number of edits.
const EDITS: u32 = 50;
/// Maximum time of one edit.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two edits, so that each is detected separately.
const REST: Duration = Duration::from_millis(300);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let edits = env::args().find_map(|it| it.parse().ok()).unwrap_or(EDITS);
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}   ms", "", "min", "median", "p95", "max");
    tell("file", play(edits, false).await);
    tell("configmap", play(edits, true).await);
}

/// Returns a script with a daemon that restarts with each edit, and patches its object at once.
fn script(edit: u32) -> String {
    format!(
        "kopf.daemon('kopfexamples', {{ id = 'tell', initial_delay = 0 }}, function(ctx)\n    \
             ctx.patch.spec = {{ edit = {edit} }}\nend)\n"
    )
}

fn tell(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1));
    let at = |share| at(share).copied().unwrap_or_default();
    println!("{name:<10} {:>10.1} {:>10.1} {:>10.1} {:>10.1}", at(0), at(50), at(95), at(100));
}

/// Returns the milliseconds from each save to its effect.
async fn play(edits: u32, is_map: bool) -> Vec<f64> {
    let server = ApiServer::builder().cluster(true).resource(testing::examples()).build();
    let site = Site::new("save", server);
    create(&site.server);
    save(&site, is_map, 0);
    let arguments: &[&str] = if is_map { &["--from-configmap", "default/ops"] } else { &[] };
    site.run(arguments, async |_| {
        until(&site.server, 0).await;
        let mut times = Vec::new();
        for edit in 1..=edits {
            sleep(REST).await;
            let start = Instant::now();
            save(&site, is_map, edit);
            until(&site.server, edit).await;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        times
    })
    .await
}

fn save(site: &Site, is_map: bool, edit: u32) {
    if !is_map {
        return site.save(&script(edit));
    }
    let data = json!({ "handlers.lua": script(edit) });
    if edit == 0 {
        let metadata = json!({ "name": "ops", "namespace": NAMESPACE });
        let map =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
        site.server.create(CONFIGMAPS, map).expect("it is new");
    } else {
        let merged = site.server.merge(CONFIGMAPS, NAMESPACE, "ops", json!({ "data": data }));
        merged.expect("it is there");
    }
}

fn create(server: &ApiServer) {
    let metadata = json!({ "name": "one", "namespace": NAMESPACE });
    let body = json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata });
    server.create(EXAMPLES, body).expect("the object is new");
}

/// Waits until the code of this edit has patched the object.
async fn until(server: &ApiServer, edit: u32) {
    let wait = async {
        loop {
            let revision = server.revision();
            let object = server.get(EXAMPLES, NAMESPACE, "one").unwrap_or_default();
            if object.pointer("/spec/edit").and_then(Value::as_u64) == Some(edit.into()) {
                return;
            }
            server.moved(revision).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("the effect comes in time");
}
