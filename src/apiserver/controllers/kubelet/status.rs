//! The status of a Pod in each stage, as a kubelet reports it.

use serde_json::{Map, Value, json};

use super::{NODE_IP, pods, pods::condition};
use crate::{
    controllers::{
        cache::ObjectKey, conditions, time::DecisionTime, workloads::pods::ready as is_ready,
    },
    object::{self, number, text},
};

const KINDS: [(&str, &str); 2] =
    [("/spec/initContainers", "initContainerStatuses"), ("/spec/containers", "containerStatuses")];

fn containers<'a>(pod: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    containers(pod, "/status/containerStatuses")
}

/// Returns whether containers wait for their start.
pub(super) fn is_waiting(pod: &Value) -> bool {
    statuses(pod).any(|it| it.pointer("/state/waiting").is_some())
}

/// Returns the highest restart count of the containers.
pub(super) fn restarts(pod: &Value) -> i64 {
    statuses(pod).filter_map(|it| number(it, "/restartCount")).max().unwrap_or(0)
}

/// Sets a condition; the time of the transition is kept if its status is the same.
fn put(
    status: &mut Value,
    kind: &str,
    value: &str,
    why: Option<(&str, &str)>,
    moment: &DecisionTime,
) {
    let mut new = condition(kind, value, why, &moment.stamp);
    let Some(fields) = status.as_object_mut() else { return };
    let list = fields.entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let Some(old) = list.iter_mut().find(|it| text(it, "/type") == kind) else {
        list.push(new);
        return;
    };
    if text(old, "/status") == value {
        object::put(&mut new, "lastTransitionTime", old.get("lastTransitionTime").cloned());
    }
    *old = new;
}

fn start(pod: &Value) -> Value {
    let status = pod.get("status").filter(|it| it.is_object());
    status.cloned().unwrap_or_else(|| json!({}))
}

/// Returns the status of a Pod that cannot be scheduled.
pub(super) fn unschedulable(pod: &Value, message: &str, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    object::put(&mut status, "phase", Some("Pending".into()));
    put(&mut status, "PodScheduled", "False", Some(("Unschedulable", message)), moment);
    status
}

/// Returns the status of a scheduled Pod.
pub(super) fn scheduled(pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    object::put(&mut status, "phase", Some("Pending".into()));
    put(&mut status, "PodScheduled", "True", None, moment);
    status
}

fn names(pod: &Value) -> String {
    let names = containers(pod, "/spec/containers").map(|it| text(it, "/name"));
    names.collect::<Vec<_>>().join(" ")
}

fn not_ready(status: &mut Value, pod: &Value, reason: &str, moment: &DecisionTime) {
    let message = match reason {
        "ContainersNotReady" => format!("containers with unready status: [{}]", names(pod)),
        _ => String::new(),
    };
    put(status, "Ready", "False", Some((reason, &message)), moment);
    put(status, "ContainersReady", "False", Some((reason, &message)), moment);
}

/// Returns one container status.
fn container(spec: &Value, (state, last): (Value, Value), ready: bool, restarts: i64) -> Value {
    let started = state.get("running").is_some();
    json!({
        "name": text(spec, "/name"),
        "image": text(spec, "/image"),
        "imageID": "",
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    })
}

/// Rebuilds all container statuses, each from its spec and its previous status.
fn each(status: &mut Value, pod: &Value, make: impl Fn(&Value, &Value) -> Value) {
    let old =
        |name: &str| statuses(pod).find(|it| text(it, "/name") == name).unwrap_or(&Value::Null);
    let all = containers(pod, "/spec/containers");
    let new: Vec<Value> = all.map(|it| make(it, old(text(it, "/name")))).collect();
    object::put(status, "containerStatuses", Some(new.into()));
}

/// Returns the status while containers are being created.
pub(super) fn creating(pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    object::put(&mut status, "phase", Some("Pending".into()));
    put(&mut status, "Initialized", "True", None, moment);
    not_ready(&mut status, pod, "ContainersNotReady", moment);
    put(&mut status, "PodScheduled", "True", None, moment);
    object::put(&mut status, "hostIP", Some(NODE_IP.into()));
    object::put(&mut status, "startTime", Some(moment.stamp.clone().into()));
    for (pointer, field) in KINDS {
        let waiting = |spec: &Value| {
            container(
                spec,
                (json!({ "waiting": { "reason": "ContainerCreating" } }), json!({})),
                false,
                0,
            )
        };
        let all: Vec<Value> = containers(pod, pointer).map(waiting).collect();
        object::put(&mut status, field, Some(all).filter(|it| !it.is_empty()).map(Value::from));
    }
    status
}

/// Returns the status with running containers.
pub(super) fn running(_key: &ObjectKey, pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    object::put(&mut status, "phase", Some("Running".into()));
    let ip = pods::address(pod);
    object::put(&mut status, "podIP", Some(ip.clone().into()));
    object::put(&mut status, "podIPs", Some(json!([{ "ip": ip }])));
    each(&mut status, pod, |spec, _| {
        let state = json!({ "running": { "startedAt": moment.stamp } });
        with_id(container(spec, (state, json!({})), false, 0), pod, 0)
    });
    // Init containers have succeeded by now.
    let done = |spec: &Value| {
        let state = json!({ "terminated": terminated(&moment.stamp, &moment.stamp, 0) });
        with_id(container(spec, (state, json!({})), true, 0), pod, 0)
    };
    let init: Vec<Value> = containers(pod, "/spec/initContainers").map(done).collect();
    if !init.is_empty() {
        object::put(&mut status, "initContainerStatuses", Some(init.into()));
    }
    status
}

/// Adds the id of a container. No runtime has a container with it.
fn with_id(mut status: Value, pod: &Value, restarts: i64) -> Value {
    let name = text(&status, "/name");
    let id = format!("kopf://{}/{name}/{restarts}", object::meta(pod, "uid"));
    object::put(&mut status, "containerID", Some(id.into()));
    status
}

fn terminated(started: &str, finished: &str, code: i64) -> Value {
    json!({
        "exitCode": code,
        "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": started,
        "finishedAt": finished,
    })
}

/// Returns the status with ready containers.
pub(super) fn ready(pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    each(&mut status, pod, |_, old| {
        let mut entry = old.clone();
        object::put(&mut entry, "ready", Some(true.into()));
        entry
    });
    let gates = containers(pod, "/spec/readinessGates").map(|it| text(it, "/conditionType"));
    let unmet: Vec<&str> = gates.filter(|it| !conditions::holds(pod, it)).collect();
    if unmet.is_empty() {
        put(&mut status, "Ready", "True", None, moment);
    } else {
        let message =
            format!("the status of pod readiness gate {:?} is not \"True\"", unmet.join(", "));
        put(&mut status, "Ready", "False", Some(("ReadinessGatesNotReady", &message)), moment);
    }
    put(&mut status, "ContainersReady", "True", None, moment);
    status
}

/// Returns the status after containers have exited by themselves: the Pod ends, or they wait for their restart.
pub(super) fn ended(pod: &Value, moment: &DecisionTime) -> Value {
    let code = pods::exit_code(pod);
    let ends = match text(pod, "/spec/restartPolicy") {
        "Never" => true,
        "OnFailure" => code == 0,
        _ => false,
    };
    if ends {
        return finished(pod, code, moment);
    }
    let mut status = start(pod);
    each(&mut status, pod, |spec, old| {
        let restarts = number(old, "/restartCount").unwrap_or(0);
        let started = text(old, "/state/running/startedAt");
        let last = json!({ "terminated": terminated(started, &moment.stamp, code) });
        let name = text(spec, "/name");
        let message = format!(
            "back-off restarting failed container={name} pod={}_{}({})",
            object::meta(pod, "name"),
            object::meta(pod, "namespace"),
            object::meta(pod, "uid")
        );
        let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } });
        with_id(container(spec, (waiting, last), false, restarts), pod, restarts)
    });
    not_ready(&mut status, pod, "ContainersNotReady", moment);
    status
}

fn finished(pod: &Value, code: i64, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    let (phase, reason) =
        if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    object::put(&mut status, "phase", Some(phase.into()));
    put(&mut status, "Initialized", "True", Some((reason, "")).filter(|_| code == 0), moment);
    not_ready(&mut status, pod, reason, moment);
    stop(&mut status, pod, code, moment);
    status
}

fn stop(status: &mut Value, pod: &Value, code: i64, moment: &DecisionTime) {
    each(status, pod, |spec, old| {
        let restarts = number(old, "/restartCount").unwrap_or(0);
        let last = old.get("lastState").cloned().unwrap_or_else(|| json!({}));
        let started = text(old, "/state/running/startedAt");
        let started = if started.is_empty() { moment.stamp.as_str() } else { started };
        let state = json!({ "terminated": terminated(started, &moment.stamp, code) });
        with_id(container(spec, (state, last), false, restarts), pod, restarts)
    });
}

/// Returns the status after containers have been restarted.
pub(super) fn restarted(pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    each(&mut status, pod, |spec, old| {
        let restarts = number(old, "/restartCount").unwrap_or(0).saturating_add(1);
        let state = json!({ "running": { "startedAt": moment.stamp } });
        let last = old.get("lastState").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        with_id(container(spec, (state, last), false, restarts), pod, restarts)
    });
    status
}

/// Returns the status after containers have been stopped by the deletion of the Pod.
pub(super) fn stopped(pod: &Value, moment: &DecisionTime) -> Value {
    let mut status = start(pod);
    if is_ready(pod) || text(pod, "/status/phase") == "Running" {
        not_ready(&mut status, pod, "ContainersNotReady", moment);
    }
    stop(&mut status, pod, 0, moment);
    status
}
