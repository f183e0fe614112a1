//! The arithmetic of a Deployment: the number of Pods of each `ReplicaSet`. No time, no writes.

use serde_json::Value;

use crate::sorted;
use crate::{
    controllers::cache::ObjectKey,
    object::{self, number, text},
};

pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";

/// One of the `ReplicaSet`s.
#[derive(Clone, Debug)]
pub(crate) struct Set<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) body: &'a Value,
    /// The desired replicas after this plan.
    pub(crate) replicas: i64,
}

impl<'a> Set<'a> {
    pub(crate) fn new(key: &'a ObjectKey, body: &'a Value) -> Self {
        Self { key, body, replicas: number(body, "/spec/replicas").unwrap_or(1) }
    }

    /// Returns a number of its status; 0 if it is missing.
    pub(crate) fn status(&self, field: &str) -> i64 {
        self.body.get("status").and_then(|it| it.get(field)?.as_i64()).unwrap_or(0)
    }

    pub(crate) fn available(&self) -> i64 {
        self.status("availableReplicas")
    }

    pub(crate) fn annotation(&self, name: &str) -> &'a str {
        annotation(self.body, name)
    }

    pub(crate) fn revision(&self) -> i64 {
        self.annotation(REVISION).parse().unwrap_or(0)
    }

    /// Returns the key for sorting by age, oldest first.
    pub(crate) fn age(&self) -> (&'a str, &'a str) {
        (object::meta(self.body, "creationTimestamp"), object::meta(self.body, "name"))
    }
}

/// Returns an annotation of an object; empty if it is missing.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = object.pointer("/metadata/annotations");
    annotations.and_then(|it| it.get(name)?.as_str()).unwrap_or_default()
}

/// The replicas of a Deployment, and how far a rollout may deviate from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RolloutLimits {
    pub(crate) replicas: i64,
    /// Maximum number of Pods above the desired replicas.
    pub(crate) surge: i64,
    /// Maximum number of unavailable Pods below the desired replicas.
    pub(crate) unavailable: i64,
    pub(crate) rolling: bool,
}

impl RolloutLimits {
    pub(crate) fn of(deployment: &Value) -> Self {
        let replicas = number(deployment, "/spec/replicas").unwrap_or(1);
        let rolling = text(deployment, "/spec/strategy/type") != "Recreate";
        if !rolling {
            return Self { replicas, surge: 0, unavailable: 0, rolling };
        }
        let part = |field: &str, up: bool| {
            let value = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
            portion(value.unwrap_or(&Value::Null), replicas, up)
        };
        let (surge, mut unavailable) = (part("maxSurge", true), part("maxUnavailable", false));
        // Otherwise no rollout could make progress.
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { replicas, surge, unavailable: unavailable.min(replicas), rolling }
    }

    /// Returns the maximum number of Pods during a rollout. It is written on each `ReplicaSet`, so that scaling is detected.
    pub(crate) fn max(&self) -> i64 {
        self.replicas.saturating_add(self.surge)
    }
}

/// Returns a number, or a percentage of the total. Any other value means a quarter, the default of Deployments.
pub(crate) fn portion(value: &Value, total: i64, up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number.max(0);
    }
    let text = value.as_str().unwrap_or("25%");
    let Some(percent) = text.strip_suffix('%').and_then(|it| it.parse::<i64>().ok()) else {
        return 0;
    };
    let share = total.saturating_mul(percent.max(0));
    if up { share.saturating_add(99) / 100 } else { share / 100 }
}

fn sum<'a>(sets: impl Iterator<Item = &'a Set<'a>>, count: impl Fn(&Set<'_>) -> i64) -> i64 {
    sets.fold(0, |total, it| total.saturating_add(count(it)))
}

/// Returns the replicas of the newest set, which has `present` now, while all sets together have `total`.
pub(crate) fn newest(limits: RolloutLimits, present: i64, total: i64) -> i64 {
    if !limits.rolling || present >= limits.replicas {
        return limits.replicas;
    }
    let room = limits.max().saturating_sub(total);
    if room <= 0 { present } else { present + room.min(limits.replicas - present) }
}

/// Scales the old sets of a rollout down, as far as enough Pods stay available. They are ordered by age.
pub(crate) fn shrink_old(limits: RolloutLimits, new: &Set<'_>, old: &mut [Set<'_>]) {
    let total = sum(old.iter(), |it| it.replicas) + new.replicas;
    let needed = limits.replicas - limits.unavailable;
    let unavailable_new = new.replicas - new.available();
    let mut budget = total - needed - unavailable_new;
    if budget <= 0 {
        return;
    }
    let available = old.iter().map(Set::available).sum::<i64>() + new.available();
    // Unavailable Pods are removed first.
    for set in old.iter_mut() {
        let useless = (set.replicas - set.available()).clamp(0, budget.max(0));
        set.replicas -= useless;
        budget -= useless;
    }
    let mut spare = available - needed;
    for set in old.iter_mut().filter(|it| it.replicas > 0) {
        let go = set.replicas.min(spare).max(0);
        set.replicas -= go;
        spare -= go;
    }
}

/// Distributes new replicas over the sets of an unfinished rollout, in proportion to their sizes.
pub(crate) fn rescale(limits: RolloutLimits, present: i64, sets: &mut [Set<'_>]) {
    let total = sum(sets.iter(), |it| it.replicas);
    let allowed = if limits.replicas > 0 { limits.max() } else { 0 };
    let to_add = allowed - total;
    // The largest set first: it also gets the remainder of rounding. Of equal ones, the newest when scaling up, the oldest
    // otherwise.
    if to_add > 0 {
        sorted::sort_by(sets, |a, b| {
            b.replicas.cmp(&a.replicas).then_with(|| b.age().cmp(&a.age()))
        });
    } else {
        sorted::sort_by(sets, |a, b| {
            b.replicas.cmp(&a.replicas).then_with(|| a.age().cmp(&b.age()))
        });
    }
    let mut added = 0;
    for set in sets.iter_mut().filter(|it| it.replicas > 0) {
        if to_add == 0 {
            break;
        }
        let share = fraction(limits, present, set);
        let left = to_add - added;
        let share = if to_add > 0 { share.min(left).max(0) } else { share.max(left).min(0) };
        set.replicas += share;
        added += share;
    }
    if let Some(first) = sets.first_mut() {
        first.replicas = (first.replicas + to_add - added).max(0);
    }
}

/// Returns by how much a set grows with the Deployment, rounded to the nearest integer.
fn fraction(limits: RolloutLimits, present: i64, set: &Set<'_>) -> i64 {
    if limits.replicas == 0 {
        return -set.replicas;
    }
    let before = set.annotation(MAX).parse().unwrap_or(present).max(1);
    let scaled = set.replicas.saturating_mul(limits.max()).saturating_mul(2).saturating_add(before);
    scaled / before.saturating_mul(2) - set.replicas
}
