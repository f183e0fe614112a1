//! Compares the observed calls, patches, final objects and times with the expected ones.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Lines whose times differ from Kopf's on purpose: a pause ends at once with the operator, so nothing is cancelled in it; and
/// there is no warning about the deletion of the last annotation.
const OTHERWISE: &[&str] = &[
    "Sleeping was interrupted by new changes",
    "is cancelled. Will escalate.",
    "Merge-patching finished with inconsistencies",
];

/// The results of a scenario.
pub(crate) struct Transcript {
    /// The ids of daemons and timers: the order of their calls among those of the cycle at the same time does not matter.
    pub(super) background: BTreeSet<String>,
    /// Handler calls in order, each with `t` and kwargs.
    pub(crate) calls: Vec<Value>,
    /// PATCH requests in order, each with `t`.
    pub(crate) patches: Vec<Value>,
    /// The final objects.
    pub(crate) objects: Vec<Value>,
    /// The log about objects: levels and messages.
    pub(super) log: Vec<[String; 2]>,
}

impl Transcript {
    /// Compares with the `expected` of a vector.
    pub(super) fn compare(&self, expected: &Value) -> Result<(), String> {
        let trace = expected["trace"].as_array().cloned().unwrap_or_default();
        let of_kind = |key: &str| {
            trace.iter().filter(|it| it.get(key).is_some()).cloned().collect::<Vec<_>>()
        };
        let (expected_beside, expected_calls) = self.partition(of_kind("call"));
        let (beside, calls) = self.partition(self.calls.clone());
        for (own, expected) in [(calls, expected_calls), (beside, expected_beside)] {
            let asked = expected.iter().map(Some).chain(std::iter::repeat(None));
            let own = own.iter().zip(asked).map(|(own, expected)| only_asked(own, expected));
            sequence("call", &own.collect::<Vec<_>>(), &expected)?;
        }
        let flat = |it: Value| {
            let mut patch = it["patch"].clone();
            patch["t"] = it["t"].clone();
            patch
        };
        let patches: Vec<_> = of_kind("patch").into_iter().map(flat).collect();
        compare_patches(&self.patches, &patches)?;
        let objects = expected["objects"].as_array().cloned().unwrap_or_default();
        let ((own, mut versions), (expected, mut of_expected)) =
            (without_versions(&self.objects), without_versions(&objects));
        sequence("object", &own, &expected)?;
        if objects.len() > 1 {
            // The order of several objects at the same time does not matter.
            versions.sort_by_key(Value::to_string);
            of_expected.sort_by_key(Value::to_string);
        }
        sequence("version", &versions, &of_expected)
    }

    /// Returns whether the requests have the order of the vector.
    pub(super) fn has_order(&self, expected: &Value) -> bool {
        let trace = expected["trace"].as_array().into_iter().flatten();
        let kinds = |it: &Value| json!([it["content_type"], it["subresource"], it["status"]]);
        let expected: Vec<_> = trace.filter_map(|it| it.get("patch")).map(kinds).collect();
        self.patches.iter().map(kinds).collect::<Vec<_>>() == expected
    }

    /// Compares the log with that of a vector, which truncates long lines.
    pub(super) fn compare_log(&self, expected: &Value) -> Result<(), String> {
        let line = |it: &Value| {
            let part =
                |at: usize| it[at].as_str().unwrap_or_default().replace(".0 seconds", " seconds");
            [part(0), part(1)]
        };
        let is_common = |it: &[String; 2]| !OTHERWISE.iter().any(|text| it[1].contains(text));
        let trace = expected["trace"].as_array().into_iter().flatten();
        let expected = trace.filter_map(|it| it.get("log")).map(line).filter(is_common);
        let own = self.log.iter().map(|it| line(&json!(it))).filter(is_common);
        let (own, expected) = (own.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        let is_same = |own: &[String; 2], expected: &[String; 2]| {
            let (start, is_cut) =
                expected[1].split_once('…').map_or((&*expected[1], false), |it| (it.0, true));
            own[0] == expected[0] && (own[1] == start || is_cut && own[1].starts_with(start))
        };
        match own.iter().zip(&expected).find(|(own, expected)| !is_same(own, expected)) {
            Some((own, expected)) => Err(format!("got {own:?}, expected {expected:?}")),
            None if own.len() != expected.len() => {
                Err(format!("{} lines instead of {}", own.len(), expected.len()))
            }
            None => Ok(()),
        }
    }

    /// Returns the handlers that were called, with their attempts: `a#0`. Parents are called as often as their sub-handlers need.
    pub(super) fn attempts(&self) -> Vec<String> {
        let text =
            |it: &Value| format!("{}#{}", it["call"].as_str().unwrap_or_default(), it["retry"]);
        self.calls.iter().map(text).collect()
    }

    /// Separates the calls of daemons and timers from those of cycles.
    fn partition(&self, calls: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
        let is_beside =
            |it: &Value| it["call"].as_str().is_some_and(|id| self.background.contains(id));
        calls.into_iter().partition(is_beside)
    }
}

/// Compares the requests. Those at the same time have another order here: the changes of a handler are sent before its record, so that no
/// crash in between loses them. Requests for an object that is gone make no difference; nor do records that are removed from an object just
/// before its finalizer is, which ends it: here they stay until then, so that no crash in between repeats a handler.
fn compare_patches(own: &[Value], expected: &[Value]) -> Result<(), String> {
    let is_needed = |(index, it): &(usize, &Value)| {
        let is_own = own.iter().any(|other| normal(other)["payload"] == normal(it)["payload"]);
        let next = expected.get(index + 1).filter(|next| same(&next["t"], &it["t"]));
        let is_released = next.is_some_and(|it| it["payload"].is_array() && it["status"] == 200);
        is_own || !(is_released && is_removal(&it["payload"]))
    };
    let needed: Vec<_> =
        expected.iter().enumerate().filter(is_needed).map(|(_, it)| it.clone()).collect();
    let (expected, is_shorter) = (&needed[..], needed.len() < expected.len());
    let is_of_use = |it: &&Value| it["status"] != 404;
    let ordered = |all: &[Value]| -> Vec<Value> {
        let all: Vec<_> = all.iter().filter(is_of_use).cloned().collect();
        let moments = all.chunk_by(|a, b| same(&a["t"], &b["t"]));
        let reorder =
            |it: &[Value]| if it.len() > 1 || is_shorter { any_order(it) } else { it.to_vec() };
        moments.flat_map(reorder).collect()
    };
    sequence("patch", own, expected)
        .or_else(|_| sequence("patch", &ordered(own), &ordered(expected)))
}

/// Returns whether a merge-patch only removes records, or stores the last handled state.
fn is_removal(payload: &Value) -> bool {
    let is_state = |key: &str| key.ends_with("/last-handled-configuration");
    payload.as_object().map_or(payload.is_null(), |fields| {
        fields.iter().all(|(key, value)| is_state(key) || is_removal(value))
    })
}

/// Returns requests in a canonical order, without the versions, which depend on the order.
fn any_order(requests: &[Value]) -> Vec<Value> {
    let mut requests: Vec<_> = requests.iter().map(normal).collect();
    for request in &mut requests {
        request["response_rv"] = Value::Null;
        let guard = request["payload"].get_mut(0).filter(|it| it["op"] == "test");
        if let Some(guard) = guard {
            guard["value"] = Value::Null;
        }
    }
    // A conflict is resolved at once: the refused request equals the one that followed.
    let all = requests.clone();
    requests.retain(|it| {
        let is_repeated =
            |other: &Value| other["payload"] == it["payload"] && other["status"] == 200;
        it["status"] != 422 || !all.iter().any(is_repeated)
    });
    let key = |it: &Value| {
        format!("{} {} {} {}", it["content_type"], it["subresource"], it["status"], it["payload"])
    };
    requests.sort_by_key(key);
    requests
}

/// Returns the objects, and their versions separately.
fn without_versions(objects: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let apart = |object: &Value| {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut();
        let version = metadata.and_then(|it| it.shift_remove("resourceVersion"));
        (object, version.unwrap_or_default())
    };
    objects.iter().map(apart).unzip()
}

fn sequence(what: &str, own: &[Value], expected: &[Value]) -> Result<(), String> {
    for (index, (own, expected)) in own.iter().zip(expected).enumerate() {
        let (own, expected) = (normal(own), normal(expected));
        if !same(&own, &expected) {
            return Err(format!("{what} #{index}:\n   got      {own}\n   expected {expected}"));
        }
    }
    if own.len() == expected.len() {
        return Ok(());
    }
    let (more, verb) =
        if own.len() > expected.len() { (own, "too many") } else { (expected, "missing") };
    let at = own.len().min(expected.len());
    Err(format!("{verb} {what}s: {} instead of {}, first {}", own.len(), expected.len(), more[at]))
}

/// Compares numbers by value: `1` is `1.0` on the virtual clock.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap_or(0.0) - b.as_f64().unwrap_or(1.0)).abs() < 0.000_5
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Normalizes a value: JSON inside of strings is parsed, diffs are sorted.
fn normal(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('{') => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        Value::Array(list) => Value::Array(list.iter().map(normal).collect()),
        Value::Object(map) => {
            let mut normal =
                map.iter().map(|(key, it)| (key.clone(), normal(it))).collect::<Map<_, _>>();
            if let Some(Value::Array(diff)) = normal.get_mut("diff") {
                diff.sort_by_key(|it| (it[1].to_string(), it[0].to_string()));
            }
            Value::Object(normal)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The fields of a call that are known only when it ends, or is ended.
const LATER: &[&str] = &["cancelled_at", "stopped_at", "stopped_reason"];

/// Removes the kwargs that the scenario did not request: calls have all of them here.
fn only_asked(own: &Value, expected: Option<&Value>) -> Value {
    let Some(expected) = expected.and_then(Value::as_object) else { return own.clone() };
    let own = own.as_object().cloned().unwrap_or_default();
    Value::Object(
        own.into_iter()
            .filter(|(key, _)| expected.contains_key(key) || LATER.contains(&key.as_str()))
            .collect(),
    )
}

/// Returns a time in seconds, rounded to tenths.
pub(crate) fn tenths(value: &Value) -> f64 {
    (value.as_f64().expect("a moment") * 10.0).round() / 10.0
}

/// Returns the times of these calls or patches.
pub(crate) fn times(entries: &[Value]) -> Vec<f64> {
    entries.iter().map(|it| tenths(&it["t"])).collect()
}

/// Returns a diff in the form of the vectors.
pub(super) fn diff(diff: &kopf::logic::object::diff::Diff) -> Value {
    diff.iter().map(|it| json!([it.operation.as_str(), it.field, it.old, it.new])).collect()
}
