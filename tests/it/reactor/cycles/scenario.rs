//! A scenario: handlers with their behaviour, objects, and what users do to them, in the format of the vectors.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The namespace of all objects of the vectors.
pub(super) const NAMESPACE: &str = "ns1";

/// One scenario of the suite `cycles`.
pub(crate) struct Scenario {
    /// Declarations with behaviours, as in the vectors.
    pub(super) handlers: Vec<Value>,
    /// The objects on the cluster before the operator starts.
    pub(super) objects: Vec<Value>,
    /// The actions of users, with their times.
    pub(super) actions: Vec<(Duration, Action)>,
    /// The time of the end.
    pub(super) until: Duration,
    /// The lifecycle; `asap` by default.
    pub(super) lifecycle: String,
    /// The delay of watch events.
    pub(super) latency: Duration,
    /// Statuses of the first PATCH requests.
    pub(super) inject: Vec<u16>,
    /// `group.name` → value.
    pub(super) settings: Map<String, Value>,
    /// Whether the resource has a status subresource.
    pub(super) status_subresource: bool,
    /// The operator's memo.
    pub(super) memo: Map<String, Value>,
}

/// An action of a user.
pub(super) enum Action {
    /// Create this object.
    Create(Value),
    /// Merge this into the object.
    Edit(String, Value),
    /// Delete the object.
    Delete(String),
    /// End the operator gracefully.
    Stop,
    /// Start the operator from scratch.
    Start,
}

impl Scenario {
    /// Reads the `input` of a vector.
    pub(crate) fn parse(input: &Value) -> Self {
        let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
        Scenario {
            handlers: list("handlers"),
            objects: list("objects"),
            actions: list("actions").iter().map(action).collect(),
            until: seconds(&input["until"]),
            lifecycle: input["lifecycle"].as_str().unwrap_or("asap").to_owned(),
            latency: seconds(&input["latency"]),
            inject: list("inject")
                .iter()
                .filter_map(Value::as_u64)
                .filter_map(|it| u16::try_from(it).ok())
                .collect(),
            settings: input["settings"].as_object().cloned().unwrap_or_default(),
            status_subresource: input["status_subresource"].as_bool().unwrap_or(false),
            memo: input["memo"].as_object().cloned().unwrap_or_default(),
        }
    }
}

/// Returns the object of scenarios that are not from the vectors.
pub(crate) fn example() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "name": "n1", "namespace": NAMESPACE, "uid": "uid-n1" }, "spec": { "a": 1 },
    })
}

/// Returns a number of seconds; zero if there is none.
pub(super) fn seconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap_or_default())
}

fn action(entry: &Value) -> (Duration, Action) {
    let name = || entry[2].as_str().unwrap_or_default().to_owned();
    let action = match entry[1].as_str().unwrap_or_default() {
        "create" => Action::Create(entry[2].clone()),
        "edit" => Action::Edit(name(), entry[3].clone()),
        "delete" => Action::Delete(name()),
        "stop" => Action::Stop,
        "start" => Action::Start,
        other => panic!("unknown action {other}"),
    };
    (seconds(&entry[0]), action)
}
