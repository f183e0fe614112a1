//! Names and addresses of objects: namespaces, URLs, references, hierarchies, posted events.

use jiff::Timestamp;
use kopf::{
    logic::{
        background::posting::{self, Note},
        discovery::namespaces::NamespacePattern,
        object::{
            Object, ObjectRef,
            hierarchy::{self, Adoption, HierarchyError},
            reference::{self, Ownership},
            resource::Resource,
            url::{self, UrlTarget},
        },
    },
    settings::{FieldPath, PostingSettings},
};
use serde_json::{Map, Value, json};

use super::{
    catalogue::{self, refused},
    run, same,
};

#[test]
fn namespaces() {
    run("namespaces", |vector| {
        let text = |key: &str| vector.input[key].as_str().unwrap_or_default();
        let actual = if vector.input["op"] == "match" {
            NamespacePattern::new(text("pattern")).matches(text("name")).into()
        } else {
            let patterns: Vec<_> = vector.input["patterns"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| Some(NamespacePattern::new(it.as_str()?)))
                .collect();
            let mut exact: Vec<_> = patterns.iter().filter_map(NamespacePattern::exact).collect();
            exact.sort_unstable();
            exact.dedup();
            json!(exact)
        };
        same("namespaces", &actual, &vector.expected)
    });
}

#[test]
fn resource_urls() {
    run("resource-urls", |vector| {
        let text = |key: &str| vector.input[key].as_str();
        let target = UrlTarget {
            namespace: text("namespace"),
            name: text("name"),
            subresource: text("subresource"),
        };
        let query = catalogue::map(&vector.input["params"]);
        let query: Vec<_> = query
            .iter()
            .map(|(key, it)| (key.as_str(), it.as_str().unwrap_or_default().to_owned()))
            .collect();
        let path = url::path(&catalogue::resource(&vector.input["resource"]), target);
        let Some(path) = refused(vector, path)? else { return Ok(()) };
        let url = url::with_query(&path, &query);
        let server = text("server").unwrap_or_default().trim_end_matches('/');
        same("url", &json!({ "url": format!("{server}{url}") }), &vector.expected)
    });
}

#[test]
fn object_references() {
    run("object-references", |vector| {
        let body = &vector.input["body"];
        let actual = if vector.input["op"] == "object" {
            reference::object(&Object::from_value(body.clone()).header().reference())
        } else {
            reference::owner(body, ownership(&vector.input))
        };
        same("reference", &actual.into(), &vector.expected)
    });
}

/// Reads the options of ownership. Absent ones have their defaults; nulls leave the keys out.
fn ownership(options: &Value) -> Ownership {
    let flag = |key: &str| options.get(key).map_or(Some(true), Value::as_bool);
    Ownership { controller: flag("controller"), block_owner_deletion: flag("block_owner_deletion") }
}

#[test]
fn hierarchies() {
    run("hierarchies", |vector| {
        let mut objects = vector.input["objs"].clone();
        let changed = change(&mut objects, &vector.input);
        let Some(()) = refused(vector, changed)? else { return Ok(()) };
        same("objects", &json!({ "objs": objects }), &vector.expected)
    });
}

fn change(objects: &mut Value, input: &Value) -> Result<(), HierarchyError> {
    let options = &input["kwargs"];
    let flag = |key: &str| options[key] == true;
    let handled = || hierarchy::implicit_owner(input.get("context"));
    let owner = || options.get("owner").map_or_else(handled, Ok);
    match input["fn"].as_str().unwrap_or_default() {
        "label" => {
            let labels = match options.get("labels") {
                Some(labels) => labels.clone(),
                None => hierarchy::labels_of(handled()?),
            };
            hierarchy::label(objects, &labels, flag("forced"), &nested(options))
        }
        "harmonize_naming" => {
            let name = match options.get("name") {
                Some(name) => name.as_str(),
                None => hierarchy::name_of(handled()?),
            };
            hierarchy::harmonize_naming(objects, name, flag("forced"), flag("strict"))
        }
        "adjust_namespace" => {
            let namespace = match options.get("namespace") {
                Some(namespace) => namespace.as_str(),
                None => hierarchy::namespace_of(handled()?),
            };
            hierarchy::adjust_namespace(objects, namespace, flag("forced"))
        }
        "append_owner_reference" => {
            hierarchy::append_owner_reference(objects, owner()?, ownership(options))
        }
        "remove_owner_reference" => hierarchy::remove_owner_reference(objects, owner()?),
        "adopt" => {
            let how = Adoption {
                forced: flag("forced"),
                strict: flag("strict"),
                nested: nested(options),
            };
            hierarchy::adopt(objects, owner()?, &how)
        }
        other => panic!("no function {other}"),
    }
}

/// Returns one dotted path, or a list of paths.
fn nested(options: &Value) -> Vec<FieldPath> {
    let path = |it: &Value| match it.as_str() {
        Some(path) => path.split('.').map(str::to_owned).collect(),
        None => it.as_array().into_iter().flatten().map(text).collect(),
    };
    match (options.get("nested"), options["nested"].as_array()) {
        (None, _) => Vec::new(),
        (Some(_), Some(paths)) => paths.iter().map(path).collect(),
        (Some(one), None) => vec![path(one)],
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn k8s_events() {
    run("k8s-events", |vector| {
        let input = &vector.input;
        let settings = settings(&input["settings"]);
        let actual = match input["op"].as_str() {
            Some("post") => posted(input, &settings),
            Some("truncate") => posting::cut(input["message"].as_str().unwrap_or_default()).into(),
            Some("call") => called(input, &settings),
            _ => logged(input, &settings),
        };
        same("event", &actual, &vector.expected)
    });
}

pub(super) fn settings(changes: &Value) -> PostingSettings {
    let default = PostingSettings::default();
    let string = |key: &str, default: String| changes[key].as_str().map_or(default, str::to_owned);
    PostingSettings {
        enabled: changes["enabled"] != false,
        loggers: changes["loggers"] == true,
        level: changes["level"]
            .as_u64()
            .map_or(default.level, |it| it.try_into().expect("a level")),
        reporting_component: string("reporting_component", default.reporting_component),
        reporting_instance: string("reporting_instance", default.reporting_instance),
        event_name_prefix: string("event_name_prefix", default.event_name_prefix),
        ..PostingSettings::default()
    }
}

fn object_ref(spec: &Value) -> ObjectRef {
    ObjectRef {
        api_version: text(&spec["apiVersion"]),
        kind: text(&spec["kind"]),
        name: text(&spec["name"]),
        uid: text(&spec["uid"]),
        namespace: spec["namespace"].as_str().map(str::to_owned),
    }
}

fn posted(input: &Value, settings: &PostingSettings) -> Value {
    let note = Note {
        kind: text(&input["type"]),
        reason: text(&input["reason"]),
        message: text(&input["message"]),
    };
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
    let default_namespace = input["default_namespace"].as_str();
    let about = object_ref(&input["ref"]);
    let Some(event) = posting::compose(&note, &about, settings, default_namespace, start) else {
        return Value::Null;
    };
    let events = Resource {
        version: "v1".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
        ..Resource::default()
    };
    let target = UrlTarget { namespace: Some(&event.namespace), ..UrlTarget::default() };
    // The reference omits a fraction of zero, with which a real server rejects the event; see `cluster/real.rs`.
    let mut body = event.body;
    for key in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        assert_eq!(body[key], "2026-01-01T00:00:00.000000+00:00", "{key}");
        body[key] = "2026-01-01T00:00:00+00:00".into();
    }
    json!({
        "url": url::path(&events, target).expect("a target"),
        "headers": { "Content-Type": "application/json" },
        "payload": body,
        "backoffs": null,
    })
}

fn called(input: &Value, settings: &PostingSettings) -> Value {
    let options = &input["kwargs"];
    let (reason, message) = (options["reason"].as_str(), text(&options["message"]));
    let note = match input["fn"].as_str() {
        Some("event") => {
            let kind = options["type"].as_str().unwrap_or_default();
            posting::event(settings, Note::new(kind, reason.unwrap_or_default(), &message))
        }
        Some("info") => posting::info(settings, reason.unwrap_or_default(), &message),
        Some("warn") => posting::warn(settings, reason.unwrap_or_default(), &message),
        _ => {
            // Inside of an except-block, the current error is the one.
            let at_hand = json!(["ValueError", "boo!"]);
            let error = if options["in_except"] == true { &at_hand } else { &options["exc"] };
            let error = error.as_array().map(|it| {
                let part = |index: usize| it.get(index).and_then(Value::as_str);
                (part(0).unwrap_or_default(), part(1).unwrap_or_default())
            });
            posting::exception(settings, reason, &message, error)
        }
    };
    let mut objects = Vec::new();
    flatten(&input["objs"], &mut objects);
    let items = note.iter().flat_map(|note| {
        objects.iter().map(|it| {
            let about = Object::from_value((*it).clone()).header().reference();
            item(note, &about, &settings.default_backoffs)
        })
    });
    items.collect()
}

fn flatten<'a>(objects: &'a Value, found: &mut Vec<&'a Value>) {
    match objects.as_array() {
        Some(items) => items.iter().for_each(|it| flatten(it, found)),
        None if objects.is_null() => {}
        None => found.push(objects),
    }
}

fn logged(input: &Value, settings: &PostingSettings) -> Value {
    // Other loggers are local to the process: the operator never requests their lines.
    if input["logger"] != "ObjectLogger" {
        return Value::Null;
    }
    let level = input["level"].as_u64().unwrap_or_default().try_into().expect("a level");
    let about = ObjectRef {
        api_version: "kopf.dev/v1".to_owned(),
        kind: "KopfExample".to_owned(),
        name: "n1".to_owned(),
        uid: "u1".to_owned(),
        namespace: Some("ns1".to_owned()),
    };
    posting::of_log(settings, level, "hello world")
        .map_or(Value::Null, |note| item(&note, &about, &settings.logging_backoffs))
}

pub(super) fn item(note: &Note, about: &ObjectRef, backoffs: &[std::time::Duration]) -> Value {
    let mut item = Map::new();
    item.insert("ref".to_owned(), reference::object(about).into());
    item.insert("type".to_owned(), note.kind.as_str().into());
    item.insert("reason".to_owned(), note.reason.as_str().into());
    item.insert("message".to_owned(), note.message.as_str().into());
    let backoffs: Vec<_> = backoffs.iter().map(std::time::Duration::as_secs_f64).collect();
    item.insert("backoffs".to_owned(), json!(backoffs));
    Value::Object(item)
}
