//! The golden vectors: input and expected output of the reference implementation, one test per suite.
//!
//! Reads `tests/vectors/` and each directory named in `KOPF_VECTORS` (colon-separated), where the same suites may have other cases.
//! Prints how many passed and failed, past the capturing of the test runner. A deliberate deviation is listed with its reason in
//! `tests/vectors/DEVIATIONS.json`.

mod admission;
pub(crate) mod catalogue;
mod cluster;
mod handlers;
mod handling;
mod indexes;
mod objects;
mod scripts;
pub(crate) mod state;
mod stopping;
mod times;

use std::{collections::BTreeMap, fs, io::Write as _, path::PathBuf};

use serde_json::Value;

/// One golden pair.
pub(crate) struct Vector {
    /// Unique within the suite.
    pub(crate) id: String,
    /// The input of the operation.
    pub(crate) input: Value,
    /// The output that it must have.
    pub(crate) expected: Value,
    /// Marks behaviour of the reference that contradicts its documentation.
    quirk: Option<String>,
}

impl Vector {
    /// Returns whether the reference raises an error here. Only that *an* error happens matters.
    pub(crate) fn expects_error(&self) -> bool {
        self.expected.get("error").is_some_and(Value::is_string)
    }
}

/// Suites that have a test. The others are reported as not built yet.
const BUILT: &[&str] = &[
    "activities",
    "admission-configurations",
    "admission-reviews",
    "annotation-keys",
    "cause-adjustment",
    "cause-detection",
    "daemon-stopping",
    "dicts-utils",
    "diff",
    "diff-reduce",
    "diffbase-storage",
    "essence",
    "execution-outcomes",
    "filters-matching",
    "handler-ids",
    "handler-selection",
    "hierarchies",
    "indexing",
    "json-patches",
    "k8s-events",
    "lifecycles",
    "namespaces",
    "object-references",
    "patching-requests",
    "progress-records",
    "resource-urls",
    "selectors",
    "throttling",
    "timers",
    "api-retries",
    "watch-streams",
    "cycles",
];

/// Runs `check` over every vector of a suite, in all directories; panics with the failures.
pub(crate) fn run(suite: &str, check: impl Fn(&Vector) -> Result<(), String>) {
    assert!(BUILT.contains(&suite), "add {suite} to the list of built suites");
    let deviations = deviations(suite);
    let (mut passed, mut deviating, mut failures) = (0, 0, Vec::new());
    for vector in directories().iter().flat_map(|it| load(it, suite)) {
        let quirk = vector.quirk.as_ref().map(|it| format!("quirk:{it}"));
        let known =
            deviations.keys().any(|it| matches(it, &vector.id) || quirk.as_ref() == Some(it));
        let checked = check(&vector);
        match (checked, known) {
            (Ok(()), _) => passed += 1,
            (Err(_), true) => deviating += 1,
            (Err(problem), false) => failures.push(format!("{}: {problem}", vector.id)),
        }
    }
    say(&format!(
        "vectors {suite}: {passed} passed, {} failed, {deviating} knowingly different",
        failures.len()
    ));
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        failures.is_empty(),
        "{} vectors of {suite} failed, the first are:\n{shown}",
        failures.len()
    );
    assert!(passed > 0, "no vectors of {suite} were found");
}

/// Returns the vectors of a suite that are in the repository.
pub(crate) fn own(suite: &str) -> Vec<Vector> {
    load(&own_directory(), suite)
}

/// Compares two results; the message shows both.
pub(crate) fn same(what: &str, actual: &Value, expected: &Value) -> Result<(), String> {
    if kopf_equal(actual, expected) {
        Ok(())
    } else {
        Err(format!("{what}: got {actual}, expected {expected}"))
    }
}

/// Compares strictly, except that numbers are equal by value and the order of keys does not matter.
fn kopf_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| kopf_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| kopf_equal(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn suites_that_are_not_built_yet_are_named() {
    let mut missing = Vec::new();
    for entry in directories().iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten() {
        let path = entry.path();
        let suite = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
        let is_suite = path.extension().is_some_and(|it| it == "json") && suite != "DEVIATIONS";
        if is_suite && !BUILT.contains(&suite.as_str()) {
            missing.push(suite);
        }
    }
    missing.sort();
    missing.dedup();
    say(&format!(
        "vectors not built yet: {}",
        if missing.is_empty() { "none".into() } else { missing.join(", ") }
    ));
}

/// Prints past the test runner, which shows the output of failed tests only.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("an open standard output");
}

fn own_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
fn directories() -> Vec<PathBuf> {
    let more = std::env::var("KOPF_VECTORS").unwrap_or_default();
    let more = more.split(':').filter(|it| !it.is_empty()).map(PathBuf::from);
    std::iter::once(own_directory()).chain(more).collect()
}

fn load(directory: &std::path::Path, suite: &str) -> Vec<Vector> {
    let Ok(text) = fs::read_to_string(directory.join(format!("{suite}.json"))) else {
        return Vec::new();
    };
    let file: Value = serde_json::from_str(&text).expect("a suite is JSON");
    let vectors = file["vectors"].as_array().cloned().unwrap_or_default();
    vectors
        .into_iter()
        .map(|it| Vector {
            id: it["id"].as_str().unwrap_or_default().to_owned(),
            input: it["input"].clone(),
            expected: it["expected"].clone(),
            quirk: it["quirk"].as_str().map(str::to_owned),
        })
        .collect()
}

/// Reads `{"suite": {"id, or prefix*, or quirk:name": "reason"}}`.
fn deviations(suite: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(own_directory().join("DEVIATIONS.json"))
        .expect("the list of deviations");
    let mut all: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(&text).expect("deviations are JSON");
    all.remove(suite).unwrap_or_default()
}

/// Matches a pattern, in which `*` is anything, so that it covers cases of the same kind in other directories.
fn matches(pattern: &str, id: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == id };
    let Some(tail) = id.strip_prefix(start) else { return false };
    (0..=tail.len()).any(|it| tail.get(it..).is_some_and(|tail| matches(rest, tail)))
}

/// Returns a patch without the parts that only this implementation sends, so that no other object of that name accepts it: the uid, or the
/// version in a merge-patch of a status.
pub(crate) fn without_uid(mut payload: Value) -> Value {
    if let Some(operations) = payload.as_array_mut() {
        operations.retain(|it| it["op"] != "test" || it["path"] != "/metadata/uid");
    }
    let is_of_status = payload.get("status").is_some();
    if let Some(metadata) = payload.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("uid");
        if is_of_status {
            metadata.shift_remove("resourceVersion");
        }
        if metadata.is_empty() {
            payload.as_object_mut().expect("a merge-patch").shift_remove("metadata");
        }
    }
    payload
}
