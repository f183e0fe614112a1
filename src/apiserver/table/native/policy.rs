//! Columns of access control, quotas and autoscalers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Column, Layout,
    row::{NONE, TableRow, first_of, join, plain},
};
use crate::object::text;
use crate::sorted::CollectSorted as _;

/// Limit of metrics in a cell; further ones are counted.
const METRICS_SHOWN: usize = 2;

const UNKNOWN: &str = "<unknown>";

pub(super) static ROLE_BINDINGS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Role"),
        Column::AGE,
        Column::wide("Users"),
        Column::wide("Groups"),
        Column::wide("ServiceAccounts"),
    ],
    |row| {
        let role = format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name"));
        let subjects = |kind: &str| -> Value {
            let subjects = row.list("/subjects").iter().filter(|it| text(it, "/kind") == kind);
            let names = subjects.map(|it| match (text(it, "/namespace"), text(it, "/name")) {
                ("", name) => name.to_owned(),
                (namespace, name) => format!("{namespace}/{name}"),
            });
            join(names, ", ").into()
        };
        vec![
            row.name(),
            role.into(),
            row.age(),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
);

pub(super) static DISRUPTION_BUDGETS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Min Available"),
        Column::text("Max Unavailable"),
        Column::number("Allowed Disruptions"),
        Column::AGE,
    ],
    |row| {
        let limit = |pointer: &str| row.get(pointer).map_or_else(|| "N/A".into(), plain);
        vec![
            row.name(),
            limit("/spec/minAvailable").into(),
            limit("/spec/maxUnavailable").into(),
            row.number("/status/disruptionsAllowed").into(),
            row.age(),
        ]
    },
);

pub(super) static PRIORITY_CLASSES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::number("Value"),
        Column::flag("Global-Default"),
        Column::AGE,
        Column::text("PreemptionPolicy"),
    ],
    |row| {
        let policy = row.text("/preemptionPolicy").into();
        let (value, default) = (row.number("/value").into(), row.flag("/globalDefault").into());
        vec![row.name(), value, default, row.age(), policy]
    },
);

pub(super) static QUOTAS: Layout = Layout::new(
    &[Column::NAME, Column::text("Request"), Column::text("Limit"), Column::AGE],
    |row| {
        let hard = row.get("/status/hard").and_then(Value::as_object).into_iter().flatten();
        let hard: BTreeMap<&String, &Value> = hard.collect_map();
        let used = row.get("/status/used");
        let show = |limits: bool| {
            let chosen = hard.iter().filter(|(name, _)| name.starts_with("limits.") == limits);
            let shown = chosen.map(|(name, hard)| {
                let used = used.and_then(|it| it.get(name.as_str())).map(plain);
                format!("{name}: {}/{}", used.unwrap_or_else(|| "0".into()), plain(hard))
            });
            Value::from(join(shown, ", "))
        };
        vec![row.name(), show(false), show(true), row.age()]
    },
);

pub(super) static AUTOSCALERS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Reference"),
        Column::text("Targets"),
        Column::text("MinPods"),
        Column::text("MaxPods"),
        Column::text("Replicas"),
        Column::AGE,
    ],
    |row| {
        let target = |field: &str| row.text(&format!("/spec/scaleTargetRef/{field}"));
        let least = row.get("/spec/minReplicas").map_or_else(|| "<unset>".into(), plain);
        vec![
            row.name(),
            format!("{}/{}", target("kind"), target("name")).into(),
            metrics(row).into(),
            least.into(),
            row.number("/spec/maxReplicas").into(),
            row.number("/status/currentReplicas").into(),
            row.age(),
        ]
    },
);

fn metrics(row: &TableRow<'_>) -> String {
    let present = row.list("/status/currentMetrics");
    let wanted = row.list("/spec/metrics").iter().enumerate();
    let mut all: Vec<String> =
        wanted.map(|(index, wanted)| metric(wanted, present.get(index))).collect();
    // The first version has only this metric.
    if let Some(wanted) = row.get("/spec/targetCPUUtilizationPercentage") {
        let present = row.get("/status/currentCPUUtilizationPercentage");
        let present = present.map_or_else(|| UNKNOWN.into(), |it| format!("{it}%"));
        all.push(format!("cpu: {present}/{wanted}%"));
    }
    if all.is_empty() { NONE.into() } else { first_of(&all, METRICS_SHOWN, ", ") }
}

/// Formats a metric, such as `55%/70%`.
fn metric(wanted: &Value, present: Option<&Value>) -> String {
    let source = match text(wanted, "/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let of_resource = source.to_lowercase().ends_with("resource");
    let name = match text(wanted, &format!("/{source}/name")) {
        name if of_resource => format!("{name}: "),
        _ => String::new(),
    };
    let wanted = |field: &str| wanted.pointer(&format!("/{source}/target/{field}"));
    let present = |field: &str| present?.pointer(&format!("/{source}/current/{field}"));
    let show = |it: Option<&Value>| it.map_or_else(|| UNKNOWN.into(), plain);
    if let Some(average) = wanted("averageValue") {
        let note = if of_resource || source == "pods" { "" } else { " (avg)" };
        return format!("{name}{}/{}{note}", show(present("averageValue")), plain(average));
    }
    if of_resource {
        let percent = |it: Option<&Value>, other: &str| {
            it.map_or_else(|| other.into(), |it| format!("{}%", plain(it)))
        };
        let present = percent(present("averageUtilization"), UNKNOWN);
        return format!("{name}{present}/{}", percent(wanted("averageUtilization"), "<auto>"));
    }
    format!("{}/{}", show(present("value")), show(wanted("value")))
}
