//! Columns of configuration, nodes, events and other kinds of the cluster itself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Column, Layout,
    row::{NONE, TableRow, join, number, or_none},
};
use crate::{object::text, table::age};

/// Labels with this prefix name a role of a node.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
/// The value of this label is a role of a node.
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) static CONFIG_MAPS: Layout =
    Layout::new(&[Column::NAME, Column::text("Data"), Column::AGE], |row| {
        vec![row.name(), (row.count("/data") + row.count("/binaryData")).into(), row.age()]
    });

pub(super) static SECRETS: Layout =
    Layout::new(&[Column::NAME, Column::text("Type"), Column::text("Data"), Column::AGE], |row| {
        vec![row.name(), row.text("/type").into(), row.count("/data").into(), row.age()]
    });

pub(super) static SERVICE_ACCOUNTS: Layout =
    Layout::new(&[Column::NAME, Column::AGE], |row| vec![row.name(), row.age()]);

pub(super) static NAMESPACES: Layout =
    Layout::new(&[Column::NAME, Column::text("Status"), Column::AGE], |row| {
        vec![row.name(), row.text("/status/phase").into(), row.age()]
    });

pub(super) static LEASES: Layout =
    Layout::new(&[Column::NAME, Column::text("Holder"), Column::AGE], |row| {
        vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()]
    });

pub(super) static RUNTIME_CLASSES: Layout =
    Layout::new(&[Column::NAME, Column::text("Handler"), Column::AGE], |row| {
        vec![row.name(), row.text("/handler").into(), row.age()]
    });

pub(super) static WEBHOOKS: Layout =
    Layout::new(&[Column::NAME, Column::number("Webhooks"), Column::AGE], |row| {
        vec![row.name(), row.count("/webhooks").into(), row.age()]
    });

pub(super) static NODES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Status"),
        Column::text("Roles"),
        Column::AGE,
        Column::text("Version"),
        Column::wide("Internal-IP"),
        Column::wide("External-IP"),
        Column::wide("OS-Image"),
        Column::wide("Kernel-Version"),
        Column::wide("Container-Runtime"),
    ],
    |row| {
        let address = |kind: &str| {
            let mut addresses = row.list("/status/addresses").iter();
            addresses.find(|it| text(it, "/type") == kind).map_or(NONE, |it| text(it, "/address"))
        };
        let known = |field: &str| row.text_or(&format!("/status/nodeInfo/{field}"), "<unknown>");
        vec![
            row.name(),
            node_status(row).into(),
            roles(row).into(),
            row.age(),
            row.text("/status/nodeInfo/kubeletVersion").into(),
            address("InternalIP").into(),
            address("ExternalIP").into(),
            known("osImage").into(),
            known("kernelVersion").into(),
            known("containerRuntimeVersion").into(),
        ]
    },
);

fn node_status(row: &TableRow<'_>) -> String {
    // If there are several, the last one counts.
    let mut conditions = row.list("/status/conditions").iter().rev();
    let ready = conditions.find(|it| text(it, "/type") == "Ready");
    let word = match ready.map(|it| text(it, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = if row.flag("/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{word}{closed}")
}

fn roles(row: &TableRow<'_>) -> String {
    let labels = row.get("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| match key.strip_prefix(ROLE_PREFIX) {
        Some(role) => Some(role.to_owned()),
        None if key == ROLE_LABEL => value.as_str().map(String::from),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|it| !it.is_empty()).collect();
    or_none(join(roles, ","))
}

pub(super) static EVENTS: Layout = Layout::new(
    &[
        Column::text("Last Seen"),
        Column::text("Type"),
        Column::text("Reason"),
        Column::text("Object"),
        Column::wide("Subobject"),
        Column::wide("Source"),
        Column::text("Message"),
        Column::wide("First Seen"),
        Column::wide("Count"),
        Column { format: "name", ..Column::wide("Name") },
    ],
    |row| {
        let names = if row.text("/apiVersion").starts_with("events.k8s.io/") { &NEW } else { &OLD };
        let (first, last, count) = seen(row, names);
        let about = |field: &str| row.text(&format!("{}/{field}", names.about));
        let kind = about("kind").to_lowercase();
        let target = match about("name") {
            "" => kind,
            name => format!("{kind}/{name}"),
        };
        let reporter =
            row.text_or(&format!("{}/component", names.source), row.text(names.reporter));
        let instance =
            row.text_or(&format!("{}/host", names.source), row.text("/reportingInstance"));
        let source = match instance {
            "" => reporter.into(),
            instance => format!("{reporter}, {instance}"),
        };
        vec![
            last.into(),
            row.text("/type").into(),
            row.text("/reason").into(),
            target.into(),
            about("fieldPath").into(),
            source.into(),
            row.text(names.message).trim().into(),
            first.into(),
            count.into(),
            row.name(),
        ]
    },
);

/// The fields of an event, as JSON pointers.
struct EventNames {
    about: &'static str,
    source: &'static str,
    reporter: &'static str,
    message: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

/// Fields in the core group.
const OLD: EventNames = EventNames {
    about: "/involvedObject",
    source: "/source",
    reporter: "/reportingComponent",
    message: "/message",
    first: "/firstTimestamp",
    last: "/lastTimestamp",
    count: "/count",
};

/// Fields in the group `events.k8s.io`.
const NEW: EventNames = EventNames {
    about: "/regarding",
    source: "/deprecatedSource",
    reporter: "/reportingController",
    message: "/note",
    first: "/deprecatedFirstTimestamp",
    last: "/deprecatedLastTimestamp",
    count: "/deprecatedCount",
};

/// Returns when an event was seen first and last, and how often.
fn seen(row: &TableRow<'_>, names: &EventNames) -> (String, String, i64) {
    let first = row.since_some(names.first).unwrap_or_else(|| row.since("/eventTime"));
    if let Some(series) = row.get("/series") {
        // The count of a series does not include the event before it.
        let count = number(series, "/count").saturating_add(1);
        return (first, row.since("/series/lastObservedTime"), count);
    }
    let last = row.since_some(names.last).unwrap_or_else(|| first.clone());
    (first, last, row.number(names.count).max(1))
}

pub(super) static SIGNING_REQUESTS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::AGE,
        Column::text("SignerName"),
        Column::text("Requestor"),
        Column::text("RequestedDuration"),
        Column::text("Condition"),
    ],
    |row| {
        let conditions = row.list("/status/conditions");
        let has = |kind: &str| conditions.iter().any(|it| text(it, "/type") == kind);
        let mut state = match (has("Denied"), has("Approved")) {
            (true, _) => "Denied",
            (false, true) => "Approved",
            (false, false) => "Pending",
        }
        .to_owned();
        if has("Failed") {
            state.push_str(",Failed");
        }
        if !row.text("/status/certificate").is_empty() {
            state.push_str(",Issued");
        }
        let seconds = row.get("/spec/expirationSeconds").and_then(Value::as_i64);
        let duration = seconds.map(age::human);
        vec![
            row.name(),
            row.age(),
            row.text_or("/spec/signerName", NONE).into(),
            row.text("/spec/username").into(),
            duration.unwrap_or_else(|| NONE.into()).into(),
            state.into(),
        ]
    },
);

pub(super) static API_SERVICES: Layout = Layout::new(
    &[Column::NAME, Column::text("Service"), Column::text("Available"), Column::AGE],
    |row| {
        let service = row.get("/spec/service").map_or_else(
            || "Local".into(),
            |it| format!("{}/{}", text(it, "/namespace"), text(it, "/name")),
        );
        let mut conditions = row.list("/status/conditions").iter();
        let available = conditions.find(|it| text(it, "/type") == "Available");
        let available = match available.map(|it| (text(it, "/status"), text(it, "/reason"))) {
            Some(("True", _)) => "True".into(),
            Some((status, reason)) => format!("{status} ({reason})"),
            None => "Unknown".into(),
        };
        vec![row.name(), service.into(), available.into(), row.age()]
    },
);
