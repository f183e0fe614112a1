//! Daemons and timers: functions that run in the background for an object, from its first event until its deletion.
//!
//! The cycles of an object start and stop them (`object.rs`). [`Daemons`] owns all of them, and one of its tasks runs those that
//! are woken (`driver.rs`, `work.rs`, `runner.rs`). The [`Daemon`] connects both sides: its handler, its present stage, and whether
//! it must stop. `logic/background/schedule` decides when it runs, `logic/background/stopping` how its stop is escalated.

mod all;
mod current_handlers;
mod daemon;
mod driver;
mod exclusion;
mod fair_queue;
mod level;
mod moment;
mod object;
mod patches;
mod reconciling;
mod runner;
#[cfg(test)]
mod tests;
mod turns;
mod work;

pub use self::{
    all::Daemons,
    current_handlers::{BoundHandler, CurrentHandler, CurrentHandlers},
    daemon::Daemon,
    object::{LastSeen, ObjectDaemons, SpawnContext},
};

use std::sync::Arc;

use crate::call::{ObjectPacker, Scripts};
use crate::features::indexes::Readiness;
use crate::logic::{discovery::namespaces::NamespacePattern, object::resource::Resource};
use crate::ports::{Clock, Cluster};
use crate::settings::Settings;
use crate::telemetry::Metrics;

/// The state that all daemons and timers of one resource share.
pub struct Base {
    /// The resource of their objects.
    pub resource: Arc<Resource>,
    /// Compresses the JSON of their objects, which is kept in memory.
    pub packer: Arc<ObjectPacker>,
    /// The target of their patches.
    pub cluster: Arc<dyn Cluster>,
    /// The scripts with their functions.
    pub scripts: Arc<dyn Scripts>,
    /// The settings after the start-up handlers.
    pub settings: Arc<Settings>,
    /// The clock for start times and limits.
    pub clock: Clock,
    /// All daemons and timers of the operator.
    pub daemons: Arc<Daemons>,
    /// The handlers of the live generation.
    pub handlers: Arc<CurrentHandlers>,
    /// The readiness of the indexes: whether the children of reconcile handlers are listed.
    pub readiness: Readiness,
    /// The namespaces that the operator serves; `None` is all of them.
    pub namespaces: Option<Arc<[NamespacePattern]>>,
    /// Counts the calls of reconcile handlers.
    pub metrics: Metrics,
}
