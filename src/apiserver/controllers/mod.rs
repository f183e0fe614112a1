//! What makes objects come alive: garbage collection, namespaces, workloads and Pods.
//!
//! Every controller is a pair of pure functions: which objects a change concerns, and what is to be done about one of them
//! (`World`, `Moment` → `Plan`). One loop feeds them all: it takes over the changes of the server as a burst, asks about each
//! concerned object once, and does what they wish; their own writes are the next burst. Controllers look at levels, never at
//! single events, so that a wish that fails or comes too late is wished again.
//!
//! Nothing runs while nothing changes: the loop sleeps until a change or the next due moment.

mod access;
mod budgets;
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
mod world;
mod write;

use std::time::Duration;

use self::{
    time::Moment,
    world::{Key, News, World},
    write::Write,
};

pub use self::{
    kubelet::logs::{LogParams, Logs, logs},
    run::run,
};

/// Which controllers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controllers {
    /// Deletes what has lost its owners, and serves the propagation policies of deletions.
    pub garbage: bool,
    /// Fills new namespaces, and empties those that are deleted.
    pub namespaces: bool,
    /// Deletes the objects of deleted CRDs. In a cluster the API server itself does this.
    pub definitions: bool,
    /// Deployments, `ReplicaSet`s, `StatefulSet`s, `DaemonSet`s, Jobs, `CronJob`s, Services, quotas, disruption budgets.
    pub workloads: bool,
    /// One node that pretends to run Pods, and binds volume claims.
    pub kubelet: bool,
}

impl Controllers {
    /// All of them.
    pub const ALL: Self =
        Self { garbage: true, namespaces: true, definitions: true, workloads: true, kubelet: true };
}

/// One controller.
#[derive(Clone, Copy)]
struct Controller {
    /// Its whole bodies are needed.
    reads: &'static [&'static str],
    /// Collects the objects that a change concerns.
    concerns: fn(&World, &News<'_>, &mut Vec<Key>),
    /// What is to be done about one of them now.
    decide: fn(&World, &Key, &Moment) -> Plan,
    /// What goes on with an object, if this takes time: the time since this text changed is given to `decide`.
    step: fn(&World, &Key) -> String,
    /// What there is to be asked about at the start beside the objects that are there.
    start: &'static [(&'static str, &'static str)],
}

/// Most controllers only look at stamps.
const NO_STEP: fn(&World, &Key) -> String = |_, _| String::new();

/// What a controller wants.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plan {
    /// In this order.
    writes: Vec<Write>,
    /// Ask again then, even if nothing changes.
    again: Option<Duration>,
}

impl Plan {
    fn none() -> Self {
        Self::default()
    }

    fn again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |it| it.min(after)));
    }
}

impl From<Vec<Write>> for Plan {
    fn from(writes: Vec<Write>) -> Self {
        Self { writes, again: None }
    }
}

/// The chosen controllers, in the order in which they are asked.
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
