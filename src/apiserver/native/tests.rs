//! The native kinds against answers recorded from the real server.

use serde_json::{Value, json};

use super::{decode, definition, kinds, quantity::Quantity};
use crate::apiserver::{object, refusal::Refusal, resource::kind::Kind};

#[test]
fn every_kind_has_a_schema_in_each_of_its_versions() {
    for kind in kinds() {
        let native = kind.native.expect("all kinds are native");
        for version in &kind.def.versions {
            let name = native.schema_of(version);
            assert!(definition(&name).is_some(), "no schema {name}");
            assert!(super::facts::go_type(&name).is_some(), "no type {name}");
        }
    }
}

#[test]
fn quantities_are_written_in_their_canonical_form() {
    for (text, canonical) in [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("0.1Mi", "104857600m"),
        ("512", "512"),
        ("-5", "-5"),
        ("0", "0"),
        ("0.0000000001", "1n"),
        ("99999999999999999999999999", "9223372036854775807"),
        ("1E", "1E"),
        ("12345", "12345"),
    ] {
        assert_eq!(
            Quantity::parse(text).map(Quantity::canonical).as_deref(),
            Ok(canonical),
            "{text}"
        );
    }
    for text in ["", "abc", "1.2.3", "5x", "1Kim", "."] {
        assert!(Quantity::parse(text).is_err(), "{text}");
    }
}

/// What was sent to the real server.
fn requests() -> Vec<Value> {
    serde_json::from_str(include_str!("recorded/requests.json")).expect("requests are JSON")
}

/// What it answered, by the names of the requests.
fn answers() -> Value {
    serde_json::from_str(include_str!("recorded/answers.json")).expect("answers are JSON")
}

const NAMESPACE: &str = "native-recorded";

/// The kind and the version of a path.
fn target(path: &str) -> (Kind, String) {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version) = if parts[0] == "api" { ("", parts[1]) } else { (parts[1], parts[2]) };
    let plural = parts[parts.len() - 1];
    let kind = kinds().into_iter().find(|it| it.def.group == group && it.def.plural == plural);
    (kind.expect(path), version.into())
}

/// The write of a body, as the server does it: the stored object, or the refusal.
fn write(
    kind: &Kind,
    version: &str,
    mut body: Value,
    old: Option<&Value>,
) -> Result<Value, Refusal> {
    let native = kind.native.expect("native");
    decode(kind, version, &mut body)?;
    (native.defaults)(&mut body);
    if let Some(old) = old {
        object::put(&mut body, "status", old.get("status").cloned());
        (native.updated)(old, &mut body);
    } else {
        object::set_meta(&mut body, "uid", "UID");
        if kind.def.namespaced {
            object::set_meta(&mut body, "namespace", NAMESPACE);
        }
        (native.created)(&mut body);
    }
    if let Some(review) = native.review {
        return review(body);
    }
    let problems = (native.check)(&body, old);
    if problems.is_empty() {
        return Ok(body);
    }
    let name = object::meta(&body, "name");
    Err(Refusal::invalid(&kind.def.group, &kind.def.kind, name, &problems))
}

fn merge(target: &mut Value, change: &Value) {
    for (key, value) in change.as_object().expect("an object") {
        match target.get_mut(key) {
            Some(inner) if inner.is_object() && value.is_object() => merge(inner, value),
            _ if value.is_null() => {
                target.as_object_mut().expect("an object").shift_remove(key);
            }
            _ => target[key] = value.clone(),
        }
    }
}

/// The answer to one recorded request: the status and the body, or message and causes.
fn answer(request: &Value) -> (u16, Value) {
    let (kind, version) = target(request["path"].as_str().expect("path"));
    let mut result = write(&kind, &version, request["body"].clone(), None);
    let mut status = 201;
    if let (Ok(stored), Some(change)) = (&result, request.get("then")) {
        let mut new = stored.clone();
        merge(&mut new, change);
        result = write(&kind, &version, new, Some(stored));
        status = 200;
    }
    match result {
        Ok(mut body) => {
            let api_version = kind.def.api_version(&version);
            object::put(&mut body, "kind", Some(kind.def.kind.clone().into()));
            object::put(&mut body, "apiVersion", Some(api_version.into()));
            let meta = body["metadata"].as_object_mut().expect("metadata");
            for field in ["uid", "creationTimestamp"] {
                meta.shift_remove(field);
            }
            (status, body)
        }
        Err(refusal) => {
            let causes = refusal.details.and_then(|it| it.get("causes").cloned());
            (refusal.code, json!({ "message": refusal.message, "causes": causes }))
        }
    }
}

/// Parts that are not the same everywhere: what is drawn, and what newer versions have.
fn masked(mut body: Value, uid: &str) -> Value {
    let text = body.to_string().replace(uid, "UID");
    if !uid.is_empty() {
        body = serde_json::from_str(&text).expect("still JSON");
    }
    if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.shift_remove("generation");
        if let Some(Value::Object(labels)) = meta.get_mut("labels") {
            labels.shift_remove("kubernetes.io/metadata.name");
            if labels.is_empty() {
                meta.shift_remove("labels");
            }
        }
    }
    if body["kind"] == "Service" {
        for pointer in ["/spec/clusterIP", "/spec/clusterIPs/0"] {
            if let Some(ip) = body.pointer_mut(pointer).filter(|it| **it != "None") {
                *ip = json!("IP");
            }
        }
        for port in body["spec"]["ports"].as_array_mut().into_iter().flatten() {
            if port.get("nodePort").is_some() {
                port["nodePort"] = json!("PORT");
            }
        }
    }
    body
}

#[test]
fn bodies_are_answered_as_by_the_real_server() {
    let answers = answers();
    let mut wrong = Vec::new();
    for request in requests() {
        let name = request["name"].as_str().expect("name");
        let expected = &answers[name];
        let uid = expected["uid"].as_str().unwrap_or_default();
        let (status, body) = answer(&request);
        let (body, wanted) = (masked(body, ""), masked(expected["body"].clone(), uid));
        if expected["status"] != status || body != wanted {
            wrong.push(format!("{name}: {status}\n  ours {body}\n  real {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
