//! The controllers of a cluster: garbage collection, namespaces, workloads and Pods.
//!
//! Every controller is a pair of pure functions: `affected` collects the objects that a change affects, and `reconcile` returns
//! what to do about one of them (`Cache`, `DecisionTime` → `ReconcileResult`). One loop runs them all: it takes a batch of changes from the server,
//! reconciles each affected object once, and applies the plans; their writes are the next batch. Controllers are level-triggered, so a
//! write that fails or is late is planned again.
//!
//! While nothing changes, the loop sleeps until a change or the next requeued object.

mod access;
mod budgets;
mod cache;
mod conditions;
mod crds;
mod garbage;
mod kubelet;
mod namespaces;
mod quotas;
mod run;
#[cfg(test)]
mod tests;
mod time;
mod workloads;
mod write;

use std::time::Duration;

use self::{
    cache::{Cache, ObjectKey, Update},
    time::DecisionTime,
    write::Write,
};

pub use self::{
    kubelet::logs::{LogParams, Logs, logs},
    run::run,
};

/// The controllers to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controllers {
    /// Deletes objects without owners, and implements the propagation policies of deletions.
    pub garbage: bool,
    /// Creates the initial objects of new namespaces, and empties deleted ones.
    pub namespaces: bool,
    /// Deletes the objects of deleted CRDs. In a real cluster, the API server does this itself.
    pub definitions: bool,
    /// Deployments, `ReplicaSet`s, `StatefulSet`s, `DaemonSet`s, Jobs, `CronJob`s, Services, quotas, disruption budgets.
    pub workloads: bool,
    /// A simulated node that runs Pods and binds volume claims.
    pub kubelet: bool,
}

impl Controllers {
    /// Options with all controllers.
    pub const ALL: Self =
        Self { garbage: true, namespaces: true, definitions: true, workloads: true, kubelet: true };
}

/// One controller, as data and functions.
#[derive(Clone, Copy)]
struct Controller {
    /// The resources whose complete objects it needs; of others, only metadata is cached.
    reads: &'static [&'static str],
    /// Collects the objects that a change affects.
    affected: fn(&Cache, &Update<'_>, &mut Vec<ObjectKey>),
    /// Returns what to do about one object now.
    reconcile: fn(&Cache, &ObjectKey, &DecisionTime) -> ReconcileResult,
    /// Identifies the current step of an object, for steps that take time: `reconcile` gets the time since this string has changed.
    step: fn(&Cache, &ObjectKey) -> String,
    /// Objects to reconcile at the start, even if they do not exist yet.
    start: &'static [(&'static str, &'static str)],
}

/// For controllers without steps, which use only timestamps.
const NO_STEP: fn(&Cache, &ObjectKey) -> String = |_, _| String::new();

/// The result of `reconcile`.
#[derive(Clone, Debug, Default, PartialEq)]
struct ReconcileResult {
    /// The writes, in this order.
    writes: Vec<Write>,
    /// Reconcile again after this time, even without a change.
    requeue_after: Option<Duration>,
}

impl ReconcileResult {
    fn none() -> Self {
        Self::default()
    }

    fn requeue_after(&mut self, after: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(after, |it| it.min(after)));
    }
}

impl From<Vec<Write>> for ReconcileResult {
    fn from(writes: Vec<Write>) -> Self {
        Self { writes, requeue_after: None }
    }
}

/// Returns the chosen controllers, in the order in which they run.
fn chosen(options: Controllers) -> Vec<Controller> {
    let mut all = Vec::new();
    if options.namespaces {
        all.push(namespaces::CONTROLLER);
    }
    if options.definitions {
        all.push(crds::CONTROLLER);
    }
    if options.workloads {
        all.extend(workloads::CONTROLLERS);
        all.extend([quotas::CONTROLLER, budgets::CONTROLLER]);
    }
    if options.kubelet {
        all.extend(kubelet::CONTROLLERS);
    }
    if options.garbage {
        all.push(garbage::CONTROLLER);
    }
    all
}
