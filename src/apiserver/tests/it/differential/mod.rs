//! The embedded server compared with a real one: the same requests must get the same responses.
//!
//! The requests are in `tests/exchanges/*.yaml`, with the recorded responses of the real server next to them, so that the tests run
//! on any machine. With `E2E=1` and a `KUBECONFIG`, the real server must respond as recorded; with `UPDATE_EXPECT=1` too, its
//! responses are recorded first. `ONLY=word` selects the scripts with this word in their name.

pub(crate) mod compare;
pub(crate) mod mask;
mod run;
pub(crate) mod script;

use std::{collections::BTreeSet, fmt::Write as _, fs, path::PathBuf};

use futures::{StreamExt as _, stream};
use kopf_apiserver::{
    ApiServer,
    controllers::{self, Controllers},
    streaming::{Exit, PodStreams},
};
use serde_json::Value;

use self::{
    compare::KnownDifferences,
    run::{Clients, Transcript, transcript},
    script::{RequestScript, directory},
};
use crate::{client, say};

/// Maximum number of scripts that run against the real server concurrently.
const AT_ONCE: usize = 6;

/// The minimum size of the suite.
const EXCHANGES_MIN: usize = 2_300;

#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|it| !it.is_empty())
}

fn recording(script: &str) -> PathBuf {
    directory().join(format!("recorded/{script}.json"))
}

/// Returns the recorded responses of the real server.
fn recorded(script: &RequestScript) -> Vec<Value> {
    let path = recording(&script.name);
    let text = fs::read(&path)
        .unwrap_or_else(|it| panic!("{}: {it}: record it with UPDATE_EXPECT=1", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
}

async fn embedded(script: &RequestScript) -> Transcript {
    let pods = PodStreams::default()
        .exec(|_process| async { Exit::Code(0) })
        .attach(|_process| async { Exit::Code(0) })
        .port_forward(|_connection| async { Ok(()) });
    let builder = ApiServer::builder().cluster(true).rbac(true).pods(pods);
    let server = builder.clock(time).seed(1).build();
    let clients = Clients { admin: client(&server), bare: client(&server) };
    tokio::select! {
        said = transcript(&clients, script, "r00000000") => said,
        () = own_controllers(server) => panic!("controllers do not end"),
    }
}

/// Runs the controllers that the real server runs itself. Its namespaces wait for a controller manager, which does not exist.
pub(crate) async fn own_controllers(server: ApiServer) {
    let own = Controllers { definitions: true, ..Controllers::default() };
    controllers::run(server, own).await;
}

pub(crate) fn time() -> String {
    "2026-01-01T00:00:00Z".into()
}

#[tokio::test(start_paused = true)]
async fn the_embedded_server_responds_like_the_real_one() {
    let only = variable("ONLY").unwrap_or_default();
    let scripts = script::all(&only);
    let mut known = KnownDifferences::read("known-differences.yaml");
    let mut report = String::new();
    let (mut exchanges, mut unequal) = (0, 0);
    for script in &scripts {
        let answers = embedded(script).await;
        report.extend(answers.unexpected.iter().map(|it| format!("{it}\n")));
        let answers = answers.records;
        let text = serde_json::to_string_pretty(&answers).expect("JSON");
        let dump = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", script.name));
        fs::write(dump, text).expect("a writable file");
        exchanges += script.steps.len();
        let differences = compare::differences(&script.name, &recorded(script), &answers);
        let mut failed = 0;
        for (exchange, found) in differences {
            let unknown = found.iter().filter(|it| !known.covers(it));
            let texts: Vec<String> = unknown.map(compare::Difference::text).collect();
            if !texts.is_empty() {
                failed += 1;
                let _infallible = writeln!(report, "{exchange}\n{}", texts.join("\n"));
            }
        }
        unequal += failed;
        say(&format!("{}: {} exchanges, {failed} differ", script.name, script.steps.len()));
    }
    say(&format!(
        "{exchanges} exchanges, {unequal} differ; known differences:\n{}",
        known.summary()
    ));
    assert!(report.is_empty(), "{unequal} of {exchanges} exchanges differ:\n{report}");
    if only.is_empty() {
        assert!(known.unneeded().is_empty(), "not needed: {:#?}", known.unneeded());
        assert!(exchanges >= EXCHANGES_MIN, "only {exchanges} exchanges");
    }
}

/// The minimum number of behaviors from the conformance suite.
const CONFORMANCE_MIN: usize = 30;

#[test]
fn the_documentation_lists_the_conformance_behaviors_of_the_scripts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/apiserver.md");
    let documentation = fs::read_to_string(path).expect("the documentation");
    let listed: BTreeSet<String> = documentation
        .lines()
        .filter_map(|it| it.strip_prefix("- "))
        .map(|it| it.strip_prefix("``").unwrap_or(it).trim_matches('`').to_owned())
        .filter(|it| it.starts_with("[sig-"))
        .collect();
    let scripts = script::all("");
    let claims = scripts.iter().flat_map(|it| &it.steps).filter_map(|it| it.claim.clone());
    let claims: BTreeSet<String> = claims.filter(|it| it.starts_with("[sig-")).collect();
    assert_eq!(listed, claims);
    assert!(claims.len() >= CONFORMANCE_MIN, "only {} behaviors", claims.len());
    let expecting = |it: &&RequestScript| it.steps.iter().any(|it| !it.expect.is_empty());
    assert!(
        scripts.iter().filter(|it| it.name.starts_with("conformance")).all(|it| expecting(&it))
    );
}

async fn real_clients() -> Clients {
    let mut config = kube::Config::infer().await.expect("a kubeconfig");
    // A refusal must be recorded, not repeated.
    config.default_retry = false;
    let admin = kube::Client::try_from(config.clone()).expect("a client");
    config.auth_info = kube::config::AuthInfo::default();
    Clients { admin, bare: kube::Client::try_from(config).expect("a client") }
}

/// Attempts against a real server until it responds as recorded.
const ATTEMPTS: usize = 3;

#[tokio::test]
async fn the_real_server_responds_as_recorded() {
    if variable("E2E").is_none() {
        return;
    }
    let update = variable("UPDATE_EXPECT").is_some();
    let clients = real_clients().await;
    let scripts = script::all(&variable("ONLY").unwrap_or_default());
    let start = std::process::id();
    let runs = scripts.iter().enumerate().map(|(index, script)| {
        let clients = &clients;
        async move {
            let mut attempt = 0;
            let answers = loop {
                let run = format!("r{:08x}", start as usize * 1000 + index * 10 + attempt);
                let answers = transcript(clients, script, &run).await;
                attempt += 1;
                // Its controllers take time, and two writes may or may not be in the same second.
                let differs = || {
                    !compare::differences(&script.name, &recorded(script), &answers.records)
                        .is_empty()
                };
                if update || attempt == ATTEMPTS || !differs() {
                    break answers;
                }
            };
            if update && answers.unexpected.is_empty() {
                let text = serde_json::to_string_pretty(&answers.records).expect("JSON");
                fs::write(recording(&script.name), text + "\n").expect("a writable file");
            }
            (script, answers)
        }
    });
    let answers: Vec<_> = stream::iter(runs).buffered(AT_ONCE).collect().await;
    let mut report = String::new();
    let mut exchanges = 0;
    for (script, answers) in answers {
        exchanges += answers.records.len();
        report.extend(answers.unexpected.iter().map(|it| format!("{it}\n")));
        if update && !answers.unexpected.is_empty() {
            // It is not recorded.
            continue;
        }
        let answers = answers.records;
        for (exchange, found) in compare::differences(&script.name, &recorded(script), &answers) {
            let texts: Vec<String> = found.iter().map(compare::Difference::text).collect();
            let _infallible = writeln!(report, "{exchange}\n{}", texts.join("\n"));
        }
    }
    say(&format!("{exchanges} exchanges with the real server"));
    assert!(report.is_empty(), "the real server answers otherwise than recorded:\n{report}");
}
