//! What the real server (1.20.2) makes of definitions. `recorded.json`: what it stores or why it refuses; `status.json`: how
//! both versions and the status look a little later.

use serde_json::{Value, json};

use super::*;
use crate::apiserver::refusal::Refusal;

fn recorded(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("recordings")
}

fn message(crd: &Value, problems: &[crate::apiserver::refusal::Problem]) -> String {
    let name = object::meta(crd, "name");
    Refusal::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, problems).message
}

/// Addresses in the memory of the real server, and structures it prints at length.
fn mask(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        out.push_str(&rest[..at]);
        out.push_str("0x0");
        rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out.push_str(rest);
    match (out.find("apiextensions.JSONSchemaProps{"), out.rfind("}: only")) {
        (Some(start), Some(end)) => format!("{}...{}", &out[..start + 30], &out[end..]),
        _ => out,
    }
}

fn as_set(texts: &str) -> Vec<String> {
    let mut all: Vec<String> = texts.split(", ").map(String::from).collect();
    all.sort();
    all
}

#[test]
fn definitions_are_completed_and_refused_as_by_the_real_server() {
    let mut wrong = Vec::new();
    for recorded in recorded(include_str!("recorded.json")) {
        let mut crd = recorded["crd"].clone();
        crd.as_object_mut().expect("an object").remove("status");
        defaults(&mut crd);
        let problems = check(&crd, None);
        let name = &recorded["name"];
        if recorded["code"] == 201 {
            if !problems.is_empty() {
                wrong.push(format!("{name}: is accepted, but we say {}", message(&crd, &problems)));
                continue;
            }
            let mut theirs = recorded["out"].clone();
            for it in [&mut crd, &mut theirs] {
                // Unknown fields outside of schemas are removed by the decoder of the server.
                for field in ["strange", "odd"] {
                    it["spec"].as_object_mut().expect("a spec").remove(field);
                    it["spec"]["names"].as_object_mut().expect("names").remove(field);
                }
                it.as_object_mut().expect("an object").retain(|name, _| name != "kind");
            }
            if crd != theirs {
                wrong.push(format!("{name}:\n  theirs {theirs}\n  ours   {crd}"));
            }
        } else {
            let (theirs, ours) = (
                mask(recorded["message"].as_str().expect("a text")),
                mask(&message(&crd, &problems)),
            );
            // The real server walks over maps of Go, so its order is random where several fields are wrong.
            if as_set(&theirs) != as_set(&ours) {
                wrong.push(format!("{name}:\n  theirs {theirs}\n  ours   {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_versions_and_the_status_look_as_on_the_real_server() {
    let mut first: Value = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": { "name": "things.schema-crd.example.com" },
        "spec": {
            "group": "schema-crd.example.com",
            "names": { "plural": "things", "kind": "Thing", "shortNames": ["th", "tt"] },
        },
    });
    defaults(&mut first);
    first["status"] = status(&first, &[], "then");
    let mut wrong = Vec::new();
    for recorded in recorded(include_str!("status.json")) {
        let name = recorded["name"].as_str().expect("a name");
        let mut crd = recorded["sent"].clone();
        defaults(&mut crd);
        to_v1(&mut crd);
        let others: &[&Value] = if name.starts_with("conflict") { &[&first] } else { &[] };
        crd["status"] = status(&crd, others, "now");
        let conditions = crd["status"]["conditions"].as_array_mut().expect("conditions");
        for condition in conditions.iter_mut() {
            assert_eq!(
                condition.as_object_mut().expect("an object").remove("lastTransitionTime"),
                Some("now".into())
            );
        }
        let mut beta = crd.clone();
        to_v1beta1(&mut beta);
        for (ours, theirs) in [(crd, recorded["v1"].clone()), (beta, recorded["v1beta1"].clone())] {
            // The controllers run side by side: the order of their conditions is random.
            let (ours, theirs) = (sorted(ours), sorted(theirs));
            if ours != theirs {
                wrong.push(format!("{name}:\n  theirs {theirs}\n  ours   {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sorted(mut crd: Value) -> Value {
    let conditions = crd["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.sort_by_key(|it| it["type"].to_string());
    crd
}
