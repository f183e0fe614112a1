//! Conversion of events between their two forms: that of the core group, which is stored, and that of `events.k8s.io`.

use serde_json::{Map, Value};

use super::Twin;

/// The names of fields in `events.k8s.io/v1`, in its order, and those in `v1`.
const FIELDS: [(&str, &str); 17] = [
    ("metadata", "metadata"),
    ("eventTime", "eventTime"),
    ("series", "series"),
    ("reportingController", "reportingComponent"),
    ("reportingInstance", "reportingInstance"),
    ("action", "action"),
    ("reason", "reason"),
    ("regarding", "involvedObject"),
    ("related", "related"),
    ("note", "message"),
    ("type", "type"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("kind", "kind"),
    ("apiVersion", "apiVersion"),
];

pub(super) static TWIN: Twin = Twin { stored_as: "events", to_stored, from_stored };

fn to_stored(modern: Value) -> Value {
    let mut stored = renamed(modern, |name| FIELDS.iter().find(|it| it.0 == name).map(|it| it.1));
    let mut order: Vec<&str> =
        vec!["kind", "apiVersion", "metadata", "involvedObject", "reason", "message", "source"];
    order.extend([
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "series",
        "action",
    ]);
    order.extend(["related", "reportingComponent", "reportingInstance"]);
    // The core group also writes empty structs.
    for name in ["involvedObject", "source"] {
        stored.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
    for name in ["reportingComponent", "reportingInstance"] {
        stored.entry(name).or_insert_with(|| "".into());
    }
    for name in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        stored.entry(name).or_insert(Value::Null);
    }
    stored.insert("apiVersion".into(), "v1".into());
    Value::Object(ordered(stored, &order))
}

fn from_stored(stored: Value) -> Value {
    let mut modern = renamed(stored, |name| FIELDS.iter().find(|it| it.1 == name).map(|it| it.0));
    for name in ["reportingController", "reportingInstance"] {
        if modern.get(name).is_some_and(|it| it == "") {
            modern.shift_remove(name);
        }
    }
    modern.insert("apiVersion".into(), "events.k8s.io/v1".into());
    let mut order = vec!["kind", "apiVersion"];
    order.extend(FIELDS.iter().map(|it| it.0).take(15));
    Value::Object(ordered(modern, &order))
}

fn renamed(value: Value, name: impl Fn(&str) -> Option<&'static str>) -> Map<String, Value> {
    let Value::Object(fields) = value else { return Map::new() };
    fields.into_iter().filter_map(|(key, it)| Some((name(&key)?.into(), it))).collect()
}

fn ordered(mut fields: Map<String, Value>, order: &[&str]) -> Map<String, Value> {
    let listed =
        order.iter().filter_map(|it| fields.shift_remove(*it).map(|value| ((*it).into(), value)));
    let mut all: Map<String, Value> = listed.collect();
    all.extend(fields);
    all
}
