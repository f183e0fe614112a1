//! The stages of Pods: scheduled, started, running, terminated, removed.
//!
//! The `PodStage` of a Pod is derived from the Pod alone; its duration comes from annotations.

use std::time::Duration;

use serde_json::{Value, json};

use super::{NODE, node::NODES, status};
use crate::{
    controllers::{
        Controller, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        kubelet::volumes,
        time::{DecisionTime, duration},
        workloads::pods::{self, PODS},
        write::{Write, set},
    },
    labels,
    object::{self, number, text},
};

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[PODS, NODES, volumes::CLAIMS], affected, reconcile, step, start: &[] };

/// Duration of the steps of a Pod: long enough to be seen, short enough to wait for.
const DEFAULT: Duration = Duration::from_secs(1);
/// Pause before the first restart; doubled with each further one.
const RESTART: Duration = Duration::from_secs(10);
const RESTART_MAX: Duration = Duration::from_mins(5);

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    match update.key.resource.as_str() {
        PODS => found.push(update.key.clone()),
        // Pods may be waiting for a node or for a volume.
        NODES => found.extend(
            cache.all(PODS).filter(|(_, it)| waits(it.body.as_deref())).map(|(key, _)| key.clone()),
        ),
        volumes::CLAIMS => {
            let near = cache.within(PODS, &update.key.namespace);
            found.extend(
                near.filter(|(_, it)| waits(it.body.as_deref())).map(|(key, _)| key.clone()),
            );
        }
        _ => {}
    }
}

fn waits(pod: Option<&Value>) -> bool {
    pod.is_some_and(|it| text(it, "/spec/nodeName").is_empty())
}

/// The stage of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodStage {
    /// It is not scheduled yet.
    Unbound,
    /// It is on another node, or terminated: nothing is left to do.
    NotOurs,
    /// It is scheduled to this node; nothing has started.
    Bound,
    /// Its containers are being created.
    Creating,
    /// Its containers run, but are not ready yet.
    Running,
    Ready,
    /// Its containers wait for their restart.
    Restarting,
    /// It is deleted; its containers are stopping.
    Stopping,
}

impl PodStage {
    fn of(pod: &Value) -> Self {
        let node = text(pod, "/spec/nodeName");
        if object::deleting(pod) {
            return if node == NODE || node.is_empty() { Self::Stopping } else { Self::NotOurs };
        }
        match (node, pods::phase(pod)) {
            (_, "Succeeded" | "Failed") => Self::NotOurs,
            ("", _) => Self::Unbound,
            (NODE, "Running") if status::is_waiting(pod) => Self::Restarting,
            (NODE, "Running") if pods::ready(pod) => Self::Ready,
            (NODE, "Running") => Self::Running,
            (NODE, _) if status::is_waiting(pod) => Self::Creating,
            (NODE, _) => Self::Bound,
            _ => Self::NotOurs,
        }
    }
}

/// Identifies the current step: a restart of containers restarts the time of the step, a change of labels does not.
fn step(cache: &Cache, key: &ObjectKey) -> String {
    let Some(pod) = cache.body(key) else { return String::new() };
    let stage = match PodStage::of(pod) {
        // Both are part of one run.
        PodStage::Running | PodStage::Ready => "run",
        PodStage::Creating => "create",
        PodStage::Restarting => "restart",
        PodStage::Stopping => "stop",
        PodStage::Unbound | PodStage::Bound | PodStage::NotOurs => return String::new(),
    };
    format!("{stage} {} {}", object::meta(pod, "uid"), status::restarts(pod))
}

/// Returns the duration in an annotation.
fn annotated_duration(pod: &Value, name: &str) -> Option<Duration> {
    duration(annotation(pod, name)?)
}

pub(super) fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    pod.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Returns the exit code of the containers.
pub(super) fn exit_code(pod: &Value) -> i64 {
    annotation(pod, "dev.kopf/exit-code").and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

/// Returns how long the containers run; `None` for until they are stopped.
fn runs_for(pod: &Value) -> Option<Duration> {
    let given = annotated_duration(pod, "dev.kopf/runs-for");
    let ends = text(pod, "/spec/restartPolicy").starts_with(['N', 'O']);
    let ends = ends || annotation(pod, "dev.kopf/exit-code").is_some();
    given.or_else(|| ends.then_some(DEFAULT))
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(pod) = cache.body(key) else { return ReconcileResult::none() };
    let mut plan = ReconcileResult::none();
    // Returns whether this time is over, and requeues the Pod if not.
    let over = |after: Duration, plan: &mut ReconcileResult| match after.checked_sub(moment.in_step)
    {
        Some(left) if !left.is_zero() => {
            plan.requeue_after(left);
            false
        }
        Some(_) | None => true,
    };
    let status = match PodStage::of(pod) {
        PodStage::NotOurs => return plan,
        PodStage::Unbound => return bind(cache, key, pod, moment).into(),
        PodStage::Bound => Some(status::creating(pod, moment)),
        PodStage::Creating => {
            let starts = annotated_duration(pod, "dev.kopf/starts-after").unwrap_or(DEFAULT);
            over(starts, &mut plan).then(|| status::running(key, pod, moment))
        }
        PodStage::Running | PodStage::Ready => match runs_for(pod) {
            Some(time) if over(time, &mut plan) => Some(status::ended(pod, moment)),
            Some(_) | None if pods::ready(pod) => None,
            Some(_) | None => {
                let ready = annotated_duration(pod, "dev.kopf/ready-after").unwrap_or_default();
                over(ready, &mut plan).then(|| status::ready(pod, moment))
            }
        },
        PodStage::Restarting => {
            let doublings = u32::try_from(status::restarts(pod)).unwrap_or(0).min(5);
            let wait = RESTART.saturating_mul(1 << doublings).min(RESTART_MAX);
            over(wait, &mut plan).then(|| status::restarted(pod, moment))
        }
        PodStage::Stopping => {
            let wait = annotated_duration(pod, "dev.kopf/stops-after").unwrap_or(DEFAULT);
            if over(wait.min(grace(pod)), &mut plan) {
                plan.writes = release(key, pod, moment);
            }
            return plan;
        }
    };
    if let Some(status) = status {
        plan.writes.push(Write::change(key, pod, vec![set(["status"], status)]));
    }
    plan
}

fn grace(pod: &Value) -> Duration {
    if text(pod, "/spec/nodeName").is_empty() || pods::ended(pod) {
        return Duration::ZERO;
    }
    let seconds = number(pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(30);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Removes a Pod whose containers have stopped. Finalizers may still keep it.
fn release(key: &ObjectKey, pod: &Value, moment: &DecisionTime) -> Vec<Write> {
    let mut edits = vec![set(["metadata", "deletionGracePeriodSeconds"], 0)];
    if !pods::ended(pod) && !text(pod, "/spec/nodeName").is_empty() {
        edits.insert(0, set(["status"], status::stopped(pod, moment)));
    }
    let mut writes = vec![Write::change(key, pod, edits)];
    if !object::has_finalizers(pod) {
        writes.push(Write::Remove { at: key.clone(), uid: object::meta(pod, "uid").into() });
    }
    writes
}

/// Schedules a Pod to the node, or sets the reason why it cannot be.
fn bind(cache: &Cache, key: &ObjectKey, pod: &Value, moment: &DecisionTime) -> Vec<Write> {
    let scheduler = text(pod, "/spec/schedulerName");
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if !matches!(scheduler, "" | "default-scheduler") || gates.is_some_and(|it| !it.is_empty()) {
        return Vec::new();
    }
    if let Some(message) = volume_problem(cache, key, pod) {
        let status = status::unschedulable(pod, &message, moment);
        return vec![Write::change(key, pod, vec![set(["status"], status)])];
    }
    let status = status::scheduled(pod, moment);
    vec![Write::change(key, pod, vec![set(["spec", "nodeName"], NODE), set(["status"], status)])]
}

fn volume_problem(cache: &Cache, key: &ObjectKey, pod: &Value) -> Option<String> {
    let Some(node) = cache.body(&ObjectKey::new(NODES, "", NODE)) else {
        return Some("no nodes available to schedule pods".into());
    };
    let none = |why: &str| Some(format!("0/1 nodes are available: 1 {why}."));
    let tolerations = pod.pointer("/spec/tolerations").and_then(Value::as_array);
    let tolerations: Vec<&Value> = tolerations.into_iter().flatten().collect();
    if object::flag(node, "/spec/unschedulable")
        && !tolerations.iter().any(|it| text(it, "/key") == "node.kubernetes.io/unschedulable")
    {
        return none("node(s) were unschedulable");
    }
    let wanted = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let labels = labels::of(node);
    if wanted.into_iter().flatten().any(|(key, value)| labels.get(key) != Some(value)) {
        return none("node(s) didn't match node selector");
    }
    volumes::volume_problem(cache, key, pod)
}

/// Returns the address of a Pod. It is derived from the uid, so it survives a restart of the server.
pub(super) fn address(pod: &Value) -> String {
    let mut state: u32 = 0x811c_9dc5;
    for byte in object::meta(pod, "uid").bytes() {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let [_, second, third, fourth] = state.to_be_bytes();
    // 10.0.0.0/9 is used by Services.
    format!("10.{}.{third}.{}", second | 0x80, fourth.clamp(1, 254))
}

/// Makes a condition of a Pod. The time of the last probe is null, because nothing is probed.
pub(super) fn condition(kind: &str, status: &str, why: Option<(&str, &str)>, since: &str) -> Value {
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    if let Some((reason, message)) = why {
        object::put(&mut condition, "reason", Some(reason.into()));
        object::put(
            &mut condition,
            "message",
            Some(message).filter(|it| !it.is_empty()).map(Value::from),
        );
    }
    condition
}
