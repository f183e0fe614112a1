//! `/healthz`, `/livez` and `/readyz`: the health of the server and of its parts.
//!
//! A server in one process is healthy if it responds. The parts are those of the real server that exist here, too, so that probes
//! of single parts work.

use crate::request::query::Query;

/// The parts that all endpoints check, in the order of the real server.
const CHECKS: [&str; 7] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
];

/// The parts that only `/readyz` checks: the first comes after `etcd`, the second is the last one.
const READY_CHECKS: [&str; 2] = ["informer-sync", "shutdown"];

/// The content type of the response.
pub(crate) const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Returns the body for a path; `None` if it is not a path of health. The status is always 200.
pub(crate) fn respond(path: &str, query: &Query) -> Option<String> {
    let (endpoint, part) = match path.strip_prefix('/')?.split_once('/') {
        Some((endpoint, part)) => (endpoint, Some(part)),
        None => (path.strip_prefix('/')?, None),
    };
    let checks = checks(endpoint)?;
    match part {
        Some(part) => checks.contains(&part).then(|| "ok".into()),
        None if query.has("verbose") => Some(verbose(endpoint, &checks, query)),
        None => Some("ok".into()),
    }
}

/// Returns all paths of health.
pub(super) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|endpoint| {
        let parts = checks(endpoint).into_iter().flatten();
        let parts = parts.map(move |it| format!("/{endpoint}/{it}"));
        std::iter::once(format!("/{endpoint}")).chain(parts)
    })
}

fn checks(endpoint: &str) -> Option<Vec<&'static str>> {
    let mut checks = CHECKS.to_vec();
    match endpoint {
        "healthz" | "livez" => {}
        "readyz" => {
            let [after_store, last] = READY_CHECKS;
            let store = checks.iter().position(|it| *it == "etcd").map_or(0, |it| it + 1);
            checks.insert(store, after_store);
            checks.push(last);
        }
        _ => return None,
    }
    Some(checks)
}

fn verbose(endpoint: &str, checks: &[&str], query: &Query) -> String {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let line = |check: &&str| {
        let note = if excluded.contains(check) { "excluded: " } else { "" };
        format!("[+]{check} {note}ok\n")
    };
    let mut lines: Vec<String> = checks.iter().map(line).collect();
    let mut unknown: Vec<String> =
        excluded.iter().filter(|it| !checks.contains(it)).map(|it| format!("{it:?}")).collect();
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        lines.push(format!(
            "warn: some health checks cannot be excluded: no matches for {unknown}\n"
        ));
    }
    lines.push(format!("{endpoint} check passed\n"));
    lines.concat()
}
