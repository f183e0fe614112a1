//! The one node: it always exists and is always ready.

use serde_json::{Value, json};

use super::{NODE, NODE_IP};
use crate::controllers::{
    Controller, NO_STEP, ReconcileResult,
    cache::{Cache, ObjectKey, Update},
    conditions,
    time::DecisionTime,
    write::{Write, set},
};

pub(crate) const NODES: &str = "nodes";

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[NODES], affected, reconcile, step: NO_STEP, start: &[(NODES, NODE)] };

fn affected(_world: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if update.key.resource == NODES && update.key.name == NODE {
        found.push(update.key.clone());
    }
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    if cache.def(NODES).is_none() {
        return ReconcileResult::none();
    }
    match cache.body(key) {
        None => vec![Write::Create { resource: NODES, body: node(moment) }].into(),
        // API clients cannot set a status at creation: a node that a client has created gets it here.
        Some(body) if conditions::find(body, "Ready").is_none() => {
            vec![Write::change(key, body, vec![set(["status"], status(moment))])].into()
        }
        Some(_) => ReconcileResult::none(),
    }
}

fn node(moment: &DecisionTime) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {},
        "status": status(moment),
    })
}

fn status(moment: &DecisionTime) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastHeartbeatTime": moment.stamp,
            "lastTransitionTime": moment.stamp,
            "reason": reason,
            "message": message,
        })
    };
    let enough =
        json!({ "cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti" });
    json!({
        "addresses": [
            { "type": "InternalIP", "address": NODE_IP },
            { "type": "Hostname", "address": NODE },
        ],
        "allocatable": enough,
        "capacity": enough,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kopf pretends to be a kubelet: nothing is executed"),
        ],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "kopf://none",
            "kernelVersion": "none",
            "kubeProxyVersion": "none",
            "kubeletVersion": "v1.36.3-kopf",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "kopf",
            "systemUUID": "",
        },
    })
}
