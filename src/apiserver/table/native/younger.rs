//! Columns of newer kinds that show single fields: admission policies, API priorities, addresses, devices.

use serde_json::Value;

use super::{Column, Layout, row::TableRow};

/// Formats a reference to parameters as `KIND/NAME` or `GROUP/VERSION/KIND`.
fn joined(row: &TableRow<'_>, parts: [&str; 2], missing: &str) -> Value {
    let texts: Vec<&str> =
        parts.iter().map(|it| row.text(it)).filter(|it| !it.is_empty()).collect();
    if texts.is_empty() { missing.into() } else { texts.join("/").into() }
}

fn params(row: &TableRow<'_>) -> Value {
    joined(row, ["/spec/paramKind/apiVersion", "/spec/paramKind/kind"], "<unset>")
}

pub(super) static AGED: Layout =
    Layout::new(&[Column::NAME, Column::AGE], |row| vec![row.name(), row.age()]);

pub(super) static VALIDATING_POLICIES: Layout = Layout::new(
    &[Column::NAME, Column::number("Validations"), Column::text("ParamKind"), Column::AGE],
    |row| vec![row.name(), row.count("/spec/validations").into(), params(row), row.age()],
);

pub(super) static MUTATING_POLICIES: Layout = Layout::new(
    &[Column::NAME, Column::number("Mutations"), Column::text("ParamKind"), Column::AGE],
    |row| vec![row.name(), row.count("/spec/mutations").into(), params(row), row.age()],
);

pub(super) static POLICY_BINDINGS: Layout = Layout::new(
    &[Column::NAME, Column::text("PolicyName"), Column::text("ParamRef"), Column::AGE],
    |row| {
        let params = joined(row, ["/spec/paramRef/namespace", "/spec/paramRef/name"], "<unset>");
        vec![row.name(), row.text("/spec/policyName").into(), params, row.age()]
    },
);

pub(super) static FLOW_SCHEMAS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("PriorityLevel"),
        Column::text("MatchingPrecedence"),
        Column::text("DistinguisherMethod"),
        Column::AGE,
        Column::text("MissingPL"),
    ],
    |row| {
        let mut conditions = row.list("/status/conditions").iter();
        let dangling = conditions.find(|it| it.get("type") == Some(&"Dangling".into()));
        let status = dangling.and_then(|it| it.get("status")).and_then(Value::as_str);
        vec![
            row.name(),
            row.text("/spec/priorityLevelConfiguration/name").into(),
            row.number("/spec/matchingPrecedence").to_string().into(),
            row.text_or("/spec/distinguisherMethod/type", "<none>").into(),
            row.age(),
            status.unwrap_or("?").into(),
        ]
    },
);

pub(super) static PRIORITY_LEVELS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Type"),
        Column::text("NominalConcurrencyShares"),
        Column::text("Queues"),
        Column::text("HandSize"),
        Column::text("QueueLengthLimit"),
        Column::AGE,
    ],
    |row| {
        let number = |pointer: &str| -> Value {
            row.get(pointer).map_or_else(|| "<none>".into(), |it| it.to_string().into())
        };
        let queue = |name: &str| number(&format!("/spec/limited/limitResponse/queuing/{name}"));
        vec![
            row.name(),
            row.text("/spec/type").into(),
            number("/spec/limited/nominalConcurrencyShares"),
            queue("queues"),
            queue("handSize"),
            queue("queueLengthLimit"),
            row.age(),
        ]
    },
);

pub(super) static ADDRESSES: Layout =
    Layout::new(&[Column::NAME, Column::text("ParentRef")], |row| {
        let part = |name: &str| row.text_or(&format!("/spec/parentRef/{name}"), "");
        let parts = ["resource", "namespace", "name"].map(part);
        vec![row.name(), parts.join("/").into()]
    });

pub(super) static SERVICE_NETWORKS: Layout =
    Layout::new(&[Column::NAME, Column::text("CIDRs"), Column::AGE], |row| {
        let cidrs = row.list("/spec/cidrs").iter().filter_map(Value::as_str);
        let cidrs: Vec<&str> = cidrs.collect();
        vec![row.name(), cidrs.join(",").into(), row.age()]
    });

pub(super) static CLAIMS_OF_DEVICES: Layout =
    Layout::new(&[Column::NAME, Column::text("State"), Column::AGE], |row| {
        let mut states = Vec::new();
        if row.get("/metadata/deletionTimestamp").is_some() {
            states.push("deleted");
        }
        if row.get("/status/allocation").is_some() {
            states.push("allocated");
        }
        if row.count("/status/reservedFor") > 0 {
            states.push("reserved");
        }
        if states.is_empty() {
            states.push("pending");
        }
        vec![row.name(), states.join(",").into(), row.age()]
    });

pub(super) static SLICES_OF_DEVICES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Node"),
        Column::text("Driver"),
        Column::text("Pool"),
        Column::AGE,
    ],
    |row| {
        vec![
            row.name(),
            row.text("/spec/nodeName").into(),
            row.text("/spec/driver").into(),
            row.text("/spec/pool/name").into(),
            row.age(),
        ]
    },
);

pub(super) static VOLUME_ATTRIBUTES: Layout =
    Layout::new(&[Column::NAME, Column::text("DriverName"), Column::AGE], |row| {
        vec![row.name(), row.text("/driverName").into(), row.age()]
    });
