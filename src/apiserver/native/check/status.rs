//! Validation of the statuses of workloads: the counts that controllers report must be possible.

use serde_json::Value;

use super::{FieldValue, Problems, not_negative};

const TOO_MANY: &str = "cannot be greater than status.replicas";

/// The counts in the status of a kind, and those among them that count only a part of all Pods.
struct StatusCounts {
    all: &'static [&'static str],
    parts: &'static [&'static str],
    /// Available Pods must also be ready.
    ready: bool,
}

/// Validates a changed status. An unchanged one was validated when it was written.
fn changed(out: &mut Problems, counts: &StatusCounts, new: &Value, old: Option<&Value>) {
    let Some(old) = old.filter(|it| it.get("status") != new.get("status")) else { return };
    let status = FieldValue::root(new).get("status");
    for field in counts.all {
        not_negative(out, &status.get(field));
    }
    let total = status.get("replicas").number();
    // A missing count is zero.
    let none = Value::from(0);
    let count = |field: &str| {
        let it = status.get(field);
        if it.is_set() { it } else { FieldValue { path: it.path, value: &none } }
    };
    for field in counts.parts {
        let it = count(field);
        if it.number() > total {
            out.push(it.invalid(TOO_MANY));
        }
    }
    let available = count("availableReplicas");
    if counts.ready && available.number() > count("readyReplicas").number() {
        out.push(available.invalid("cannot be greater than readyReplicas"));
    }
    let collisions = status.get("collisionCount");
    let before = FieldValue::root(old).get("status").get("collisionCount");
    not_negative(out, &collisions);
    if before.is_set() && collisions.number() < before.number() {
        out.push(count("collisionCount").invalid("cannot be decremented"));
    }
}

pub(super) fn deployment(out: &mut Problems, new: &Value, old: Option<&Value>) {
    let counts = StatusCounts {
        all: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ],
        parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ready: true,
    };
    changed(out, &counts, new, old);
}

/// Validates the status of replica sets and replication controllers.
pub(super) fn replica_set(out: &mut Problems, new: &Value, old: Option<&Value>) {
    let counts = StatusCounts {
        all: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
        ],
        parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ready: true,
    };
    changed(out, &counts, new, old);
}

pub(super) fn stateful_set(out: &mut Problems, new: &Value, old: Option<&Value>) {
    let counts = StatusCounts {
        all: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "observedGeneration",
        ],
        parts: &["readyReplicas", "currentReplicas", "updatedReplicas"],
        ready: false,
    };
    changed(out, &counts, new, old);
}

pub(super) fn daemon_set(out: &mut Problems, new: &Value, old: Option<&Value>) {
    let counts = StatusCounts {
        all: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ],
        parts: &[],
        ready: false,
    };
    changed(out, &counts, new, old);
}

pub(super) fn job(out: &mut Problems, new: &Value, old: Option<&Value>) {
    let counts = StatusCounts { all: &["active", "succeeded", "failed"], parts: &[], ready: false };
    changed(out, &counts, new, old);
}
