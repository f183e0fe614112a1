//! Creations of custom resources, compared with the responses of a real server (1.20.2).
//!
//! `tests/recorded/schemas.json` has the recordings: schemas with objects, and for each object what was stored or why it was
//! refused.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::refusal::Refusal;

struct Case {
    name: String,
    schema: Value,
    objects: Vec<Value>,
}

fn recorded() -> Vec<Case> {
    let all: Vec<Value> =
        serde_json::from_str(include_str!("../tests/recorded/schemas.json")).expect("recordings");
    all.into_iter()
        .map(|it| Case {
            name: it["name"].as_str().expect("a name").into(),
            schema: it["schema"].clone(),
            objects: it["objects"].as_array().expect("objects").clone(),
        })
        .collect()
}

/// Returns the response of this server: the status, and the stored object without its kind, or the message.
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

/// Returns whether the refusal is about the metadata, which other tests cover.
fn is_about_metadata(recorded: &Value) -> bool {
    let message = recorded["message"].as_str().unwrap_or_default();
    let rest = message.split("is invalid: ").nth(1).unwrap_or_default();
    let field = rest.trim_start_matches('[');
    field.starts_with("metadata.") && !field.contains("in body")
}

/// Returns whether the difference comes from the Go version of the recorded server: it is newer than Kubernetes 1.20 expects, and
/// takes empty strings for `null`. Official builds do not.
fn is_about_empty_text(recorded: &Value) -> bool {
    recorded["message"].as_str().unwrap_or_default().contains("of type string: \"null\"")
        && recorded["in"].to_string().contains(":\"\"")
}

/// Returns the parts of a message sorted, because the real server iterates over maps in random order.
fn parts(answer: &Value) -> Value {
    let Some(text) = answer.as_str() else { return answer.clone() };
    let text = text.replacen("is invalid: [", "is invalid, ", 1);
    let mut parts: Vec<&str> = text.trim_end_matches(']').split(", ").collect();
    parts.sort_unstable();
    json!(parts)
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
            // Errors of decoders are worded differently.
            let same = ours.0 == theirs.0
                && (ours.0 == 400 || validate::same(&parts(&ours.1), &parts(&theirs.1)));
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

#[test]
fn deep_schemas_and_values_are_walked_without_harm() {
    // The JSON parser accepts 128 levels.
    let mut schema = json!({ "type": "string" });
    let mut object = json!(5);
    for _ in 0..60 {
        schema = json!({ "type": "object", "properties": { "a": schema } });
        object = json!({ "a": object, "b": 1 });
    }
    let tree = Arc::new(Schema::parse(&schema));
    let rules = Rules::new(&schema, tree.clone()).expect("rules");
    default(&tree, &mut object);
    prune(&tree, &mut object);
    assert_eq!(rules.check(&object, None).len(), 1);
    for _ in 0..300 {
        schema = json!({ "not": schema });
    }
    assert!(Rules::new(&schema, tree).is_err());
}

#[test]
fn patterns_take_linear_time_and_bounded_space() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
    let rules = Rules::new(&schema, Arc::new(Schema::parse(&schema))).expect("rules");
    let text = format!("{}!", "a".repeat(100_000));
    assert_eq!(rules.check(&json!({ "a": text }), None).len(), 1);
    assert!(pattern::compile("((a{1000}){1000}){1000}").is_err());
}

#[test]
fn patterns_are_parsed_as_in_go() {
    for (pattern, text, fits) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "\u{0661}", false),
        (r"^[\w-]+$", "a-b", true),
        (r"^\w$", "ä", false),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{2}$", "aa", true),
        (r"^[[a]$", "[", true),
        (r"^[]a]$", "]", true),
        (r"^[a&&b]$", "&", true),
        (r"^\Qa.b\E$", "a.b", true),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^\p{Greek}$", "α", true),
    ] {
        let regex = pattern::compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert_eq!(regex.is_match(text), fits, "{pattern} on {text}");
    }
}

#[test]
fn limits_of_formats_are_integers() {
    // From the CRDs of the Operator Lifecycle Manager.
    let port = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "default": 443 });
    let schema = json!({ "type": "object", "properties": { "port": port } });
    let rules = Rules::new(&schema, Arc::new(Schema::parse(&schema))).expect("rules");
    for (value, problems) in [
        (json!(443), 0),
        (json!(0), 1),
        (json!(65536), 1),
        (json!(1_u64 << 40), 2),
        (json!(1.5), 2),
    ] {
        let found = rules.check(&json!({ "port": value }), None);
        assert_eq!(found.len(), problems, "{value}: {found:?}");
    }
}

#[test]
fn large_sets_are_checked_quickly() {
    let schema = json!({ "type": "object", "properties": { "s": {
        "type": "array",
        "items": { "type": "integer" },
        "x-kubernetes-list-type": "set",
    } } });
    let rules = Rules::new(&schema, Arc::new(Schema::parse(&schema))).expect("rules");
    let mut items: Vec<i64> = (0..100_000).collect();
    items.push(7);
    let found = rules.check(&json!({ "s": items }), None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "s[100000]");
}
