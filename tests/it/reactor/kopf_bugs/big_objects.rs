//! (l) The whole state fits: large specs are remembered in a compact form instead of failing permanently.

use serde_json::{Value, json};

use crate::reactor::cycles::{
    run::run,
    scenario::{Scenario, example},
    transcript::Transcript,
};

const ESSENCE: &str = "kopf.zalando.org/last-handled-configuration";

/// Runs a creation, an edit, and a restart of the operator, with this string in the spec.
fn life(text: &str) -> Transcript {
    let mut object = example();
    object["spec"]["text"] = text.into();
    run(&Scenario::parse(&json!({
        "handlers": [{ "on": "create" }, { "on": "update" }],
        "actions": [
            [1, "create", object], [5, "edit", "n1", { "spec": { "a": 2 } }], [10, "stop"], [11, "start"],
            [15, "edit", "n1", { "metadata": { "labels": { "x": "y" } } }],
        ],
        "until": 30,
    })))
}

fn calls(transcript: &Transcript) -> Vec<String> {
    let call =
        |it: &Value| format!("{} {}", it["t"].as_f64().unwrap_or_default().floor(), it["call"]);
    transcript.calls.iter().map(|it| call(it).replace('"', "")).collect()
}

fn stored(transcript: &Transcript) -> &str {
    transcript.objects[0]["metadata"]["annotations"][ESSENCE].as_str().expect("it is stored")
}

#[test]
fn a_spec_that_is_too_big_for_an_annotation_is_handled_once_per_change() {
    let transcript = life(&"some text of a user; ".repeat(30_000));
    assert_eq!(calls(&transcript), ["1 create_fn", "5 update_fn", "15 update_fn"]);
    assert!(stored(&transcript).len() < 20_000, "it is deflated");
    let (update, label) = (&transcript.calls[1], &transcript.calls[2]);
    assert_eq!(update["diff"], json!([["change", ["spec", "a"], 1, 2]]));
    assert_eq!(label["diff"], json!([["add", ["metadata"], null, { "labels": { "x": "y" } }]]));
}

#[test]
fn a_spec_that_does_not_even_deflate_is_handled_once_per_change() {
    let mut random = fastrand::Rng::with_seed(5);
    let noise: String = (0..700_000).map(|_| random.alphanumeric()).collect();
    let transcript = life(&noise);
    assert_eq!(calls(&transcript), ["1 create_fn", "5 update_fn", "15 update_fn"]);
    assert!(stored(&transcript).len() < 200, "only a digest is kept");
}
