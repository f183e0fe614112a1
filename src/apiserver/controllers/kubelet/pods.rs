//! The life of Pods: bound, started, running, ended, let go.
//!
//! What goes on with a Pod is a `Stage`, read from the Pod alone; how long it takes comes from its annotations.

use std::time::Duration;

use serde_json::{Value, json};

use super::{NODE, node::NODES, status};
use crate::{
    controllers::{
        Controller, Plan,
        kubelet::volumes,
        time::{Moment, duration},
        workloads::pods::{self, PODS},
        world::{Key, News, World},
        write::{Write, set},
    },
    labels,
    object::{self, number, text},
};

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[PODS, NODES, volumes::CLAIMS], concerns, decide, step, start: &[] };

/// A second is long enough to be seen, and short enough to be waited for.
const DEFAULT: Duration = Duration::from_secs(1);
/// The first wait before a restart; it doubles with each.
const RESTART: Duration = Duration::from_secs(10);
const RESTART_MAX: Duration = Duration::from_mins(5);

fn concerns(world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    match news.key.resource.as_str() {
        PODS => found.push(news.key.clone()),
        // Pods that wait for the node or for a volume.
        NODES => found.extend(
            world.all(PODS).filter(|(_, it)| waits(it.body.as_deref())).map(|(key, _)| key.clone()),
        ),
        volumes::CLAIMS => {
            let near = world.within(PODS, &news.key.namespace);
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

/// Where a Pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// On no node.
    Unbound,
    /// On another node, or ended: nothing to do here.
    NotOurs,
    /// On our node, nothing started.
    Bound,
    /// Containers are being made.
    Creating,
    /// Containers run, not ready yet.
    Running,
    Ready,
    /// Containers wait for their next start.
    Restarting,
    /// Deleted: containers stop.
    Stopping,
}

impl Stage {
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

/// A change of labels must not start the clock anew; a restart must.
fn step(world: &World, key: &Key) -> String {
    let Some(pod) = world.body(key) else { return String::new() };
    let stage = match Stage::of(pod) {
        // Both are part of one run.
        Stage::Running | Stage::Ready => "run",
        Stage::Creating => "create",
        Stage::Restarting => "restart",
        Stage::Stopping => "stop",
        Stage::Unbound | Stage::Bound | Stage::NotOurs => return String::new(),
    };
    format!("{stage} {} {}", object::meta(pod, "uid"), status::restarts(pod))
}

/// A duration that an annotation gives.
fn steered(pod: &Value, name: &str) -> Option<Duration> {
    duration(annotation(pod, name)?)
}

pub(super) fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    pod.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// What its containers exit with.
pub(super) fn exit_code(pod: &Value) -> i64 {
    annotation(pod, "dev.kopf/exit-code").and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

/// How long its containers run; `None`: until they are stopped.
fn runs_for(pod: &Value) -> Option<Duration> {
    let given = steered(pod, "dev.kopf/runs-for");
    let ends = text(pod, "/spec/restartPolicy").starts_with(['N', 'O']);
    let ends = ends || annotation(pod, "dev.kopf/exit-code").is_some();
    given.or_else(|| ends.then_some(DEFAULT))
}

fn decide(world: &World, key: &Key, moment: &Moment) -> Plan {
    let Some(pod) = world.body(key) else { return Plan::none() };
    let mut plan = Plan::none();
    // True when this time is over; asks again if not.
    let over = |after: Duration, plan: &mut Plan| match after.checked_sub(moment.in_step) {
        Some(left) if !left.is_zero() => {
            plan.again(left);
            false
        }
        Some(_) | None => true,
    };
    let status = match Stage::of(pod) {
        Stage::NotOurs => return plan,
        Stage::Unbound => return bind(world, key, pod, moment).into(),
        Stage::Bound => Some(status::creating(pod, moment)),
        Stage::Creating => {
            let starts = steered(pod, "dev.kopf/starts-after").unwrap_or(DEFAULT);
            over(starts, &mut plan).then(|| status::running(key, pod, moment))
        }
        Stage::Running | Stage::Ready => match runs_for(pod) {
            Some(time) if over(time, &mut plan) => Some(status::ended(pod, moment)),
            Some(_) | None if pods::ready(pod) => None,
            Some(_) | None => {
                let ready = steered(pod, "dev.kopf/ready-after").unwrap_or_default();
                over(ready, &mut plan).then(|| status::ready(pod, moment))
            }
        },
        Stage::Restarting => {
            let doublings = u32::try_from(status::restarts(pod)).unwrap_or(0).min(5);
            let wait = RESTART.saturating_mul(1 << doublings).min(RESTART_MAX);
            over(wait, &mut plan).then(|| status::restarted(pod, moment))
        }
        Stage::Stopping => {
            let wait = steered(pod, "dev.kopf/stops-after").unwrap_or(DEFAULT);
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

/// The containers have stopped: the node lets go. Finalizers still hold the Pod.
fn release(key: &Key, pod: &Value, moment: &Moment) -> Vec<Write> {
    let mut edits = vec![set(["metadata", "deletionGracePeriodSeconds"], 0)];
    if !pods::ended(pod) && !text(pod, "/spec/nodeName").is_empty() {
        edits.insert(0, set(["status"], status::stopped(pod, moment)));
    }
    let mut writes = vec![Write::change(key, pod, edits)];
    if !object::held(pod) {
        writes.push(Write::Remove { at: key.clone(), uid: object::meta(pod, "uid").into() });
    }
    writes
}

/// Puts a Pod on the node, or says why not.
fn bind(world: &World, key: &Key, pod: &Value, moment: &Moment) -> Vec<Write> {
    let scheduler = text(pod, "/spec/schedulerName");
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if !matches!(scheduler, "" | "default-scheduler") || gates.is_some_and(|it| !it.is_empty()) {
        return Vec::new();
    }
    if let Some(message) = obstacle(world, key, pod) {
        let status = status::unschedulable(pod, &message, moment);
        return vec![Write::change(key, pod, vec![set(["status"], status)])];
    }
    let status = status::scheduled(pod, moment);
    vec![Write::change(key, pod, vec![set(["spec", "nodeName"], NODE), set(["status"], status)])]
}

fn obstacle(world: &World, key: &Key, pod: &Value) -> Option<String> {
    let Some(node) = world.body(&Key::new(NODES, "", NODE)) else {
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
    volumes::obstacle(world, key, pod)
}

/// An address of its own for each Pod, made of its uid: the same after a restart of the server.
pub(super) fn address(pod: &Value) -> String {
    let mut state: u32 = 0x811c_9dc5;
    for byte in object::meta(pod, "uid").bytes() {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let [_, second, third, fourth] = state.to_be_bytes();
    // 10.0.0.0/9 is left to Services.
    format!("10.{}.{third}.{}", second | 0x80, fourth.clamp(1, 254))
}

/// Conditions of Pods: what was probed never was.
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
