//! `Job`: creates Pods until enough of them have succeeded.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        conditions,
        time::DecisionTime,
        workloads::{
            claim,
            pods::{self, PODS},
        },
        write::{Write, set},
    },
    labels,
    object::{self, number, text},
};

pub(crate) const JOBS: &str = "jobs.batch";
const KIND: (&str, &str) = ("batch/v1", "Job");
/// Seconds before the next Pod after a failure; doubled with each further failure.
const BACKOFF: i64 = 10;
const BACKOFF_MAX: i64 = 360;
/// Limit of Pods that one plan creates; the next one continues.
const BURST_MAX: i64 = 500;

pub(crate) const CONTROLLER: Controller =
    Controller { reads: &[JOBS, PODS], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    claim::affected_owners(cache, update, (JOBS, PODS), found);
}

/// A Job with its Pods, counted.
struct JobView<'a> {
    key: &'a ObjectKey,
    body: &'a Value,
    pods: Vec<(&'a ObjectKey, &'a Arc<Value>)>,
    active: i64,
    succeeded: i64,
    failed: i64,
}

/// Returns the condition with the time and the result of a finished Job.
pub(crate) fn finished(job: &Value) -> Option<&Value> {
    let ended = ["Complete", "Failed"].into_iter().find(|it| conditions::holds(job, it))?;
    conditions::find(job, ended)
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key) else { return ReconcileResult::none() };
    if object::deleting(body) {
        return ReconcileResult::none();
    }
    if let Some(end) = finished(body) {
        return expire(key, body, end, moment);
    }
    let claimed = claim::claim(cache, key, body, PODS, KIND);
    if !claimed.writes.is_empty() {
        return claimed.writes.into();
    }
    let count = |wanted: fn(&Value) -> bool| {
        let found = claimed.children.iter().filter(|(_, it)| wanted(it));
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    };
    let view = JobView {
        key,
        body,
        active: count(pods::active),
        succeeded: count(|it| pods::phase(it) == "Succeeded"),
        failed: count(|it| pods::phase(it) == "Failed"),
        pods: claimed.children,
    };
    let mut plan = ReconcileResult::none();
    let status = run(&view, &mut plan, moment);
    plan.writes.push(Write::change(key, body, vec![set(["status"], status)]));
    plan
}

/// Deletes a finished Job after `ttlSecondsAfterFinished`.
fn expire(key: &ObjectKey, body: &Value, end: &Value, moment: &DecisionTime) -> ReconcileResult {
    let Some(seconds) = number(body, "/spec/ttlSecondsAfterFinished") else {
        return ReconcileResult::none();
    };
    let since = end.get("lastTransitionTime").and_then(Value::as_str).unwrap_or_default();
    let mut plan = ReconcileResult::none();
    match moment.until(since, seconds) {
        Some(wait) => plan.requeue_after(wait),
        None => plan.writes.push(Write::Delete {
            at: key.clone(),
            uid: object::meta(body, "uid").into(),
            foreground: true,
        }),
    }
    plan
}

/// Plans the next Pods, and returns the status after them.
fn run(view: &JobView<'_>, plan: &mut ReconcileResult, moment: &DecisionTime) -> Value {
    if object::flag(view.body, "/spec/suspend") {
        stop_all(view, plan);
        return suspended(view, moment);
    }
    let start = text(view.body, "/status/startTime");
    let start = if start.is_empty() { moment.stamp.as_str() } else { start };
    if let Some((reason, message)) = failure(view, start, plan, moment) {
        stop_all(view, plan);
        let mut status = counts(view, 0, view.failed + view.active);
        object::put(&mut status, "startTime", Some(start.into()));
        end(view, &mut status, ("Failed", reason, message), moment);
        return status;
    }
    let completions = number(view.body, "/spec/completions");
    let complete = match completions {
        Some(wanted) => view.succeeded >= wanted,
        // A work queue is done when one Pod has succeeded and all have ended.
        None => view.succeeded > 0 && view.active == 0,
    };
    if complete {
        stop_all(view, plan);
        let mut status = counts(view, 0, view.failed);
        object::put(&mut status, "startTime", Some(start.into()));
        object::put(&mut status, "completionTime", Some(moment.stamp.clone().into()));
        end(view, &mut status, ("Complete", "", ""), moment);
        return status;
    }
    let active = replicate(view, completions, plan, moment);
    let mut status = counts(view, active, view.failed);
    object::put(&mut status, "startTime", Some(start.into()));
    let mut conditions = conditions::all(view.body);
    if conditions::holds(view.body, "Suspended") {
        let reported = ("Suspended", "False", "JobResumed", "Job resumed");
        put_condition(&mut conditions, reported, moment);
    }
    if !conditions.is_empty() {
        object::put(&mut status, "conditions", Some(conditions.into()));
    }
    status
}

/// Returns the reason and the message if the Job has failed.
fn failure(
    view: &JobView<'_>,
    start: &str,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) -> Option<(&'static str, &'static str)> {
    let limit = number(view.body, "/spec/backoffLimit").unwrap_or(6);
    let restarts = || {
        let statuses = view.pods.iter().filter(|(_, it)| pods::active(it));
        let statuses =
            statuses.filter_map(|(_, it)| it.pointer("/status/containerStatuses")?.as_array());
        statuses.flatten().filter_map(|it| it.get("restartCount")?.as_i64()).sum::<i64>()
    };
    let restarting = text(view.body, "/spec/template/spec/restartPolicy") == "OnFailure";
    let spent = restarting && restarts() > limit.max(0);
    if view.failed > limit || spent {
        return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let deadline = number(view.body, "/spec/activeDeadlineSeconds")?;
    match moment.until(start, deadline) {
        Some(wait) => {
            plan.requeue_after(wait);
            None
        }
        None => Some(("DeadlineExceeded", "Job was active longer than specified deadline")),
    }
}

/// Creates or deletes Pods. Returns the number of active ones after it.
fn replicate(
    view: &JobView<'_>,
    completions: Option<i64>,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) -> i64 {
    let parallelism = number(view.body, "/spec/parallelism").unwrap_or(1);
    let wanted = match completions {
        Some(completions) => parallelism.min(completions - view.succeeded),
        None if view.succeeded > 0 => view.active.min(parallelism),
        None => parallelism,
    };
    let wanted = wanted.max(0);
    if view.active > wanted {
        let mut active: Vec<_> = view.pods.iter().filter(|(_, it)| pods::active(it)).collect();
        active.sort_by_cached_key(|(_, it)| pods::rank(it));
        let surplus = usize::try_from(view.active - wanted).unwrap_or(0);
        let go = active.into_iter().take(surplus);
        plan.writes.extend(go.map(|(key, it)| Write::delete(key, object::meta(it, "uid"))));
        return wanted;
    }
    if view.active == wanted {
        return wanted;
    }
    if let Some(wait) = backoff(view, moment) {
        plan.requeue_after(wait);
        return view.active;
    }
    let made = (wanted - view.active).min(BURST_MAX);
    let pod = pod(view);
    let count = usize::try_from(made).unwrap_or(0);
    let pods = std::iter::repeat_n(pod, count);
    plan.writes.extend(pods.map(|body| Write::Create { resource: PODS, body }));
    view.active + made
}

/// Returns how long the next Pod must still wait because of earlier failures.
fn backoff(view: &JobView<'_>, moment: &DecisionTime) -> Option<Duration> {
    let failed = view.pods.iter().filter(|(_, it)| pods::phase(it) == "Failed");
    let last = failed.map(|(_, it)| end_of(it)).max()?;
    let doublings = u32::try_from((view.failed - 1).clamp(0, 16)).unwrap_or(0);
    let seconds = BACKOFF.saturating_mul(1_i64 << doublings).min(BACKOFF_MAX);
    moment.until(last, seconds)
}

/// Returns the time at which a Pod has ended, as far as its status contains it.
fn end_of(pod: &Value) -> &str {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let ends = statuses.into_iter().flatten().map(|it| text(it, "/state/terminated/finishedAt"));
    let reported = ends.max().unwrap_or_default();
    let changed =
        conditions::find(pod, "Ready").and_then(|it| it.get("lastTransitionTime")?.as_str());
    match changed {
        _ if !reported.is_empty() => reported,
        Some(changed) => changed,
        None => object::meta(pod, "creationTimestamp"),
    }
}

fn pod(view: &JobView<'_>) -> Value {
    let mut pod = pods::of_template(view.key, view.body, KIND);
    // The server adds the generated labels to the template of a new Job; a Job with its own selector has none.
    let selector = view.body.pointer("/spec/selector");
    if !labels::selects(selector, labels::of(&pod))
        && !object::flag(view.body, "/spec/manualSelector")
    {
        pods::label(&mut pod, "controller-uid", object::meta(view.body, "uid"));
        pods::label(&mut pod, "job-name", &view.key.name);
    }
    pod
}

fn stop_all(view: &JobView<'_>, plan: &mut ReconcileResult) {
    let active = view.pods.iter().filter(|(_, it)| pods::active(it));
    plan.writes.extend(active.map(|(key, it)| Write::delete(key, object::meta(it, "uid"))));
}

fn counts(view: &JobView<'_>, active: i64, failed: i64) -> Value {
    let ready = view.pods.iter().filter(|(_, it)| pods::active(it) && pods::ready(it)).count();
    let ready = i64::try_from(ready).unwrap_or(i64::MAX).min(active);
    let mut status = json!({});
    let counts =
        [("active", active), ("ready", ready), ("succeeded", view.succeeded), ("failed", failed)];
    for (name, value) in counts.into_iter().filter(|(_, value)| *value > 0) {
        object::put(&mut status, name, Some(value.into()));
    }
    status
}

fn suspended(view: &JobView<'_>, moment: &DecisionTime) -> Value {
    let mut status = counts(view, 0, view.failed);
    let mut conditions = conditions::all(view.body);
    put_condition(&mut conditions, ("Suspended", "True", "JobSuspended", "Job suspended"), moment);
    object::put(&mut status, "conditions", Some(conditions.into()));
    status
}

fn end(
    view: &JobView<'_>,
    status: &mut Value,
    (kind, reason, message): (&str, &str, &str),
    moment: &DecisionTime,
) {
    let mut conditions = conditions::all(view.body);
    put_condition(&mut conditions, (kind, "True", reason, message), moment);
    object::put(status, "conditions", Some(conditions.into()));
}

/// Adds a condition. Those of Jobs also have the time of the last probe.
fn put_condition(
    conditions: &mut Vec<Value>,
    (kind, status, reason, message): (&str, &str, &str, &str),
    moment: &DecisionTime,
) {
    let is_it = |it: &Value| {
        it.get("type").and_then(Value::as_str) == Some(kind)
            && it.get("status").and_then(Value::as_str) == Some(status)
    };
    if conditions.iter().any(is_it) {
        return;
    }
    let wanted = conditions::DesiredCondition { kind, status, reason, message };
    conditions::put(conditions, wanted, &moment.stamp);
    let probed = |it: &&mut Value| it.get("type").and_then(Value::as_str) == Some(kind);
    if let Some(condition) = conditions.iter_mut().find(probed) {
        object::put(condition, "lastProbeTime", Some(moment.stamp.clone().into()));
    }
}
