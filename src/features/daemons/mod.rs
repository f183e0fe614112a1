//! Daemons and timers: functions that run in the background of an object, from its first sight until its end.
//!
//! A cycle of the object spawns and stops them (`object.rs`); [`Daemons`] owns all of them, and one of its tasks runs those that have
//! something to do (`driver.rs`, `work.rs`, `runner.rs`). All sides meet in the [`Daemon`]: what it is, what it
//! does, and whether it must stop. When it runs is decided in `logic/schedule`, how hard it is pressed to stop in
//! `logic/stopping`.

mod all;
mod current_handlers;
mod daemon;
mod driver;
mod moment;
mod object;
mod patches;
mod runner;
#[cfg(test)]
mod tests;
mod work;

pub use self::{
    all::Daemons,
    current_handlers::{Bound, CurrentHandler, CurrentHandlers},
    daemon::Daemon,
    object::{LastSeen, ObjectDaemons, SpawnContext},
};

use std::sync::Arc;

use crate::logic::resource::Resource;
use crate::ports::{Clock, Cluster, Kin, Scripts};
use crate::settings::Settings;

/// What all daemons and timers of one resource share.
pub struct Base {
    /// The resource of their objects.
    pub resource: Arc<Resource>,
    /// What their objects have in common.
    pub kin: Arc<Kin>,
    /// Where their patches go.
    pub cluster: Arc<dyn Cluster>,
    /// Who calls them.
    pub scripts: Arc<dyn Scripts>,
    /// As they are after start-up.
    pub settings: Arc<Settings>,
    /// The time.
    pub clock: Clock,
    /// All that run in this operator.
    pub daemons: Arc<Daemons>,
    /// Their handlers.
    pub handlers: Arc<CurrentHandlers>,
}
