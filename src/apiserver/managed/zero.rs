//! What the real server shows of native objects that nobody has filled in.
//!
//! Its native kinds have parts that are always there, be they empty. Nobody who fills them in becomes the manager of these
//! parts themselves, and a field that is set to what it is anyway is not managed at all.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

static ZEROS: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(zeros);
static PLAIN: LazyLock<Value> = LazyLock::new(|| json!({ "metadata": {} }));

/// The groups of native kinds that do not end in `.k8s.io`.
const SHORT_GROUPS: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];
const LONG_GROUPS: [&str; 16] = [
    "admissionregistration",
    "apiextensions",
    "apiregistration",
    "authentication",
    "authorization",
    "certificates",
    "coordination",
    "discovery",
    "events",
    "flowcontrol.apiserver",
    "internal.apiserver",
    "networking",
    "node",
    "rbac.authorization",
    "scheduling",
    "storage",
];

/// The parts that an object of this kind always has. Nothing for kinds that are not native.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static Value> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let long = group.strip_suffix(".k8s.io");
    if !SHORT_GROUPS.contains(&group) && !long.is_some_and(|it| LONG_GROUPS.contains(&it)) {
        return None;
    }
    // Events are native twice, and differ.
    let name = if kind == "Event" && group.is_empty() { "core Event" } else { kind };
    Some(ZEROS.get(name).unwrap_or(&PLAIN))
}

fn zeros() -> BTreeMap<&'static str, Value> {
    let template =
        json!({ "metadata": { "creationTimestamp": null }, "spec": { "containers": null } });
    let names = json!({ "plural": "", "kind": "" });
    let mut zeros = BTreeMap::from([
        ("Namespace", json!({ "spec": {}, "status": {} })),
        (
            "Node",
            json!({ "spec": {}, "status": {
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 0 } },
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                "operatingSystem": "", "architecture": "",
            },
        } }),
        ),
        ("Pod", json!({ "spec": { "containers": null }, "status": {} })),
        ("PodTemplate", json!({ "template": template })),
        ("ReplicationController", json!({ "spec": {}, "status": { "replicas": 0 } })),
        ("Service", json!({ "spec": {}, "status": { "loadBalancer": {} } })),
        ("PersistentVolume", json!({ "spec": {}, "status": {} })),
        ("PersistentVolumeClaim", json!({ "spec": { "resources": {} }, "status": {} })),
        ("ResourceQuota", json!({ "spec": {}, "status": {} })),
        ("LimitRange", json!({ "spec": { "limits": null } })),
        ("Binding", json!({ "target": {} })),
        (
            "core Event",
            json!({
                "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
                "eventTime": null, "reportingComponent": "", "reportingInstance": "",
            }),
        ),
        (
            "Event",
            json!({
                "eventTime": null, "regarding": {}, "deprecatedSource": {},
                "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
            }),
        ),
        (
            "ReplicaSet",
            json!({
                "spec": { "selector": null, "template": template }, "status": { "replicas": 0 },
            }),
        ),
        (
            "Deployment",
            json!({
                "spec": { "selector": null, "template": template, "strategy": {} }, "status": {},
            }),
        ),
        (
            "StatefulSet",
            json!({
                "spec": { "selector": null, "template": template, "serviceName": "", "updateStrategy": {} },
                "status": { "replicas": 0 },
            }),
        ),
        (
            "DaemonSet",
            json!({
                "spec": { "selector": null, "template": template, "updateStrategy": {} },
                "status": {
                    "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
                    "numberReady": 0,
                },
            }),
        ),
        ("ControllerRevision", json!({ "revision": 0 })),
        ("Job", json!({ "spec": { "template": template }, "status": {} })),
        (
            "CronJob",
            json!({
                "spec": {
                    "schedule": "",
                    "jobTemplate": {
                        "metadata": { "creationTimestamp": null }, "spec": { "template": template },
                    },
                },
                "status": {},
            }),
        ),
    ]);
    zeros.extend([
        ("HorizontalPodAutoscaler", json!({
            "spec": { "scaleTargetRef": { "kind": "", "name": "" }, "maxReplicas": 0 },
            "status": { "currentReplicas": 0, "desiredReplicas": 0 },
        })),
        ("Ingress", json!({ "spec": {}, "status": { "loadBalancer": {} } })),
        ("IngressClass", json!({ "spec": {} })),
        ("NetworkPolicy", json!({ "spec": { "podSelector": {} } })),
        ("PodDisruptionBudget", json!({ "spec": {}, "status": {
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        } })),
        ("Role", json!({ "rules": null })),
        ("ClusterRole", json!({ "rules": null })),
        ("RoleBinding", json!({ "roleRef": { "apiGroup": "", "kind": "", "name": "" } })),
        ("ClusterRoleBinding", json!({ "roleRef": { "apiGroup": "", "kind": "", "name": "" } })),
        ("Lease", json!({ "spec": {} })),
        ("CustomResourceDefinition", json!({
            "spec": { "group": "", "names": names, "scope": "", "versions": null },
            "status": { "conditions": null, "acceptedNames": names, "storedVersions": null },
        })),
        ("APIService", json!({
            "spec": { "groupPriorityMinimum": 0, "versionPriority": 0 }, "status": {},
        })),
        ("StorageClass", json!({ "provisioner": "" })),
        ("CSIDriver", json!({ "spec": {} })),
        ("CSINode", json!({ "spec": { "drivers": null } })),
        ("VolumeAttachment", json!({
            "spec": { "attacher": "", "source": {}, "nodeName": "" }, "status": { "attached": false },
        })),
        ("PriorityClass", json!({ "value": 0 })),
        ("EndpointSlice", json!({ "addressType": "", "endpoints": null, "ports": null })),
        ("RuntimeClass", json!({ "handler": "" })),
        ("CertificateSigningRequest", json!({ "spec": { "request": null }, "status": {} })),
        ("FlowSchema", json!({ "spec": {}, "status": {} })),
        ("PriorityLevelConfiguration", json!({ "spec": {}, "status": {} })),
    ]);
    for zero in zeros.values_mut() {
        if let Some(fields) = zero.as_object_mut() {
            fields.insert("metadata".into(), json!({}));
        }
    }
    zeros
}
