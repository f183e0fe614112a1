//! `…/scale`: the number of replicas of an object, without the rest of it.

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::apiserver::{
    object,
    patch::Patch,
    refusal::{Problem, Refusal},
    reply::Reply,
    request::{body, json},
    resource::kind::{Scale, View},
    verbs::{Call, modify, rules::Part},
};

/// Where the real server handles custom resources; stands in its answers.
const SCHEME: &str = "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:688";
const NEGATIVE: &str = "should be a non-negative integer";

/// From the present scale to the wanted one.
type Edit<'a> = Box<dyn Fn(&Value) -> Result<Value, Refusal> + Send + Sync + 'a>;

/// Whether objects of this kind can be scaled.
pub(crate) fn is_served(view: &View) -> bool {
    paths(view).is_some()
}

fn paths(view: &View) -> Option<&Scale> {
    view.kind.versions.get(&view.version)?.scale.as_ref()
}

pub(crate) async fn answer(call: &Call<'_>, verb: &str, name: &str) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    let scale = paths(&call.view).ok_or_else(|| Refusal::not_found(def, name))?;
    let edit: Edit<'_> = match verb {
        "get" => {
            let found = call.shared.store().get(&call.key(name));
            let found = found.ok_or_else(|| missing(call, name))?;
            let object = call.view.tree(&found);
            if !def.native && object.pointer(&pointer(&scale.wanted)).is_none() {
                let wanted = &scale.wanted;
                let why = format!("the spec replicas field {wanted:?} does not exist");
                return Err(Refusal::internal(&why));
            }
            return Ok(Reply::Document(200, shown(scale, &object)));
        }
        "update" => {
            let body: Value = serde_json::from_slice(&call.ask.body)
                .map_err(|error| Refusal::bad_request(error.to_string()))?;
            check_kind(&body)?;
            let namespace = call.target.namespace.as_deref().unwrap_or_default();
            body::check_place(&body, name, namespace)?;
            Box::new(move |_scale| Ok(body.clone()))
        }
        "patch" => {
            let patch = Patch::parse(call.ask.header(CONTENT_TYPE), &call.ask.body, def.native)?;
            Box::new(move |scale| patch.apply(scale, None))
        }
        _ => return Err(Refusal::method_not_allowed()),
    };
    let reply = modify::write(call, Part::Main, name, |old| {
        let wanted = edit(&shown(scale, old))?;
        let version = object::meta(&wanted, "resourceVersion");
        if !version.is_empty() && version != object::meta(old, "resourceVersion") {
            return Err(Refusal::conflict(def, name));
        }
        let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            return Err(negative(call, scale, replicas, name));
        }
        let mut new = old.clone();
        set(&mut new, &scale.wanted, replicas.into());
        Ok(new)
    });
    Ok(match reply.await? {
        Reply::Object { status, view, object } => {
            Reply::Document(status, shown(scale, &view.tree(&object)))
        }
        Reply::Document(status, object) => Reply::Document(status, shown(scale, &object)),
        other @ (Reply::List(_)
        | Reply::Text(..)
        | Reply::Watch(_)
        | Reply::Tagged { .. }
        | Reply::Stream(..)) => other,
    })
}

fn missing(call: &Call<'_>, name: &str) -> Refusal {
    let def = &call.view.kind.def;
    if def.native {
        Refusal::part_not_found(def, "scale", name)
    } else {
        Refusal::not_found(def, name)
    }
}

/// What is sent must be a scale, if it says what it is.
fn check_kind(body: &Value) -> Result<(), Refusal> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if matches!(text("kind"), "" | "Scale") && matches!(text("apiVersion"), "" | "autoscaling/v1") {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "no kind is registered for the type v1.Scale in scheme {SCHEME:?}"
    )))
}

/// Custom objects are checked as such, and native ones as a scale.
fn negative(call: &Call<'_>, scale: &Scale, replicas: i64, name: &str) -> Refusal {
    let def = &call.view.kind.def;
    if def.native {
        let text = "must be greater than or equal to 0";
        let problem = Problem::invalid("spec.replicas", replicas, text);
        return Refusal::invalid("autoscaling", "Scale", name, &[problem]);
    }
    let problem = Problem::invalid(scale.wanted.as_str(), replicas, NEGATIVE);
    Refusal::invalid(&def.group, &def.kind, name, &[problem])
}

/// What is wrong with the places of the numbers in a custom object.
pub(crate) fn check(view: &View, object: &Value) -> Vec<Problem> {
    let Some(scale) = paths(view).filter(|_| !view.kind.def.native) else { return Vec::new() };
    let mut problems = Vec::new();
    for path in [&scale.wanted, &scale.present] {
        match object.pointer(&pointer(path)) {
            None => {}
            Some(Value::Number(number)) if number.is_i64() => {
                let number = number.as_i64().unwrap_or_default();
                if number < 0 {
                    problems.push(Problem::invalid(path.as_str(), number, NEGATIVE));
                } else if number > i64::from(i32::MAX) {
                    let text = format!("should be less than or equal to {}", i32::MAX);
                    problems.push(Problem::invalid(path.as_str(), number, text));
                }
            }
            Some(other) => {
                problems.push(Problem::invalid(path.as_str(), 0, odd(path, other, "int64")))
            }
        }
    }
    let selector = scale.selector.as_ref();
    let selector = selector.and_then(|path| Some((path, object.pointer(&pointer(path))?)));
    if let Some((path, other)) = selector.filter(|(_, it)| !it.is_string()) {
        problems.push(Problem::invalid(path.as_str(), "", odd(path, other, "string")));
    }
    problems
}

/// A value of another type, as Go prints both.
fn odd(path: &str, value: &Value, wanted: &str) -> String {
    let (text, kind) = match value {
        Value::Null => ("<nil>".into(), "<nil>"),
        Value::Bool(it) => (it.to_string(), "bool"),
        Value::Number(it) if it.is_f64() => (it.to_string(), "float64"),
        Value::Number(it) => (it.to_string(), "int64"),
        Value::String(it) => (it.clone(), "string"),
        Value::Array(_) => (json::go_print(value), "[]interface {}"),
        Value::Object(_) => (json::go_print(value), "map[string]interface {}"),
    };
    format!("{path} accessor error: {text} is of the type {kind}, expected {wanted}")
}

/// The object as a `Scale`.
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
    // None at all is not told.
    if let Some(wanted) = object.pointer(&pointer(&scale.wanted)).filter(|it| **it != json!(0)) {
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

/// A selector object as the text of a query.
fn selector_text(selector: &Value) -> String {
    let plain = selector.get("matchLabels").unwrap_or(selector).as_object();
    let plain = plain.into_iter().flatten();
    let mut parts: Vec<String> =
        plain.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect();
    let rules = selector.get("matchExpressions").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        let key = rule.get("key").and_then(Value::as_str).unwrap_or_default();
        let values = object::strings(rule, "/values").join(",");
        parts.push(match rule.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.sort();
    parts.join(",")
}

/// `.spec.replicas` as a JSON pointer.
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
