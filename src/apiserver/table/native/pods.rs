//! Columns of Pods: their state in one word.

use serde_json::{Value, json};

use super::{
    Column, Layout,
    row::{NONE, TableRow, number},
};
use crate::{
    object::{list, text},
    table::age,
};

pub(super) static PODS: Layout = Layout {
    conditions: finished,
    ..Layout::new(
        &[
            Column::NAME,
            Column::text("Ready"),
            Column::text("Status"),
            Column::text("Restarts"),
            Column::AGE,
            Column::wide("IP"),
            Column::wide("Node"),
            Column::wide("Nominated Node"),
            Column::wide("Readiness Gates"),
        ],
        cells,
    )
};

/// Returns the condition by which clients hide terminated Pods.
fn finished(pod: &Value) -> Value {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Value::Null,
    };
    json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }])
}

fn cells(row: &TableRow<'_>) -> Vec<Value> {
    let state = State::of(row);
    vec![
        row.name(),
        format!("{}/{}", state.ready, row.count("/spec/containers")).into(),
        state.word.into(),
        restarts(row, state.restarts).into(),
        row.age(),
        row.list("/status/podIPs")
            .first()
            .map(|it| text(it, "/ip"))
            .filter(|it| !it.is_empty())
            .unwrap_or(NONE)
            .into(),
        row.text_or("/spec/nodeName", NONE).into(),
        row.text_or("/status/nominatedNodeName", NONE).into(),
        gates(row).into(),
    ]
}

/// Formats the restarts and the age of the last one: `3 (5m ago)`.
fn restarts(row: &TableRow<'_>, count: i64) -> String {
    let statuses = row.list("/status/containerStatuses").iter();
    let ends = statuses.map(|it| text(it, "/lastState/terminated/finishedAt"));
    let last = ends.filter(|it| !it.is_empty()).max();
    match last.and_then(|it| age::since(it, row.now)) {
        Some(ago) if count > 0 => format!("{count} ({ago} ago)"),
        _ => count.to_string(),
    }
}

struct State {
    word: String,
    ready: usize,
    restarts: i64,
}

impl State {
    fn of(row: &TableRow<'_>) -> Self {
        let initial = row.text_or("/status/reason", row.text("/status/phase"));
        let mut state = match starting(row) {
            Some((word, restarts)) => Self { word, ready: 0, restarts },
            None => Self::running(row, initial),
        };
        if row.get("/metadata/deletionTimestamp").is_some() {
            let lost = row.text("/status/reason") == "NodeLost";
            state.word = if lost { "Unknown" } else { "Terminating" }.into();
        }
        state
    }

    /// Returns the state of a Pod after its init containers. The first container that does not run determines the word.
    fn running(row: &TableRow<'_>, initial: &str) -> Self {
        let mut state = Self { word: initial.into(), ready: 0, restarts: 0 };
        let mut running = false;
        for container in row.list("/status/containerStatuses").iter().rev() {
            state.restarts = state.restarts.saturating_add(number(container, "/restartCount"));
            let waiting = text(container, "/state/waiting/reason");
            if !waiting.is_empty() {
                state.word = waiting.into();
            } else if let Some(end) = ended(container) {
                state.word = reason(end);
            } else if container.pointer("/state/running").is_some_and(|it| !it.is_null())
                && container.get("ready") == Some(&Value::Bool(true))
            {
                running = true;
                state.ready += 1;
            }
        }
        if state.word == "Completed" && running {
            let ready = row
                .list("/status/conditions")
                .iter()
                .any(|it| text(it, "/type") == "Ready" && text(it, "/status") == "True");
            state.word = if ready { "Running" } else { "NotReady" }.into();
        }
        state
    }
}

/// Returns the state of the first init container that has not succeeded, and the restarts up to it.
fn starting(row: &TableRow<'_>) -> Option<(String, i64)> {
    let mut restarts: i64 = 0;
    for (index, container) in row.list("/status/initContainerStatuses").iter().enumerate() {
        restarts = restarts.saturating_add(number(container, "/restartCount"));
        let waiting = text(container, "/state/waiting/reason");
        let word = match ended(container) {
            Some(end) if number(end, "/exitCode") == 0 => continue,
            Some(end) => reason(end),
            None if !waiting.is_empty() && waiting != "PodInitializing" => waiting.into(),
            None => format!("{index}/{}", row.count("/spec/initContainers")),
        };
        return Some((format!("Init:{word}"), restarts));
    }
    None
}

fn ended(container: &Value) -> Option<&Value> {
    container.pointer("/state/terminated").filter(|it| !it.is_null())
}

fn reason(end: &Value) -> String {
    match (text(end, "/reason"), number(end, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(end, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.into(),
    }
}

/// Formats the number of readiness gates whose conditions are true.
fn gates(row: &TableRow<'_>) -> String {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return NONE.into();
    }
    let open = |gate: &&Value| {
        let conditions = list(row.object, "/status/conditions");
        let condition =
            conditions.iter().find(|it| text(it, "/type") == text(gate, "/conditionType"));
        condition.is_some_and(|it| text(it, "/status") == "True")
    };
    format!("{}/{}", gates.iter().filter(open).count(), gates.len())
}
