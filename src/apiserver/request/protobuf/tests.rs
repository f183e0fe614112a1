//! Bodies of clients, and the responses of Kubernetes 1.20.2 to malformed ones (`protobuf-malformed.json`). The bodies in
//! `tests/recorded/protobuf-bodies.json` are of kubectl, and of Go's own types by `scripts/native-types`.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use serde_json::Value;

use super::{Envelope, PROTOBUF, message};
use crate::{
    native,
    request::{
        ApiRequest,
        body::{self, Expected},
        deletion::DeleteOptions,
        query::Query,
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

fn records(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("recorded JSON")
}

fn bytes(of: &Value) -> Vec<u8> {
    STANDARD.decode(of.as_str().expect("text")).expect("base64")
}

fn bodies() -> Vec<Value> {
    records(include_str!("../../tests/recorded/protobuf-bodies.json"))
}

/// Removes empty values that Go writes: the server adds them to any body.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, it)| !it.is_null());
            Value::Object(fields.map(|(name, it)| (name.clone(), pruned(it))).collect())
        }
        Value::Array(items) => items.iter().map(pruned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn a_protobuf_message_decodes_to_the_json_of_the_object() {
    for record in bodies() {
        let body = bytes(&record["protobuf"]);
        let envelope = Envelope::parse(&body).expect("an envelope");
        let definition = record["definition"].as_str().expect("text");
        let mut expected = pruned(&record["json"]);
        let fields = expected.as_object_mut().expect("an object");
        assert_eq!(envelope.kind, record["kind"]);
        for name in ["apiVersion", "kind"] {
            fields.shift_remove(name);
        }
        let got = pruned(&message(definition, envelope.message).expect(definition));
        assert_eq!(got, expected, "{definition} from {}", record["from"]);
    }
}

#[test]
fn both_forms_are_stored_in_the_same_way() {
    for record in bodies() {
        let Some(kind) = native::kinds()
            .into_iter()
            .find(|it| it.native.is_some_and(|it| record["definition"] == *it.schema))
        else {
            continue;
        };
        let body = bytes(&record["protobuf"]);
        let envelope = Envelope::parse(&body).expect("an envelope");
        let definition = record["definition"].as_str().expect("text");
        let mut got = message(definition, envelope.message).expect(definition);
        let mut expected = record["json"].clone();
        for object in [&mut got, &mut expected] {
            object["apiVersion"] = envelope.api_version.clone().into();
            object["kind"] = envelope.kind.clone().into();
            let version = kind.def.versions.first().expect("a version");
            let unknown = native::decode(&kind, version, object).expect(definition);
            assert_eq!(unknown, Vec::<String>::new());
        }
        assert_eq!(got.to_string(), expected.to_string(), "{definition}");
    }
}

fn answer(on: &str, body: &[u8]) -> (u16, String) {
    let (kind, definition) = match on {
        "configmaps" => ("ConfigMap", "io.k8s.api.core.v1.ConfigMap"),
        "pods" => ("Pod", "io.k8s.api.core.v1.Pod"),
        _ => {
            let headers =
                HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF))]);
            let body = Bytes::copy_from_slice(body);
            let ask = ApiRequest { headers, body, ..ApiRequest::default() };
            let options = DeleteOptions::parse(&ask, &Query::parse(""));
            return options.map_or_else(|it| (it.code, it.message), |_| (200, String::new()));
        }
    };
    let known = |group: &str, version: &str, kind: &str| {
        [("", "v1", "Pod"), ("apps", "v1", "Deployment")].contains(&(group, version, kind))
    };
    let expected =
        Expected { group: "", version: "v1", kind, native: true, definition, known: &known };
    let decoded = body::decode(PROTOBUF, body, expected, &mut Vec::new());
    decoded.map_or_else(|it| (it.code, it.message), |_| (201, String::new()))
}

#[test]
fn malformed_bodies_are_refused_as_by_the_real_server() {
    let mut wrong = Vec::new();
    for record in records(include_str!("../../tests/recorded/protobuf-malformed.json")) {
        let on = record["on"].as_str().expect("text");
        let (code, message) = answer(on, &bytes(&record["body"]));
        // The real server appends the body, and where its kinds are registered.
        let theirs = record["message"].as_str().expect("text");
        let ours = message.split(" in scheme").next().unwrap_or_default();
        if record["code"] != code || !theirs.starts_with(ours) {
            wrong.push(format!("{record}\n  got {code} {message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn truncated_and_changed_bodies_do_no_harm() {
    for record in bodies() {
        let body = bytes(&record["protobuf"]);
        let definition = record["definition"].as_str().expect("text");
        let read =
            |body: &[u8]| Envelope::parse(body).and_then(|it| message(definition, it.message));
        let whole = read(&body).expect(definition);
        for end in 0..body.len() {
            // A body cut after the type is valid, too, and so is one cut after the message.
            if let Ok(cut) = read(&body[..end]) {
                let is_empty = cut == serde_json::json!({});
                assert!(is_empty || cut == whole, "{definition} cut at {end}");
            }
        }
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut changed = body.clone();
                changed[at] ^= 1 << bit;
                drop(read(&changed));
            }
        }
    }
}

#[test]
fn custom_kinds_have_no_protobuf() {
    let known = |_: &str, _: &str, _: &str| false;
    let expected = Expected {
        group: "x.y",
        version: "v1",
        kind: "Widget",
        native: false,
        definition: "",
        known: &known,
    };
    assert_eq!(
        body::decode(PROTOBUF, b"k8s\0", expected, &mut Vec::new()).map_err(|it| it.code),
        Err(415)
    );
}
