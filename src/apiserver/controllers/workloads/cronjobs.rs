//! `CronJob`: starts a Job at every scheduled time.

use std::{sync::Arc, time::Duration};

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::sorted;
use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        conditions,
        time::DecisionTime,
        workloads::{
            claim,
            jobs::{self, JOBS},
            pods,
        },
        write::{FieldEdit, Write, set, unset},
    },
    object::{self, number, text},
};

const CRON_JOBS: &str = "cronjobs.batch";
const KIND: (&str, &str) = ("batch/v1", "CronJob");
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// Limit of missed times that are counted one by one. After a longer gap, counting starts shortly before now.
const MISSED_MAX: usize = 100;

pub(crate) const CONTROLLER: Controller =
    Controller { reads: &[CRON_JOBS, JOBS], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if update.key.resource == CRON_JOBS {
        found.push(update.key.clone());
    }
    if update.key.resource == JOBS {
        let owners =
            update.owners().filter(|it| it.controller).filter_map(|it| cache.by_uid(&it.uid));
        found.extend(
            owners.filter(|(key, _)| key.resource == CRON_JOBS).map(|(key, _)| key.clone()),
        );
    }
}

type Jobs<'a> = Vec<(&'a ObjectKey, &'a Arc<Value>)>;

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key).filter(|it| !object::deleting(it)) else {
        return ReconcileResult::none();
    };
    let all: Jobs<'_> = cache.managed(object::meta(body, "uid"), JOBS).collect();
    let (ended, active): (Jobs<'_>, Jobs<'_>) =
        all.into_iter().partition(|(_, it)| jobs::finished(it).is_some());
    let mut plan = ReconcileResult::none();
    prune(body, &ended, &mut plan);
    let mut edits = vec![list_active(&active)];
    let success = ended.iter().map(|(_, it)| text(it, "/status/completionTime"));
    let success = success.max().unwrap_or_default();
    if success > text(body, "/status/lastSuccessfulTime") {
        edits.push(set(["status", "lastSuccessfulTime"], success));
    }
    if !object::flag(body, "/spec/suspend")
        && let Some(schedule) = CronSchedule::of(body)
        && let Some(time) = due(body, &schedule, &mut plan, moment)
    {
        start(cache, (key, body), (&active, time), &mut plan, &mut edits);
    }
    plan.writes.push(Write::change(key, body, edits));
    plan
}

/// Deletes old Jobs beyond the limits of the history, the oldest first.
fn prune(body: &Value, ended: &Jobs<'_>, plan: &mut ReconcileResult) {
    let limits =
        [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)];
    for (condition, field, default) in limits {
        let limit = number(body, &format!("/spec/{field}")).unwrap_or(default);
        let mut jobs: Vec<_> =
            ended.iter().filter(|(_, it)| conditions::holds(it, condition)).collect();
        jobs.retain(|(_, it)| !object::deleting(it));
        sorted::sort_by_key(&mut jobs, |(key, it)| (text(it, "/status/startTime"), *key));
        let surplus = jobs.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let go = jobs.into_iter().take(surplus);
        plan.writes.extend(go.map(|(key, it)| Write::delete(key, object::meta(it, "uid"))));
    }
}

fn list_active(active: &Jobs<'_>) -> FieldEdit {
    let reference = |(key, it): &(&ObjectKey, &Arc<Value>)| {
        json!({
            "kind": "Job",
            "namespace": key.namespace,
            "name": key.name,
            "uid": object::meta(it, "uid"),
            "apiVersion": "batch/v1",
        })
    };
    if active.is_empty() {
        unset(["status", "active"])
    } else {
        set(["status", "active"], active.iter().map(reference).collect::<Vec<_>>())
    }
}

/// Returns the latest time that is due and has not started a Job yet. Without one, requeues for the next time.
fn due(
    body: &Value,
    schedule: &CronSchedule,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) -> Option<Timestamp> {
    let last = text(body, "/status/lastScheduleTime");
    let last = if last.is_empty() { object::meta(body, "creationTimestamp") } else { last };
    let mut from: Timestamp = last.parse().ok()?;
    let deadline = number(body, "/spec/startingDeadlineSeconds");
    let oldest = deadline.and_then(|it| shift(moment.now, -it));
    from = oldest.map_or(from, |it| it.max(from));
    let found = schedule.latest(from, moment.now);
    let next = schedule.next(found.unwrap_or(from).max(moment.now))?;
    let wait = next.as_second().saturating_sub(moment.now.as_second());
    plan.requeue_after(Duration::from_secs(u64::try_from(wait).unwrap_or(0).max(1)));
    found
}

fn shift(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second().checked_add(seconds)?).ok()
}

/// Starts the Job of a scheduled time, if the concurrency policy allows it.
fn start(
    cache: &Cache,
    (key, body): (&ObjectKey, &Value),
    (active, time): (&Jobs<'_>, Timestamp),
    plan: &mut ReconcileResult,
    edits: &mut Vec<FieldEdit>,
) {
    match text(body, "/spec/concurrencyPolicy") {
        // The Job starts when the running one has ended, unless it is too late then.
        "Forbid" if !active.is_empty() => return,
        "Replace" => {
            let delete =
                |(key, it): &(&ObjectKey, &Arc<Value>)| Write::delete(key, object::meta(it, "uid"));
            plan.writes.extend(active.iter().map(delete));
        }
        _ => {}
    }
    let name = format!("{}-{}", key.name, time.as_second() / 60);
    if cache.get(&ObjectKey::new(JOBS, &key.namespace, &name)).is_none() {
        let body = job(key, body, &name, time);
        plan.writes.push(Write::Create { resource: JOBS, body });
    }
    edits.push(set(["status", "lastScheduleTime"], time.to_string()));
}

fn job(key: &ObjectKey, body: &Value, name: &str, time: Timestamp) -> Value {
    let template = body.pointer("/spec/jobTemplate").cloned().unwrap_or_default();
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": key.namespace },
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    for field in ["labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            object::set_meta(&mut job, field, value.clone());
        }
    }
    pods::annotate(&mut job, SCHEDULED, &time.to_string());
    object::set_meta(&mut job, "ownerReferences", vec![claim::reference(body, KIND)]);
    job
}

/// The times at which a Job starts.
enum CronSchedule {
    Times(Crontab),
    /// An interval in seconds: `@every`.
    Interval(i64),
}

impl CronSchedule {
    /// Parses the schedule; `None` if it is invalid. The server refuses those, but older objects may have them.
    fn of(body: &Value) -> Option<Self> {
        let text_of = text(body, "/spec/schedule").trim();
        let zone = text(body, "/spec/timeZone");
        let (zone, text_of) = match text_of.split_once(' ') {
            Some((prefix, rest)) if zone.is_empty() => {
                let named = prefix.strip_prefix("CRON_TZ=").or_else(|| prefix.strip_prefix("TZ="));
                named.map_or((zone, text_of), |it| (it, rest.trim()))
            }
            Some(_) | None => (zone, text_of),
        };
        if let Some(interval) = text_of.strip_prefix("@every ") {
            let seconds = interval.trim().parse::<jiff::SignedDuration>().ok()?.as_secs();
            return Some(Self::Interval(seconds.max(1)));
        }
        let fields = match text_of {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        };
        // A question mark means the same as an asterisk.
        let fields = fields.replace('?', "*");
        let text = if zone.is_empty() { fields } else { format!("{fields} {zone}") };
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        cronexpr::parse_crontab_with(&text, options).ok().map(Self::Times)
    }

    /// Returns the first time after this one.
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Times(table) => Some(table.find_next(after).ok()?.timestamp()),
            Self::Interval(seconds) => shift(after, *seconds),
        }
    }

    /// Returns the last time after `from` and not after `now`.
    fn latest(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let first = self.next(from).filter(|it| *it <= now)?;
        let mut found = first;
        if let Some(second) = self.next(first).filter(|it| *it <= now) {
            // A long gap is not counted one by one: the last few regular steps are enough.
            let step = second.as_second().saturating_sub(first.as_second()).max(1);
            let missed = now.as_second().saturating_sub(first.as_second()) / step;
            let near = shift(first, (missed - 2).max(0).saturating_mul(step));
            found = near
                .filter(|it| *it > second)
                .and_then(|it| self.next(it))
                .filter(|it| *it <= now)
                .unwrap_or(second);
        }
        for _ in 0..MISSED_MAX {
            match self.next(found) {
                Some(next) if next <= now => found = next,
                Some(_) | None => break,
            }
        }
        Some(found)
    }
}
