//! The subresource `scale`: the number of replicas of an object.

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::{
    labels, managed, object,
    patch::ParsedPatch,
    refusal::{Refusal, ValidationProblem, go},
    reply::Reply,
    request::body,
    resource::{
        ResourceDef,
        kind::{Scale, VersionedKind},
    },
    verbs::{ApiCall, modify, rules::WritablePart},
    webhooks::conversion,
};

/// The definition of protobuf bodies.
const DEFINITION: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Returns the new scale for the current one.
type ScaleEdit<'a> = Box<dyn Fn(&Value) -> Result<Value, Refusal> + Send + Sync + 'a>;

/// Returns whether objects of this kind can be scaled.
pub(crate) fn is_served(view: &VersionedKind) -> bool {
    paths(view).is_some()
}

fn paths(view: &VersionedKind) -> Option<&Scale> {
    view.kind.versions.get(&view.version)?.scale.as_ref()
}

pub(crate) async fn answer(call: &ApiCall<'_>, verb: &str, name: &str) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    let scale = paths(&call.view).ok_or_else(|| Refusal::not_found(def, name))?;
    let edit: ScaleEdit<'_> = match verb {
        "get" => {
            let found = call.shared.store().get(&call.key(name));
            let found = found.ok_or_else(|| Refusal::not_found(def, name))?;
            let object = conversion::tree(call.shared, &call.view, &found).await?;
            check_present(def, scale, &object)?;
            return Ok(Reply::Document(200, shown(scale, &object)));
        }
        "update" => {
            let content_type = call.request.header(CONTENT_TYPE);
            let body = body::decode_part(content_type, &call.request.body, DEFINITION)
                .map_err(Refusal::bad_request)?;
            check_body(&body)?;
            let namespace = call.target.namespace.as_deref().unwrap_or_default();
            body::check_place(&body, name, namespace)?;
            Box::new(move |_scale| Ok(body.clone()))
        }
        "patch" => {
            let patch = ParsedPatch::parse(
                call.request.header(CONTENT_TYPE),
                &call.request.body,
                def.native,
            )?;
            Box::new(move |scale| patch.apply(scale, None))
        }
        _ => return Err(Refusal::method_not_allowed()),
    };
    let reply = modify::write(call, WritablePart::Main, name, |old| {
        let wanted = edit(&shown(scale, old))?;
        let version = object::meta(&wanted, "resourceVersion");
        if !version.is_empty() && version != object::meta(old, "resourceVersion") {
            return Err(Refusal::conflict(def, name));
        }
        let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        // Custom objects have this check in their validation.
        if replicas < 0 && def.native {
            let text = "must be greater than or equal to 0";
            let problem = ValidationProblem::invalid("spec.replicas", replicas, text);
            return Err(Refusal::invalid("autoscaling", "Scale", name, &[problem]));
        }
        let mut new = old.clone();
        set(&mut new, &scale.wanted, replicas.into());
        if call.shared.stamps && new != *old {
            let time = call.shared.store().now();
            managed::hand_over(&call.writer(&time), &scale.wanted, &mut new);
        }
        Ok(new)
    });
    Ok(match reply.await? {
        Reply::Object { status, view, object } => {
            let object = conversion::tree(call.shared, &view, &object).await?;
            Reply::Document(status, shown(scale, &object))
        }
        Reply::Document(status, object) => Reply::Document(status, shown(scale, &object)),
        other @ (Reply::List(_)
        | Reply::Text(..)
        | Reply::Plain(..)
        | Reply::Watch(_)
        | Reply::Upgrade(_)
        | Reply::Tagged { .. }
        | Reply::Stream(..)) => other,
    })
}

/// Refuses the scale of a custom object that has no replicas.
fn check_present(def: &ResourceDef, scale: &Scale, object: &Value) -> Result<(), Refusal> {
    let path = &scale.wanted;
    if def.native || object.pointer(&pointer(path)).is_some_and(Value::is_i64) {
        return Ok(());
    }
    Err(Refusal::internal(&format!("the spec replicas field {path:?} does not exist")))
}

/// Checks that the body is a `Scale`.
fn check_body(body: &Value) -> Result<(), Refusal> {
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if matches!((version, kind), ("" | "autoscaling/v1", "" | "Scale")) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "no kind {kind:?} is registered for version {version:?} in the scheme of scales"
    )))
}

/// Returns the problems of the fields that the scale of a custom object shows.
pub(crate) fn faults(view: &VersionedKind, object: &Value) -> Vec<ValidationProblem> {
    let Some(scale) = paths(view) else { return Vec::new() };
    let mut found = Vec::new();
    for path in [&scale.wanted, &scale.present] {
        let text = match nested(object, path, "int64", Value::is_i64) {
            Err(why) => {
                found.push(ValidationProblem::invalid(path.as_str(), 0, why));
                continue;
            }
            Ok(number) => match number.and_then(Value::as_i64).unwrap_or(0) {
                ..0 => "should be a non-negative integer".to_owned(),
                it if it > i64::from(i32::MAX) => {
                    format!("should be less than or equal to {}", i32::MAX)
                }
                _ => continue,
            },
        };
        let number = object.pointer(&pointer(path)).and_then(Value::as_i64).unwrap_or(0);
        found.push(ValidationProblem::invalid(path.as_str(), number, text));
    }
    if let Some(path) = &scale.selector
        && let Err(why) = nested(object, path, "string", Value::is_string)
    {
        found.push(ValidationProblem::invalid(path.as_str(), "", why));
    }
    found
}

/// Returns the value at a path, if it has a type. The error is worded as in Go.
fn nested<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let mut place = object;
    let mut at = String::new();
    for name in path.trim_start_matches('.').split('.') {
        let Some(fields) = place.as_object() else {
            return Err(other_type(&at, place, "map[string]interface{}"));
        };
        let Some(value) = fields.get(name) else { return Ok(None) };
        at = format!("{at}.{name}");
        place = value;
    }
    if is_wanted(place) { Ok(Some(place)) } else { Err(other_type(&at, place, wanted)) }
}

fn other_type(path: &str, value: &Value, wanted: &str) -> String {
    let (value, found) = (go::plain(value), go::type_of(value));
    format!("{path} accessor error: {value} is of the type {found}, expected {wanted}")
}

/// Converts an object to a `Scale`.
fn shown(scale: &Scale, object: &Value) -> Value {
    let number = |path: &str| object.pointer(&pointer(path)).and_then(Value::as_i64).unwrap_or(0);
    let meta = |field: &str| object::meta(object, field);
    let mut metadata = json!({
        "name": meta("name"),
        "namespace": meta("namespace"),
        "uid": meta("uid"),
        "resourceVersion": meta("resourceVersion"),
        "creationTimestamp": meta("creationTimestamp"),
    });
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    let mut spec = json!({});
    let wanted = number(&scale.wanted);
    if wanted != 0 {
        spec = json!({ "replicas": wanted });
    }
    let mut status = json!({ "replicas": number(&scale.present) });
    let selector = match &scale.selector {
        Some(path) => object.pointer(&pointer(path)).and_then(Value::as_str).map(String::from),
        None => object.pointer("/spec/selector").map(selector_text),
    };
    if let Some(selector) = selector.filter(|it| !it.is_empty()) {
        object::put(&mut status, "selector", Some(selector.into()));
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

/// Returns a selector in the form of a query. That of a `ReplicationController` is a plain map of labels.
fn selector_text(selector: &Value) -> String {
    let full = ["matchLabels", "matchExpressions"].iter().any(|it| selector.get(it).is_some());
    if full { labels::text(selector) } else { labels::text(&json!({ "matchLabels": selector })) }
}

/// Converts a path such as `.spec.replicas` to a JSON pointer.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for name in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(name).or_insert(Value::Null);
    }
    *place = value;
}
