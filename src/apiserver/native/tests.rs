//! The native kinds compared with responses recorded from a real server.

use serde_json::{Value, json};

use super::{decode, definition, facts, kinds, order, quantity::Quantity, raw_definitions};
use crate::{object, refusal::Refusal, resource::kind::Kind};

#[test]
fn every_kind_has_a_schema_in_each_of_its_versions() {
    for kind in kinds() {
        let native = kind.native.expect("all kinds are native");
        for version in &kind.def.versions {
            let name = native.schema_of(version);
            assert!(definition(&name).is_some(), "no schema {name}");
            assert!(facts::go_type(&name).is_some(), "no type {name}");
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

/// Returns the requests that were sent to the real server.
fn requests() -> Vec<Value> {
    serde_json::from_str(include_str!("../tests/recorded/native-requests.json"))
        .expect("requests are JSON")
}

/// Returns the recorded responses, by the names of the requests.
fn answers() -> Value {
    serde_json::from_str(include_str!("../tests/recorded/native-answers.json"))
        .expect("answers are JSON")
}

const NAMESPACE: &str = "native-recorded";

/// Returns the kind and the version of a path.
fn target(path: &str) -> (Kind, String) {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version) = if parts[0] == "api" { ("", parts[1]) } else { (parts[1], parts[2]) };
    let plural = parts[parts.len() - 1];
    let kind = kinds().into_iter().find(|it| it.def.group == group && it.def.plural == plural);
    (kind.expect(path), version.into())
}

/// Writes a body as the server does: returns the stored object, or the refusal.
fn write(
    kind: &Kind,
    version: &str,
    mut body: Value,
    old: Option<&Value>,
) -> Result<Value, Refusal> {
    let native = kind.native.expect("native");
    decode(kind, version, &mut body)?;
    (native.defaults)(&mut body);
    if old.is_none() && kind.def.namespaced {
        object::set_meta(&mut body, "namespace", NAMESPACE);
    }
    if let Some(review) = native.review {
        return review(body);
    }
    if let Some(old) = old {
        object::put(&mut body, "status", old.get("status").cloned());
        (native.updated)(old, &mut body);
    } else {
        object::set_meta(&mut body, "uid", "UID");
        (native.created)(&mut body);
    }
    let problems = (native.check)(&body, old);
    if problems.is_empty() {
        return Ok(body);
    }
    let name = object::meta(&body, "name");
    let group = if native.twin.is_some() { "" } else { &kind.def.group };
    Err(Refusal::invalid(group, &kind.def.kind, name, &problems))
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

/// Processes one recorded request: returns the status and the body, or the message and the causes.
fn answer(request: &Value) -> (u16, Value) {
    let (kind, version) = target(request["path"].as_str().expect("path"));
    let mut sent = request["body"].clone();
    object::put(&mut sent, "kind", Some(kind.def.kind.clone().into()));
    object::put(&mut sent, "apiVersion", Some(kind.def.api_version(&version).into()));
    if request["name"].as_str().is_some_and(|it| it.starts_with("type ")) {
        // Messages about types show the body as it was sent, without these two fields.
        sent = request["body"].clone();
    }
    let mut result = write(&kind, &version, sent, None);
    let mut status = 201;
    if let (Ok(stored), Some(change)) = (&result, request.get("then")) {
        let mut new = stored.clone();
        merge(&mut new, change);
        result = write(&kind, &version, new, Some(stored));
        status = 200;
    }
    match result {
        Ok(mut body) => {
            order(&kind, &version, &mut body);
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

/// Masks values that differ between servers: generated ones, and fields of newer versions.
fn masked(mut body: Value, uid: &str) -> Value {
    let text = body.to_string().replace(uid, "UID");
    if !uid.is_empty() {
        body = serde_json::from_str(&text).expect("still JSON");
    }
    // Errors of decoders are worded differently.
    if let Some(message) = body.get_mut("message")
        && let Some((start, _)) =
            message.as_str().and_then(|it| it.split_once(" cannot be handled as "))
    {
        *message = start.into();
    }
    if let Some(Value::Object(status)) = body.get_mut("status") {
        status.shift_remove("lastPhaseTransitionTime");
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

/// Returns only the causes, sorted: where Go iterates over a map, their order is random.
fn sorted_causes(mut body: Value) -> Value {
    let mut causes = body["causes"].as_array_mut().expect("causes").clone();
    causes.sort_by_key(Value::to_string);
    json!(causes)
}

#[test]
fn bodies_get_the_responses_of_the_real_server() {
    let answers = answers();
    let mut wrong = Vec::new();
    for request in requests() {
        let name = request["name"].as_str().expect("name");
        let expected = &answers[name];
        let uid = expected["uid"].as_str().unwrap_or_default();
        let (status, body) = answer(&request);
        let (mut body, mut wanted) = (masked(body, ""), masked(expected["body"].clone(), uid));
        if request.get("unordered").is_some() {
            (body, wanted) = (sorted_causes(body), sorted_causes(wanted));
        }
        if expected["status"] != status || body != wanted {
            wrong.push(format!("{name}: {status}\n  ours {body}\n  real {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Kubernetes 1.20 refuses such an update; later servers put back the address that they have allocated.
#[test]
fn a_service_keeps_the_address_that_an_update_leaves_out() {
    let (kind, version) = target("/api/v1/services");
    let sent = json!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }] } });
    let stored = write(&kind, &version, sent.clone(), None).expect("a service");
    let address = &stored["spec"]["clusterIP"];
    assert!(address.is_string());
    let kept = write(&kind, &version, sent.clone(), Some(&stored)).expect("the same service");
    assert_eq!(kept["spec"]["clusterIP"], *address);
    assert_eq!(kept["spec"]["clusterIPs"], json!([address]));
    let mut other = sent;
    other["spec"]["clusterIP"] = json!("10.96.0.1");
    let refusal = write(&kind, &version, other, Some(&stored)).expect_err("another address");
    assert!(refusal.message.contains("may not change once set"), "{}", refusal.message);
}

#[test]
fn all_kinds_of_the_real_server_are_served() {
    let served = facts::resources();
    assert!(served.len() > 60, "{}", served.len());
    assert_eq!(kinds().len(), served.len());
}

#[test]
fn fields_are_written_in_the_order_of_the_real_server() {
    let answers = answers();
    for request in requests() {
        let name = request["name"].as_str().expect("name");
        let expected = masked(
            answers[name]["body"].clone(),
            answers[name]["uid"].as_str().unwrap_or_default(),
        );
        let (status, body) = answer(&request);
        if status == 201 && expected["kind"] != "CronJob" {
            assert_eq!(masked(body, "").to_string(), expected.to_string(), "{name}");
        }
    }
}

#[test]
fn unknown_fields_are_dropped_and_reported() {
    let (kind, version) = target("/apis/apps/v1/namespaces/x/deployments");
    let mut body = json!({
        "foo": 1, "metadata": { "name": "x", "bar": {} },
        "spec": { "template": { "spec": { "containers": [{ "name": "a", "baz": [] }] } } },
    });
    let mut unknown = decode(&kind, &version, &mut body).expect("well-typed");
    unknown.sort();
    assert_eq!(unknown, ["foo", "metadata.bar", "spec.template.spec.containers[0].baz"]);
    assert!(!body.to_string().contains("ba"), "{body}");
}

#[test]
fn a_deep_body_is_refused_without_a_crash() {
    let (kind, version) = target("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let mut schema = json!({ "type": "string" });
    for _ in 0..300 {
        schema = json!({ "not": schema });
    }
    let mut body = json!({
        "metadata": { "name": "x" },
        "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }] },
    });
    let refusal = decode(&kind, &version, &mut body).expect_err("too deep");
    assert_eq!(refusal.code, 400);
}

#[test]
fn definitions_have_no_prose_and_lead_to_definitions() {
    let all = raw_definitions();
    let text = json!(all).to_string();
    for part in text.split("\"$ref\":\"#/definitions/").skip(1) {
        let name = part.split('"').next().expect("a name");
        assert!(all.contains_key(name), "{name} is missing");
    }
    assert_eq!(all["io.k8s.api.core.v1.Pod"].get("description"), None);
    assert!(all.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"));
}

#[test]
fn events_are_converted_between_their_forms_without_loss() {
    let (kind, version) = target("/apis/events.k8s.io/v1/namespaces/x/events");
    let mut body = json!({
        "metadata": { "name": "x" }, "regarding": { "kind": "Pod", "name": "p" }, "note": "n",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a/b",
        "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal",
    });
    decode(&kind, &version, &mut body).expect("well-typed");
    let twin = kind.native.expect("native").twin.expect("a twin");
    let stored = (twin.to_stored)(body.clone());
    assert_eq!(stored["involvedObject"]["name"], "p");
    assert_eq!(stored["message"], "n");
    let mut back = (twin.from_stored)(stored);
    back.as_object_mut().expect("an object").shift_remove("apiVersion");
    let left: Vec<&String> = body.as_object().expect("an object").keys().collect();
    for key in left {
        assert_eq!(back[key], body[key], "{key}");
    }
}
