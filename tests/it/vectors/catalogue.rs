//! The shared notation of the vectors: declarations, callbacks, errors.

use std::time::Duration;

use kopf::logic::{
    change::filters::Question,
    handlers::{
        declare::{Argument, Declaration, DeclareError, Marker, declare},
        function::{Function, ScriptId},
        handler::{Callback, Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    object::resource::Resource,
};
use serde_json::{Map, Value};

use super::Vector;

/// The state that whole-object callbacks read.
pub(crate) struct Context<'a> {
    pub(crate) body: &'a Value,
    pub(crate) reason: Option<&'a str>,
    pub(crate) has_diff: bool,
}

/// Returns a function that is identified by its name.
pub(crate) fn function(name: &str) -> Function {
    let slot = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    Function::new(ScriptId(0), slot, name)
}

/// Returns a handler as the vectors describe it: `on`, `fn`, `resource`, and options.
pub(crate) fn handler(spec: &Value) -> Result<Handler, DeclareError> {
    declare(declaration(spec))
}

/// Returns the handler before it is declared.
pub(crate) fn declaration(spec: &Value) -> Declaration {
    let spec = spec.as_object().expect("a handler is a map");
    let kind = kind(spec["on"].as_str().expect("the kind of a handler"));
    let name = spec.get("fn").and_then(Value::as_str).unwrap_or("fn");
    let activity =
        matches!(kind, Kind::Startup | Kind::Cleanup | Kind::Login | Kind::Probe | Kind::Tunnel);
    let selectors = match spec.get("resource").and_then(Value::as_array) {
        Some(arguments) => arguments.iter().map(argument).collect(),
        None if activity || kind == Kind::Sub => Vec::new(),
        None => vec![Argument::Value("kopfexamples".into())],
    };
    let is_option = |key: &str| !["on", "fn", "resource", "do"].contains(&key);
    let options = spec.iter().filter(|(key, _)| is_option(key)).map(|(key, value)| {
        let when = value.as_str().filter(|_| key == "when");
        (key.clone(), when.map_or_else(|| argument(value), callback))
    });
    Declaration {
        kind,
        selectors,
        options: options.collect(),
        function: function(name),
        location: "handlers.lua:1".to_owned(),
    }
}

/// Returns a kind by the name of the decorator.
pub(crate) fn kind(name: &str) -> Kind {
    match name {
        "create" => Kind::Create,
        "update" => Kind::Update,
        "delete" => Kind::Delete,
        "resume" => Kind::Resume,
        "field" => Kind::Field,
        "subhandler" | "register" => Kind::Sub,
        "event" => Kind::Event,
        "index" => Kind::Index,
        "daemon" => Kind::Daemon,
        "timer" => Kind::Timer,
        "startup" => Kind::Startup,
        "cleanup" => Kind::Cleanup,
        "login" => Kind::Login,
        "probe" => Kind::Probe,
        "tunnel" => Kind::Tunnel,
        "validate" => Kind::Validate,
        "mutate" => Kind::Mutate,
        other => panic!("no kind {other}"),
    }
}

/// Returns a value of a declaration, with markers and callbacks inside.
pub(crate) fn argument(value: &Value) -> Argument {
    if let Some(marker) = value.get("$").and_then(Value::as_str) {
        return Argument::Marker(match marker {
            "PRESENT" => Marker::Present,
            "ABSENT" => Marker::Absent,
            "EVERYTHING" => Marker::Everything,
            other => panic!("no marker {other}"),
        });
    }
    if let Some(name) = value.get("$fn").and_then(Value::as_str) {
        return callback(name);
    }
    if let Some(field) = value.get("$spec").and_then(Value::as_str) {
        return callback(&format!("spec.{field}"));
    }
    let is_plain = |it: &Argument| matches!(it, Argument::Value(_));
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(argument).collect();
            if items.iter().all(is_plain) {
                Argument::Value(value.clone())
            } else {
                Argument::List(items)
            }
        }
        Value::Object(map) => {
            let map: Vec<_> = map.iter().map(|(key, it)| (key.clone(), argument(it))).collect();
            if map.iter().all(|(_, it)| is_plain(it)) {
                Argument::Value(value.clone())
            } else {
                Argument::Map(map)
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Argument::Value(value.clone())
        }
    }
}

fn callback(name: &str) -> Argument {
    Argument::Callback(Callback::Function(function(name)))
}

/// Returns the response of a callback of the catalogue.
pub(crate) fn answer(question: &Question, context: &Context<'_>) -> bool {
    match (&*question.function.name, &question.about) {
        ("true", _) => true,
        ("false", _) => false,
        (name, Some(value)) => of_value(name, value.as_ref().unwrap_or(&Value::Null)),
        ("name_is_n1", None) => context.body["metadata"]["name"] == "n1",
        ("has_spec_x", None) => context.body["spec"].get("x").is_some(),
        ("reason_is_create", None) => context.reason == Some("create"),
        ("has_diff", None) => context.has_diff,
        (other, None) => panic!("no callback {other}"),
    }
}

fn of_value(name: &str, value: &Value) -> bool {
    match name {
        "is_null" => value.is_null(),
        "truthy" => match value {
            Value::Null => false,
            Value::Bool(it) => *it,
            Value::Number(it) => it.as_f64() != Some(0.0),
            Value::String(it) => !it.is_empty(),
            Value::Array(it) => !it.is_empty(),
            Value::Object(it) => !it.is_empty(),
        },
        "eq_hello" => value == "hello",
        "starts_v" => value.as_str().is_some_and(|it| it.starts_with('v')),
        other => panic!("no callback {other}"),
    }
}

/// The pause of handlers without one, as in the settings.
pub(crate) const DEFAULT_BACKOFF: Duration = Duration::from_mins(1);

/// Returns the end of a call that `raises`, or else has a `result`.
pub(crate) fn ended(behaviour: &Value) -> CallEnd {
    let given = |key: &str| behaviour.get(key).filter(|it| !it.is_null());
    match given("raises") {
        Some(error) => CallEnd::Raised(raised(error)),
        None => CallEnd::Returned(given("result").cloned()),
    }
}

/// Returns the error of `["ClassName", args..., {kwargs}]`.
pub(crate) fn raised(error: &Value) -> Raised {
    let items = error.as_array().expect("an error is a list");
    let class = items[0].as_str().expect("the class of an error");
    let message = items.get(1).and_then(Value::as_str);
    let options = items.last().and_then(Value::as_object);
    let delay = options.and_then(|it| it.get("delay"));
    let (kind, message) = match class {
        "TemporaryError" => {
            let delay = delay.map_or(Some(Duration::from_mins(1)), seconds);
            (RaisedKind::Temporary(delay), message.unwrap_or("None").to_owned())
        }
        "PermanentError" => (RaisedKind::Permanent, message.unwrap_or_default().to_owned()),
        "ChildrenRetry" => (RaisedKind::Unfinished(delay.and_then(seconds)), String::new()),
        // Its message is the quoted key.
        "KeyError" => (
            RaisedKind::Arbitrary(class.into()),
            message.map(|it| format!("'{it}'")).unwrap_or_default(),
        ),
        _ => (RaisedKind::Arbitrary(class.into()), message.unwrap_or_default().to_owned()),
    };
    Raised { kind, message, trace: None }
}

/// Returns a number of seconds.
pub(crate) fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

/// Returns the resource of handlers that name none.
pub(crate) fn kopfexamples() -> Resource {
    resource(&serde_json::json!({
        "group": "kopf.dev", "version": "v1", "plural": "kopfexamples", "kind": "KopfExample",
        "singular": "kopfexample", "shortcuts": ["kex", "kexes"], "categories": ["all"],
        "namespaced": true, "preferred": true,
    }))
}

/// Returns a resource from its record.
pub(crate) fn resource(spec: &Value) -> Resource {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let set = |key: &str| {
        let items = spec[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Resource {
        group: text("group"),
        version: text("version"),
        plural: text("plural"),
        kind: text("kind"),
        singular: text("singular"),
        shortcuts: set("shortcuts"),
        categories: set("categories"),
        subresources: set("subresources"),
        namespaced: spec["namespaced"] == true,
        preferred: spec["preferred"] == true,
        verbs: set("verbs"),
    }
}

/// Returns a part of a vector that is a map.
pub(crate) fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) type Check = Result<(), String>;

/// Compares for vectors where only the presence of an error matters; `None` if there was one as expected.
pub(crate) fn refused<T>(
    vector: &Vector,
    result: Result<T, impl std::fmt::Display>,
) -> Result<Option<T>, String> {
    match (result, vector.expects_error()) {
        (Ok(value), false) => Ok(Some(value)),
        (Err(_), true) => Ok(None),
        (Ok(_), true) => Err("accepted, must be refused".to_owned()),
        (Err(error), false) => Err(format!("refused: {error}")),
    }
}
