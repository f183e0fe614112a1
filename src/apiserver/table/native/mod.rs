//! Printer columns of the native kinds.
//!
//! Names, types and priorities are those of the real server; `tests.rs` compares them and the cells with its responses. Kinds
//! without special columns have a name and a creation time.

mod cluster;
mod network;
mod pods;
mod policy;
mod row;
mod storage;
mod workloads;
mod younger;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::row::TableRow;
use crate::object;

/// One printer column of a native kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    /// Shown by `-o wide` only.
    wide: bool,
}

/// The columns of one kind, and the functions that fill them.
#[derive(Debug)]
pub(super) struct Layout {
    columns: &'static [Column],
    /// Returns one cell for each column.
    cells: fn(&TableRow<'_>) -> Vec<Value>,
    /// Returns the conditions of a row.
    conditions: fn(&Value) -> Value,
}

impl Column {
    /// The first column of nearly all kinds.
    pub(super) const NAME: Self =
        Self { name: "Name", kind: "string", format: "name", wide: false };
    const AGE: Self = Self::text("Age");
    const CREATED: Self = Self { kind: "date", ..Self::text("Created At") };

    const fn text(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", wide: false }
    }

    const fn number(name: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name) }
    }

    const fn flag(name: &'static str) -> Self {
        Self { kind: "boolean", ..Self::text(name) }
    }

    const fn wide(name: &'static str) -> Self {
        Self { wide: true, ..Self::text(name) }
    }

    /// Returns the entry in `columnDefinitions`.
    pub(super) fn definition(&self) -> Value {
        let description = match self.name {
            "Name" => "The name of the object, unique within its namespace.",
            "Age" => "How long ago the object was created.",
            "Created At" => "When the object was created.",
            name => name,
        };
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": description,
            "priority": i32::from(self.wide),
        })
    }
}

impl Layout {
    const fn new(columns: &'static [Column], cells: fn(&TableRow<'_>) -> Vec<Value>) -> Self {
        Self { columns, cells, conditions: |_| Value::Null }
    }

    /// Returns whether the kind has only a name and a creation time.
    pub(super) fn is_plain(&self) -> bool {
        std::ptr::eq(self, &raw const PLAIN)
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = Value> {
        self.columns.iter().map(Column::definition)
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.cells)(&TableRow { object, now })
    }

    /// Returns the conditions of the row of an object; null if there are none.
    pub(super) fn conditions(&self, object: &Value) -> Value {
        (self.conditions)(object)
    }
}

static PLAIN: Layout = Layout::new(&[Column::NAME, Column::CREATED], |row| {
    vec![row.name(), row.text("/metadata/creationTimestamp").into()]
});

/// The columns of the scale of any object.
pub(super) static SCALES: Layout = Layout::new(
    &[Column::text("Name"), Column::number("Desired"), Column::number("Available"), Column::AGE],
    |row| {
        let count = |pointer: &str| Value::from(object::number(row.object, pointer).unwrap_or(0));
        vec![row.name(), count("/spec/replicas"), count("/status/replicas"), row.age()]
    },
);

/// Returns the columns of a native kind. All versions of a kind have the same ones.
pub(super) fn layout(group: &str, plural: &str) -> &'static Layout {
    match (group, plural) {
        ("", "pods") => &pods::PODS,
        ("", "podtemplates") => &workloads::POD_TEMPLATES,
        ("", "replicationcontrollers") => &workloads::REPLICATION_CONTROLLERS,
        ("apps", "deployments") => &workloads::DEPLOYMENTS,
        ("apps", "replicasets") => &workloads::REPLICA_SETS,
        ("apps", "statefulsets") => &workloads::STATEFUL_SETS,
        ("apps", "daemonsets") => &workloads::DAEMON_SETS,
        ("apps", "controllerrevisions") => &workloads::CONTROLLER_REVISIONS,
        ("batch", "jobs") => &workloads::JOBS,
        ("batch", "cronjobs") => &workloads::CRON_JOBS,
        ("autoscaling", "horizontalpodautoscalers") => &policy::AUTOSCALERS,
        ("policy", "poddisruptionbudgets") => &policy::DISRUPTION_BUDGETS,
        ("", "resourcequotas") => &policy::QUOTAS,
        ("scheduling.k8s.io", "priorityclasses") => &policy::PRIORITY_CLASSES,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            &policy::ROLE_BINDINGS
        }
        ("", "services") => &network::SERVICES,
        ("", "endpoints") => &network::ENDPOINTS,
        ("discovery.k8s.io", "endpointslices") => &network::ENDPOINT_SLICES,
        ("networking.k8s.io" | "extensions", "ingresses") => &network::INGRESSES,
        ("networking.k8s.io", "ingressclasses") => &network::INGRESS_CLASSES,
        ("networking.k8s.io", "networkpolicies") => &network::NETWORK_POLICIES,
        ("", "configmaps") => &cluster::CONFIG_MAPS,
        ("", "secrets") => &cluster::SECRETS,
        ("", "serviceaccounts") => &cluster::SERVICE_ACCOUNTS,
        ("", "namespaces") => &cluster::NAMESPACES,
        ("", "nodes") => &cluster::NODES,
        ("" | "events.k8s.io", "events") => &cluster::EVENTS,
        ("coordination.k8s.io", "leases") => &cluster::LEASES,
        ("node.k8s.io", "runtimeclasses") => &cluster::RUNTIME_CLASSES,
        ("certificates.k8s.io", "certificatesigningrequests") => &cluster::SIGNING_REQUESTS,
        ("apiregistration.k8s.io", "apiservices") => &cluster::API_SERVICES,
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => &cluster::WEBHOOKS,
        ("", "persistentvolumes") => &storage::VOLUMES,
        ("", "persistentvolumeclaims") => &storage::CLAIMS,
        ("storage.k8s.io", "storageclasses") => &storage::CLASSES,
        ("storage.k8s.io", "csidrivers") => &storage::DRIVERS,
        ("storage.k8s.io", "csinodes") => &storage::NODES,
        ("storage.k8s.io", "volumeattachments") => &storage::ATTACHMENTS,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => {
            &younger::MUTATING_POLICIES
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            &younger::VALIDATING_POLICIES
        }
        (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings",
        ) => &younger::POLICY_BINDINGS,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &younger::FLOW_SCHEMAS,
        ("flowcontrol.apiserver.k8s.io", _) => &younger::PRIORITY_LEVELS,
        ("networking.k8s.io", "ipaddresses") => &younger::ADDRESSES,
        ("networking.k8s.io", "servicecidrs") => &younger::SERVICE_NETWORKS,
        ("resource.k8s.io", "resourceclaims") => &younger::CLAIMS_OF_DEVICES,
        ("resource.k8s.io", "resourceslices") => &younger::SLICES_OF_DEVICES,
        ("resource.k8s.io", _) => &younger::AGED,
        ("storage.k8s.io", "volumeattributesclasses") => &younger::VOLUME_ATTRIBUTES,
        _ => &PLAIN,
    }
}
