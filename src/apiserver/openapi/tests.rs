//! The documents compared with those of a real server for the same CRDs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::resource::{
    ResourceDef,
    kind::{KindVersion, Scale},
};

fn recorded() -> Value {
    serde_json::from_str(include_str!("../tests/recorded/openapi.json")).unwrap()
}

fn natives() -> Map<String, Value> {
    recorded()["natives"].as_object().unwrap().clone()
}

fn scale() -> Scale {
    let path = |it: &str| String::from(it);
    Scale { wanted: path(".spec.replicas"), present: path(".status.replicas"), selector: None }
}

/// Returns the CRDs of the recording, and Deployments.
fn kinds() -> Vec<Arc<Kind>> {
    let recorded = recorded();
    let custom = recorded["kinds"].as_array().unwrap().iter().map(|it| {
        let text = |field: &str| it[field].as_str().unwrap();
        let parts = it["status"].as_array().unwrap();
        let versions = it["versions"].as_object().unwrap().iter().map(|(name, schema)| {
            let version = KindVersion {
                raw_schema: Some(Arc::new(schema.clone())),
                scale: parts.iter().any(|it| it == name).then(scale),
                ..KindVersion::default()
            };
            (name.clone(), version)
        });
        let versions: BTreeMap<String, KindVersion> = versions.collect();
        let mut def = ResourceDef {
            namespaced: it["namespaced"] == true,
            status_subresource: !parts.is_empty(),
            versions: versions.keys().cloned().collect(),
            ..ResourceDef::new(text("group"), "", text("plural"), text("kind"))
        };
        def.verbs.push("deletecollection".into());
        Arc::new(Kind { versions, ..Kind::plain(def) })
    });
    let mut def = ResourceDef {
        native: true,
        status_subresource: true,
        ..ResourceDef::new("apps", "v1", "deployments", "Deployment")
    };
    def.verbs.push("deletecollection".into());
    let version = KindVersion { scale: Some(scale()), ..KindVersion::default() };
    let native = Kind { versions: BTreeMap::from([("v1".into(), version)]), ..Kind::plain(def) };
    custom.chain([Arc::new(native)]).collect()
}

fn document() -> Value {
    let document = OpenApi::new(natives).v2(&kinds(), "application/json").unwrap();
    serde_json::from_slice(&document.body()).unwrap()
}

/// Removes descriptions, which are worded differently here.
fn without_descriptions(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, it)| *name != "description" || !it.is_string())
            .map(|(name, it)| (name.clone(), without_descriptions(it)))
            .collect(),
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn definitions_of_crds_are_published_as_by_the_real_server() {
    let document = document();
    let expected = recorded()["definitions"].clone();
    assert_eq!(expected.as_object().unwrap().len(), 10);
    for (name, expected) in expected.as_object().unwrap() {
        let mut ours = without_descriptions(&document["definitions"][name]);
        if name.ends_with("List") {
            // Newer servers write it, the recorded one does not.
            assert_eq!(ours.as_object_mut().unwrap().shift_remove("type"), Some(json!("object")));
        }
        assert_eq!(ours, *expected, "{name}");
    }
}

#[test]
fn operations_are_named_and_marked_as_by_the_real_server() {
    let document = document();
    let expected = recorded()["operations"].clone();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let here = path.starts_with("/apis/present.example.com/v1/") || path.contains("/apps/v1/");
        for (method, operation) in item.as_object().unwrap().iter().filter(|_| here) {
            if method == "parameters" {
                continue;
            }
            count += 1;
            let expected = &expected[format!("{method} {path}")];
            assert_eq!(operation["operationId"], expected[0], "{method} {path}");
            assert_eq!(operation["x-kubernetes-action"], expected[1], "{method} {path}");
            assert_eq!(
                operation["x-kubernetes-group-version-kind"], expected[2],
                "{method} {path}"
            );
            assert_eq!(operation["tags"][0], expected[3], "{method} {path}");
            if method == "patch" {
                assert_eq!(operation["consumes"], expected[4], "{method} {path}");
                let parameters = operation["parameters"].as_array().unwrap();
                for name in ["dryRun", "fieldManager", "fieldValidation"] {
                    assert!(parameters.iter().any(|it| it["name"] == name), "{method} {path}");
                }
            }
        }
    }
    assert_eq!(count, expected.as_object().unwrap().len());
}

#[test]
fn only_definitions_that_are_referred_to_are_there() {
    let document = document();
    let definitions = document["definitions"].as_object().unwrap();
    assert!(definitions.contains_key("io.k8s.api.apps.v1.DeploymentSpec"));
    assert!(!definitions.contains_key("io.k8s.api.core.v1.Pod"));
}

#[test]
fn version_3_has_complete_schemas() {
    let openapi = OpenApi::new(natives);
    let kinds = kinds();
    let document = openapi.v3(&kinds, "present.example.com", "v1").unwrap();
    let document: Value = serde_json::from_slice(&document.body()).unwrap();
    let schema = &document["components"]["schemas"]["com.example.present.v1.Wide"];
    let spec = &schema["properties"]["spec"]["properties"];
    assert_eq!(spec["replicas"]["default"], 1);
    assert_eq!(spec["replicas"]["nullable"], true);
    assert!(spec["alt"]["oneOf"].is_array());
    let metadata = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(schema["properties"]["metadata"]["$ref"], metadata);
    // Definitions of other versions and groups are left out.
    assert!(document["components"]["schemas"].get("com.example.present.v10.Plain").is_none());
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.keys().all(|it| it.starts_with("/apis/present.example.com/v1/")));
    let patch = &paths["/apis/present.example.com/v1/namespaces/{namespace}/wides/{name}"]["patch"];
    let wide = "#/components/schemas/com.example.present.v1.Wide";
    assert_eq!(patch["responses"]["200"]["content"]["application/json"]["schema"]["$ref"], wide);
    assert!(patch["requestBody"]["content"]["application/apply-patch+yaml"].is_object());
    let dry_run = &patch["parameters"][0];
    assert_eq!(
        (&dry_run["name"], &dry_run["schema"]["type"]),
        (&json!("dryRun"), &json!("string"))
    );
    assert!(openapi.v3(&kinds, "present.example.com", "v2").is_none());
}

#[test]
fn the_index_leads_to_all_versions_and_changes_with_them() {
    let openapi = OpenApi::new(natives);
    let mut kinds = kinds();
    let index = openapi.v3_index(&kinds).unwrap();
    let paths: Value = serde_json::from_slice(&index.body()).unwrap();
    let paths = paths["paths"].as_object().unwrap();
    let names: Vec<&str> = paths.keys().map(String::as_str).collect();
    let versions = ["foo", "v1", "v10", "v1alpha1", "v1beta1"];
    let mut expected = vec!["apis/apps/v1".to_owned()];
    expected.extend(versions.map(|it| format!("apis/present.example.com/{it}")));
    assert_eq!(names, expected);
    let url = paths["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    kinds.remove(0);
    assert_ne!(openapi.v3_index(&kinds).unwrap().etag, index.etag);
}

#[test]
fn documents_are_generated_once_for_the_same_kinds() {
    let openapi = OpenApi::new(natives);
    let kinds = kinds();
    let first = openapi.v2(&kinds, "*/*").unwrap();
    // The same bytes, not only equal ones.
    let again = openapi.v2(&kinds, "").unwrap();
    assert_eq!(first.packed().as_ptr(), again.packed().as_ptr());
    assert!(openapi.v2(&kinds, "application/yaml").is_none());
}

/// Parses protobuf without the code that has written it. Returns the field numbers and contents.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                found.push((key >> 3, varint(&mut bytes).to_string().into_bytes()));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            other => panic!("a field of type {other}"),
        };
        let (content, rest) = bytes.split_at(length);
        found.push((key >> 3, content.to_vec()));
        bytes = rest;
    }
    found
}

fn field(bytes: &[u8], number: u64) -> Vec<u8> {
    fields(bytes).into_iter().find(|it| it.0 == number).map(|it| it.1).unwrap_or_default()
}

/// Returns one of the named values of a message.
fn named(bytes: &[u8], number: u64, name: &str) -> Vec<u8> {
    let all = fields(bytes).into_iter().filter(|it| it.0 == number).map(|it| it.1);
    let found = all.into_iter().find(|it| field(it, 1) == name.as_bytes()).expect("a named value");
    field(&found, 2)
}

#[test]
fn protobuf_has_the_numbers_of_gnostic() {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let document = OpenApi::new(natives).v2(&kinds(), accept).unwrap();
    assert_eq!(document.content_type, PROTOBUF);
    let body = document.body();
    assert_eq!(field(&body, 1), b"2.0");
    let definitions = field(&body, 9);
    let wide = named(&definitions, 1, "com.example.present.v1.Wide");
    assert_eq!(field(&field(&wide, 22), 1), b"object");
    let yaml = field(&named(&wide, 31, "x-kubernetes-group-version-kind"), 2);
    let gvk: Value = serde_json::from_slice(&yaml).unwrap();
    assert_eq!(gvk, json!([{ "group": "present.example.com", "kind": "Wide", "version": "v1" }]));
    let properties = field(&wide, 25);
    let reference = field(&named(&properties, 1, "metadata"), 1);
    assert_eq!(reference, b"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let spec = named(&properties, 1, "spec");
    let name = named(&field(&spec, 25), 1, "name");
    assert_eq!((field(&name, 13), field(&name, 12)), (b"^[a-z]+$".to_vec(), b"1".to_vec()));
    let labels = named(&field(&spec, 25), 1, "labels");
    assert_eq!(field(&field(&field(&field(&labels, 21), 1), 22), 1), b"string");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = field(&named(&field(&body, 8), 2, path), 8);
    assert_eq!(field(&patch, 5), b"patchAppsV1NamespacedDeployment");
    let parameters: Vec<Vec<u8>> = fields(&patch)
        .into_iter()
        .filter(|it| it.0 == 8)
        // The item, the parameter, not a body, of a query, its name.
        .map(|it| field(&field(&field(&field(&it.1, 1), 2), 3), 4))
        .collect();
    assert!(parameters.contains(&b"dryRun".to_vec()), "{parameters:?}");
}
