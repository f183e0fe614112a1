//! Schedules of the operator: `kopf.every` and `kopf.cron`.
//!
//! One task per schedule waits for its next slot, takes it in the Lease (`lease.rs`), and then runs the function (`schedule.rs`).
//! `logic/schedules/` decides what is due. A reload keeps the tasks of schedules that it keeps, whatever they wait for.

mod base;
mod lease;
mod schedule;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use tokio::{sync::watch, task::JoinSet, time};
use tokio_util::sync::CancellationToken;

pub use self::base::Base;
use self::{
    base::TARGET,
    lease::Lease,
    schedule::{BoundSchedule, Schedule},
};
use crate::call::LiveGeneration;
use crate::logic::handlers::handler::Handler;
use crate::sorted::CollectSorted as _;

/// The schedules of an operator, which each generation replaces.
pub struct Schedules(watch::Sender<Arc<LiveGeneration>>);

impl Schedules {
    /// Creates the schedules of the first generation.
    pub fn new(live: &Arc<LiveGeneration>) -> Self {
        Schedules(watch::Sender::new(Arc::clone(live)))
    }

    /// Replaces the schedules with those of the next generation.
    pub fn renew(&self, live: &Arc<LiveGeneration>) {
        self.0.send_replace(Arc::clone(live));
    }

    /// Runs the schedules until `stop`. Running functions may then continue for at most `settings.queueing.exit_timeout`.
    pub fn run(&self, base: Base, stop: CancellationToken) -> impl Future<Output = ()> + use<> {
        let mut live = self.0.subscribe();
        async move {
            let exit_timeout = base.settings.lock().queueing.exit_timeout;
            let lease = Lease::new(&base);
            let base = Arc::new(base);
            let (mut members, mut tasks) = (Members::default(), JoinSet::new());
            loop {
                let present = Arc::clone(&live.borrow_and_update());
                members.adjust(&present, |key, current| {
                    let schedule = Schedule::new(Arc::clone(&base), lease.clone(), key, current);
                    tasks.spawn(schedule.run());
                });
                drop(present);
                tokio::select! {
                    biased; // the end first
                    () = stop.cancelled() => break,
                    changed = live.changed() => if changed.is_err() {
                        stop.cancelled().await;
                        break;
                    },
                    Some(_) = tasks.join_next() => {}
                }
            }
            drop(members);
            let ends = async { while tasks.join_next().await.is_some() {} };
            if time::timeout(exit_timeout, ends).await.is_err() {
                tracing::warn!(
                    target: TARGET,
                    "Schedules are still running after {} s (settings.queueing.exit_timeout): their runs are cancelled and not repeated.",
                    exit_timeout.as_secs_f64()
                );
            }
        }
    }
}

/// The senders of the present handlers, by schedule. A schedule ends when its sender is dropped.
#[derive(Default)]
struct Members(BTreeMap<String, watch::Sender<BoundSchedule>>);

impl Members {
    /// Follows a generation: `start` starts a schedule.
    fn adjust(
        &mut self,
        live: &LiveGeneration,
        mut start: impl FnMut(String, watch::Receiver<BoundSchedule>),
    ) {
        let handlers = live.generation.registry.handlers();
        let handlers: BTreeMap<_, _> = handlers
            .iter()
            .filter(|it| it.kind.is_scheduled())
            .map(|it| (key(it), it))
            .collect_map();
        let known: Arc<BTreeSet<_>> = Arc::new(handlers.keys().cloned().collect());
        self.0.retain(|key, _| known.contains(key));
        for (key, handler) in handlers {
            let bound = BoundSchedule {
                handler: Arc::clone(handler),
                services: Arc::clone(&live.services),
                known: Arc::clone(&known),
            };
            if let Some(sender) = self.0.get(&key) {
                // Each generation has new function references, also of functions that were not edited.
                sender.send_replace(bound);
                continue;
            }
            let sender = watch::Sender::new(bound);
            start(key.clone(), sender.subscribe());
            self.0.insert(key, sender);
        }
    }
}

/// Returns the key of a schedule in the Lease: `handlers.lua/cron/report`. With the file, operators in one namespace that have the same
/// names do not take the slots of each other.
fn key(handler: &Handler) -> String {
    let file = Path::new(handler.file()).file_name().and_then(|it| it.to_str());
    let file = file.unwrap_or_default();
    format!("{file}/{}/{}", handler.kind.declared_by(), handler.id)
}
