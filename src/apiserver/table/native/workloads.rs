//! Columns of workloads: Deployments, Jobs and others.

use serde_json::Value;

use super::{
    Column, Layout,
    row::{NONE, TableRow},
};
use crate::{object::text, table::age};

const CONTAINERS: &str = "/spec/template/spec/containers";

pub(super) static DEPLOYMENTS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Ready"),
        Column::text("Up-to-date"),
        Column::text("Available"),
        Column::AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![
            row.name(),
            ready(row).into(),
            row.number("/status/updatedReplicas").into(),
            row.number("/status/availableReplicas").into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector").into(),
        ]
    },
);

const REPLICAS: &[Column] = &[
    Column::NAME,
    Column::number("Desired"),
    Column::number("Current"),
    Column::number("Ready"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

pub(super) static REPLICA_SETS: Layout =
    Layout::new(REPLICAS, |row| replicas(row, row.selector("/spec/selector")));

pub(super) static REPLICATION_CONTROLLERS: Layout =
    Layout::new(REPLICAS, |row| replicas(row, row.labels("/spec/selector")));

fn replicas(row: &TableRow<'_>, selector: String) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/spec/replicas").into(),
        row.number("/status/replicas").into(),
        row.number("/status/readyReplicas").into(),
        row.age(),
        names,
        images,
        selector.into(),
    ]
}

fn ready(row: &TableRow<'_>) -> String {
    format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas"))
}

pub(super) static STATEFUL_SETS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Ready"),
        Column::AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
    ],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![row.name(), ready(row).into(), row.age(), names, images]
    },
);

pub(super) static DAEMON_SETS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::number("Desired"),
        Column::number("Current"),
        Column::number("Ready"),
        Column::number("Up-to-date"),
        Column::number("Available"),
        Column::text("Node Selector"),
        Column::AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![
            row.name(),
            row.number("/status/desiredNumberScheduled").into(),
            row.number("/status/currentNumberScheduled").into(),
            row.number("/status/numberReady").into(),
            row.number("/status/updatedNumberScheduled").into(),
            row.number("/status/numberAvailable").into(),
            row.labels("/spec/template/spec/nodeSelector").into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector").into(),
        ]
    },
);

pub(super) static CONTROLLER_REVISIONS: Layout = Layout::new(
    &[Column::NAME, Column::text("Controller"), Column::text("Revision"), Column::AGE],
    |row| {
        let owners = row.list("/metadata/ownerReferences");
        let owner = owners.iter().find(|it| it.get("controller") == Some(&Value::Bool(true)));
        let owner = owner.map_or_else(
            || NONE.into(),
            |it| {
                let kind = text(it, "/kind").to_lowercase();
                let name = text(it, "/name");
                match text(it, "/apiVersion").split_once('/') {
                    Some((group, _)) => format!("{kind}.{group}/{name}"),
                    None => format!("{kind}/{name}"),
                }
            },
        );
        vec![row.name(), owner.into(), row.number("/revision").into(), row.age()]
    },
);

pub(super) static POD_TEMPLATES: Layout = Layout::new(
    &[Column::NAME, Column::text("Containers"), Column::text("Images"), Column::text("Pod Labels")],
    |row| {
        let [names, images] = row.containers("/template/spec/containers");
        vec![row.name(), names, images, row.labels("/template/metadata/labels").into()]
    },
);

pub(super) static JOBS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Status"),
        Column::text("Completions"),
        Column::text("Duration"),
        Column::AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers(CONTAINERS);
        vec![
            row.name(),
            job_status(row).into(),
            completions(row).into(),
            duration(row).into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector").into(),
        ]
    },
);

fn job_status(row: &TableRow<'_>) -> &'static str {
    let is = |kind: &str| {
        let mut conditions = row.list("/status/conditions").iter();
        conditions.any(|it| text(it, "/type") == kind && text(it, "/status") == "True")
    };
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.get("/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else {
        let others = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        others.into_iter().find(|it| is(it)).unwrap_or("Running")
    }
}

fn completions(row: &TableRow<'_>) -> String {
    let done = row.number("/status/succeeded");
    match (row.get("/spec/completions"), row.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, several @ 2..) => format!("{done}/1 of {several}"),
        (None, _) => format!("{done}/1"),
    }
}

/// Formats the duration of a Job; empty before its start.
fn duration(row: &TableRow<'_>) -> String {
    let Ok(start) = row.text("/status/startTime").parse() else { return String::new() };
    let end = row.text("/status/completionTime").parse().unwrap_or(row.now);
    age::human(end.duration_since(start).as_secs())
}

pub(super) static CRON_JOBS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Schedule"),
        Column::text("Timezone"),
        Column::flag("Suspend"),
        Column::number("Active"),
        Column::text("Last Schedule"),
        Column::AGE,
        Column::wide("Containers"),
        Column::wide("Images"),
        Column::wide("Selector"),
    ],
    |row| {
        let [names, images] = row.containers("/spec/jobTemplate/spec/template/spec/containers");
        let suspended = match row.get("/spec/suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        vec![
            row.name(),
            row.text("/spec/schedule").into(),
            row.text_or("/spec/timeZone", NONE).into(),
            suspended.into(),
            row.count("/status/active").into(),
            row.since_some("/status/lastScheduleTime").unwrap_or_else(|| NONE.into()).into(),
            row.age(),
            names,
            images,
            row.selector("/spec/jobTemplate/spec/selector").into(),
        ]
    },
);
