//! Records of progress, their storage, and the state of a whole cause.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kopf::logic::{
    change::state::{self, ProgressCounts, State},
    handlers::{
        outcome::{Failure, Outcome},
        progress::{self, ProgressRecord},
    },
    object::reason::Reason,
};
use serde_json::{Map, Value, json};

use super::{expect_error, flag, map, progress_storage, storages::stored, text};
use crate::vectors::{Vector, run, same};

#[test]
fn progress_records() {
    run("progress-records", |vector| match text(&vector.input["op"]) {
        "parse" => parse(vector),
        "format" => format(vector),
        "transition" => transition(vector),
        "fetch" => fetch(vector),
        "store" | "purge" | "touch" => change(vector),
        "state" => whole_state(vector),
        "deliver" => deliver(vector),
        op => Err(format!("unknown op {op}")),
    });
}

fn base() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a timestamp")
}

fn now(input: &Value) -> Timestamp {
    base() + SignedDuration::from_secs_f64(input["now"].as_f64().unwrap_or_default())
}

fn record(value: &Value, now: Timestamp) -> Result<ProgressRecord, String> {
    ProgressRecord::parse("fn", value, now).map_err(|it| it.to_string())
}

fn parse(vector: &Vector) -> Result<(), String> {
    let now = now(&vector.input);
    let stored = serde_json::from_str(text(&vector.input["text"])).map_err(|it| it.to_string());
    let parsed = stored.and_then(|it: Value| record(&it, now));
    if vector.expects_error() {
        return expect_error(parsed);
    }
    let parsed = parsed?;
    let mut actual = parsed.to_json(true);
    actual["subrefs"] = json!(parsed.subrefs);
    actual["active"] = json!(false);
    actual["finished"] = json!(parsed.finished());
    actual["sleeping"] = json!(parsed.sleeping(now));
    actual["awakened"] = json!(parsed.awakened(now));
    actual["runtime"] = json!(parsed.runtime(now).as_secs_f64());
    same("record", &actual, &vector.expected)
}

fn format(vector: &Vector) -> Result<(), String> {
    let parsed = record(&vector.input["fields"], base())?;
    let actual = parsed.format(flag(&vector.input["verbose"]));
    same("text", &actual.into(), &vector.expected["text"])
}

fn transition(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let before = if input["record"].is_null() {
        ProgressRecord::new(base(), input["purpose"].as_str())
    } else {
        record(&input["record"], base())?
    };
    let after = before.transition(&outcome(&input["outcome"]), now(input));
    same("record", &after.to_json(false), &vector.expected)
}

fn outcome(value: &Value) -> Outcome {
    let strings = value["subrefs"].as_array().into_iter().flatten();
    Outcome {
        last: flag(&value["final"]),
        delay: value["delay"].as_f64().map(Duration::from_secs_f64),
        result: value.get("result").cloned().filter(|it| !it.is_null()),
        error: value["exception"].as_array().map(|it| failure(it)),
        subrefs: strings.map(text).map(str::to_owned).collect(),
        ..Outcome::default()
    }
}

/// Returns a failure with the message of Python: errors about retries say `None` without a message, missing keys are quoted.
fn failure(exception: &[Value]) -> Failure {
    let class = text(&exception[0]).to_owned();
    let message = match (class.as_str(), exception.get(1).and_then(Value::as_str)) {
        ("KeyError", Some(message)) => format!("'{message}'"),
        (_, Some(message)) => message.to_owned(),
        ("TemporaryError" | "ChildrenRetry", None) => "None".to_owned(),
        (_, None) => String::new(),
    };
    Failure { class, message, code: None }
}

fn fetch(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let storage = progress_storage(&input["progress"]);
    let fetched = progress::fetch(&storage, &input["body"], text(&input["key"]));
    if vector.expects_error() {
        return expect_error(fetched);
    }
    let fetched = fetched.map_err(|it| it.to_string())?.unwrap_or_default();
    same("record", &fetched, &vector.expected["record"])
}

fn change(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let storage = progress_storage(&input["progress"]);
    let (body, id) = (&input["body"], text(&input["key"]));
    match text(&input["op"]) {
        "store" => {
            let record = record(&input["record"], base())?;
            stored(vector, |patch| progress::store(&storage, body, id, &record, patch))
        }
        "purge" => stored(vector, |patch| progress::purge(&storage, body, id, patch)),
        _ => stored(vector, |patch| {
            progress::touch(&storage, body, patch, input["value"].as_str());
        }),
    }
}

fn whole_state(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let now = now(input);
    let storage = progress_storage(&input["progress"]);
    let body = body_with(&map(&input["stored"]));
    let (owned, selected) = (ids(&input["owned"]), ids(&input["selected"]));
    let (mut patch, reason) = (Map::new(), reason(text(&input["reason"])));
    let purge = |state: &State, patch: &mut Map<String, Value>| {
        for id in state.known(&owned) {
            progress::purge(&storage, &body, id, patch);
        }
    };

    let mut state = State::load(&storage, &body, &owned, now).map_err(|it| it.to_string())?;
    state.begin(reason, &selected, now);
    let extras = state.superseded();
    if !extras.is_empty() {
        state.repurpose();
    }
    let extras_after = state.superseded();
    if !extras_after.is_empty() {
        purge(&state, &mut patch);
    }
    let awakened: Vec<_> = selected.iter().filter(|it| state.awakened(it, now)).collect();
    let awakened = json!(awakened);
    for (id, it) in map(&input["outcomes"]) {
        state.apply(&id, &outcome(&it), now);
    }
    for (id, entry) in state.entries() {
        entry.store(id, (&storage, &body), &BTreeSet::new(), &mut patch);
    }
    if state.done() {
        purge(&state, &mut patch);
    }

    let mut delays: Vec<f64> = state.delays(now).iter().map(Duration::as_secs_f64).collect();
    delays.sort_by(f64::total_cmp);
    let counted = |it: ProgressCounts| json!([it.succeeded, it.failed, it.left]);
    let all = |it: &std::collections::BTreeMap<String, ProgressCounts>| -> Value {
        it.iter()
            .map(|(purpose, counts)| (purpose.clone(), counted(*counts)))
            .collect::<Map<_, _>>()
            .into()
    };
    let mut expected = vector.expected.clone();
    if let Some(delays) = expected["delays"].as_array_mut() {
        delays
            .sort_by(|a, b| f64::total_cmp(&a.as_f64().unwrap_or(0.0), &b.as_f64().unwrap_or(0.0)));
    }
    let actual = json!({
        "extras": all(&extras),
        "extras_after": all(&extras_after),
        "prepurged": !extras_after.is_empty(),
        "awakened": awakened,
        "done": state.done(),
        "counts": counted(state.counts()),
        "delay": delays.first(),
        "delays": delays,
        "patch": with_parsed_annotations(patch),
    });
    same("state", &actual, &expected)
}

fn body_with(records: &Map<String, Value>) -> Value {
    let annotations: Map<String, Value> = records
        .iter()
        .map(|(id, it)| {
            (format!("kopf.zalando.org/{}", id.replace('/', ".")), it.to_string().into())
        })
        .collect();
    json!({"metadata": {"annotations": annotations}})
}

/// Parses annotations, because the vectors have the records as structures.
fn with_parsed_annotations(patch: Map<String, Value>) -> Value {
    let mut patch = Value::Object(patch);
    if let Some(annotations) = patch.pointer_mut("/metadata/annotations") {
        for value in annotations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Some(text) = value.as_str() {
                *value = serde_json::from_str(text).expect("a record");
            }
        }
    }
    patch
}

fn ids(value: &Value) -> Vec<Arc<str>> {
    value.as_array().into_iter().flatten().map(|it| text(it).into()).collect()
}

fn reason(name: &str) -> Reason {
    let all = [Reason::Create, Reason::Update, Reason::Delete, Reason::Resume];
    all.into_iter().find(|it| it.as_str() == name).expect("a reason")
}

fn deliver(vector: &Vector) -> Result<(), String> {
    let mut patch = map(&vector.input["patch"]);
    let outcomes = map(&vector.input["outcomes"]);
    let result =
        outcomes.iter().map(|(id, it)| (id, outcome(it))).try_for_each(|(id, it)| {
            match (&it.error, &it.result) {
                (None, Some(result)) => state::deliver(&mut patch, id, result.clone()),
                _ => Ok(()),
            }
        });
    if vector.expects_error() {
        return expect_error(result);
    }
    result.map_err(|it| it.to_string())?;
    same("patch", &Value::Object(patch), &vector.expected["patch"])
}
