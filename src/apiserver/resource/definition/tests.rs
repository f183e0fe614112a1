//! CRDs, compared with the responses of a real server (1.20.2). `tests/recorded/definitions.json` has what it stores or why it
//! refuses; `definition-status.json` has both versions and the status a little later.

use serde_json::{Value, json};

use super::*;
use crate::refusal::Refusal;

fn recorded(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("recordings")
}

fn message(crd: &Value, problems: &[crate::refusal::ValidationProblem]) -> String {
    let name = object::meta(crd, "name");
    Refusal::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, problems).message
}

/// Masks the Go structs that the real server shows in their internal form.
fn mask(text: &str) -> String {
    let mut out = text.to_owned();
    for (opening, closing) in [("Invalid value: [{", "}]: "), ("Invalid value: {\"", "}: only")] {
        let Some((before, rest)) = out.split_once(opening) else { continue };
        let Some((_, after)) = rest.split_once(closing) else { continue };
        out = format!("{before}<structure>: {after}");
    }
    out
}

fn as_set(texts: &str) -> Vec<String> {
    let texts = texts.replacen("is invalid: [", "is invalid, ", 1);
    let mut all: Vec<String> = texts.trim_end_matches(']').split(", ").map(String::from).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn crds_are_defaulted_and_refused_as_by_the_real_server() {
    let mut wrong = Vec::new();
    for recorded in recorded(include_str!("../../tests/recorded/definitions.json")) {
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
                // The decoder of the server removes unknown fields outside of schemas.
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
            // The real server iterates over maps of Go, so its order is random if several fields are invalid.
            if as_set(&theirs) != as_set(&ours) {
                wrong.push(format!("{name}:\n  theirs {theirs}\n  ours   {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crds_and_their_status_look_as_on_the_real_server() {
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
    for recorded in recorded(include_str!("../../tests/recorded/definition-status.json")) {
        let name = recorded["name"].as_str().expect("a name");
        let mut crd = recorded["sent"].clone();
        defaults(&mut crd);
        let others: &[&Value] = if name.starts_with("conflict") { &[&first] } else { &[] };
        crd["status"] = status(&crd, others, "now");
        let conditions = crd["status"]["conditions"].as_array_mut().expect("conditions");
        for condition in conditions.iter_mut() {
            assert_eq!(
                condition.as_object_mut().expect("an object").remove("lastTransitionTime"),
                Some("now".into())
            );
        }
        // The controllers run concurrently, so the order of their conditions is random.
        let (ours, theirs) = (sorted(crd), sorted(recorded["v1"].clone()));
        if ours != theirs {
            wrong.push(format!("{name}:\n  theirs {theirs}\n  ours   {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sorted(mut crd: Value) -> Value {
    let conditions = crd["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.sort_by_key(|it| it["type"].to_string());
    crd
}

/// Returns a stored CRD with these fields set.
fn stored(sets: &[(&str, Value)]) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": { "name": "things.a.b" },
        "spec": {
            "group": "a.b",
            "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    for (pointer, value) in sets {
        *crd.pointer_mut(pointer).expect("a part") = value.clone();
    }
    defaults(&mut crd);
    crd["status"] = status(&crd, &[], "then");
    crd
}

#[test]
fn established_crds_keep_their_group_names_and_scope() {
    let old = stored(&[]);
    assert!(check(&old, Some(&old)).is_empty());
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["names"]["kind"] = "Other".into();
    new["spec"]["group"] = "c.d".into();
    assert_eq!(
        message(&new, &check(&new, Some(&old))).split("is invalid: ").nth(1),
        Some(
            "[spec.scope: Invalid value: \"Cluster\": field is immutable, \
             spec.names.kind: Invalid value: \"Other\": field is immutable, \
             spec.group: Invalid value: \"c.d\": field is immutable]"
        )
    );
}

#[test]
fn a_new_storage_version_is_remembered_next_to_the_old_one() {
    let old = stored(&[]);
    let mut new = old.clone();
    new["spec"]["versions"][0]["name"] = "v2".into();
    assert_eq!(status(&new, &[], "now")["storedVersions"], json!(["v1", "v2"]));
    // The old version must stay in the list of versions.
    new["status"] = status(&new, &[], "now");
    assert!(message(&new, &check(&new, Some(&old))).contains("missing from spec.versions"));
}

#[test]
fn a_condition_with_the_same_status_keeps_its_time() {
    let crd = stored(&[]);
    assert_eq!(status(&crd, &[], "later"), crd["status"]);
}

#[test]
fn versions_are_preferred_by_stability_and_number() {
    let mut names =
        ["foo1", "v1alpha1", "v2", "v10", "v3beta1", "v11beta2", "v1", "foo10", "v12alpha1"];
    names.sort_by(|a, b| by_priority(a, b));
    assert_eq!(
        names,
        ["v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "v1alpha1", "foo1", "foo10"]
    );
}

#[test]
fn a_kind_has_its_served_versions_with_schema_rules_columns_and_scale() {
    let version = |name: &str, served: bool| {
        json!({
            "name": name,
            "served": served,
            "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object" } } } },
            "subresources": { "status": {}, "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            } },
            "additionalPrinterColumns": [{ "name": "A", "type": "string", "jsonPath": ".spec.a" }],
        })
    };
    let versions = json!([version("v1beta1", true), version("v1", true), version("v0", false)]);
    let kind = kind(&stored(&[("/spec/versions", versions)])).expect("a kind");
    assert_eq!(kind.def.versions, ["v1", "v1beta1"]);
    assert_eq!((kind.def.singular.as_str(), kind.def.status_subresource), ("thing", true));
    let v1 = &kind.versions["v1"];
    assert!(v1.rules.is_some() && v1.schema.is_some() && v1.raw_schema.is_some());
    assert_eq!(v1.columns[0].json_path, ".spec.a");
    assert_eq!(v1.scale.as_ref().map(|it| it.wanted.as_str()), Some(".spec.replicas"));
}

#[test]
fn rules_that_cannot_be_compiled_make_a_crd_invalid() {
    let schema =
        json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "nothing(self)" }] });
    let crd = stored(&[("/spec/versions/0/schema/openAPIV3Schema", schema)]);
    let found = check(&crd, None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule");
    assert!(found[0].text().contains("undeclared reference to 'nothing'"));
}
