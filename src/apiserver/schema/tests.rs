//! What the real server (1.20.2) answers to creations of custom resources, and what we make of the same objects.
//!
//! `recorded.json` holds its answers: for each schema some objects, and for each object what was stored or why it was refused.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::*;
use crate::apiserver::refusal::Refusal;

struct Case {
    name: String,
    schema: Value,
    objects: Vec<Value>,
}

fn recorded() -> Vec<Case> {
    let all: Vec<Value> = serde_json::from_str(include_str!("recorded.json")).expect("recordings");
    all.into_iter()
        .map(|it| Case {
            name: it["name"].as_str().expect("a name").into(),
            schema: it["schema"].clone(),
            objects: it["objects"].as_array().expect("objects").clone(),
        })
        .collect()
}

/// What we answer: the status, and the stored object without its kind, or the message.
fn answer(schema: &Schema, rules: &Rules, object: &Value) -> (u64, Value) {
    let mut object = object.clone();
    if let Some(text) = metadata::unreadable(Some(schema), &object) {
        let text = format!("Thing in version \"v1\" cannot be handled as a Thing: {text}");
        return (400, text.into());
    }
    default(schema, &mut object);
    prune(schema, &mut object);
    let problems = rules.check(&object, None);
    if problems.is_empty() {
        let fields = object.as_object_mut().expect("an object");
        fields.remove("apiVersion");
        fields.remove("kind");
        return (201, object);
    }
    (422, Refusal::invalid("g", "Thing", "x", &problems).message.into())
}

/// Whether the metadata itself is what is refused: its checks are not ours.
fn is_about_metadata(recorded: &Value) -> bool {
    let message = recorded["message"].as_str().unwrap_or_default();
    let rest = message.split("is invalid: ").nth(1).unwrap_or_default();
    let field = rest.trim_start_matches('[');
    field.starts_with("metadata.") && !field.contains("in body")
}

/// The recorded server was built with a newer Go than Kubernetes 1.20 was made for, and takes empty texts for `null`. Those of
/// the project do not.
fn is_about_empty_text(recorded: &Value) -> bool {
    recorded["message"].as_str().unwrap_or_default().contains("of type string: \"null\"")
        && recorded["in"].to_string().contains(":\"\"")
}

#[test]
fn objects_are_defaulted_pruned_and_refused_as_by_the_real_server() {
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for case in recorded() {
        let schema = Arc::new(Schema::parse(&case.schema));
        let rules = Rules::new(&case.schema, schema.clone()).expect("rules");
        for recorded in case.objects.iter().filter(|it| !is_about_metadata(it)) {
            count += 1;
            let ours = answer(&schema, &rules, &recorded["in"]);
            let key = if recorded["code"] == 201 { "out" } else { "message" };
            let theirs = (recorded["code"].as_u64().expect("a code"), recorded[key].clone());
            if is_about_empty_text(recorded) {
                continue;
            }
            let same = ours.0 == theirs.0 && validate::same(&ours.1, &theirs.1);
            if !same {
                let text = format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", recorded["in"]);
                wrong.entry(case.name.clone()).or_default().push(text);
            }
        }
    }
    assert!(count > 300, "only {count} recordings");
    let texts = wrong.iter().map(|(name, texts)| format!("## {name}\n{}", texts.join("\n")));
    assert!(wrong.is_empty(), "{}", texts.collect::<Vec<_>>().join("\n"));
}
