//! The one node: always there, always ready.

use serde_json::{Value, json};

use super::{NODE, NODE_IP};
use crate::controllers::{
    Controller, NO_STEP, Plan, conditions,
    time::Moment,
    world::{Key, News, World},
    write::{Write, set},
};

pub(crate) const NODES: &str = "nodes";

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[NODES], concerns, decide, step: NO_STEP, start: &[(NODES, NODE)] };

fn concerns(_world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    if news.key.resource == NODES && news.key.name == NODE {
        found.push(news.key.clone());
    }
}

fn decide(world: &World, key: &Key, moment: &Moment) -> Plan {
    if world.def(NODES).is_none() {
        return Plan::none();
    }
    match world.body(key) {
        None => vec![Write::Create { resource: NODES, body: node(moment) }].into(),
        // An API client cannot set the status at creation: a node made by hand gets it here.
        Some(body) if conditions::find(body, "Ready").is_none() => {
            vec![Write::change(key, body, vec![set(["status"], status(moment))])].into()
        }
        Some(_) => Plan::none(),
    }
}

fn node(moment: &Moment) -> Value {
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

fn status(moment: &Moment) -> Value {
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
