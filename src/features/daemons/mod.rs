//! Daemons and timers: functions that run in the background of an object, from its first sight until its end.
//!
//! A cycle of the object spawns and stops them (`object.rs`); the operator's [`Team`] owns them, and one task of it brings those
//! forward that have something to do (`driver.rs`, `work.rs`, `runner.rs`). All sides meet in the [`Daemon`]: what it is, what it
//! does, and whether it must stop. When it runs is decided in `logic/schedule`, how hard it is pressed to stop in
//! `logic/stopping`.

mod daemon;
mod driver;
mod moment;
mod object;
mod patches;
mod roles;
mod runner;
mod team;
#[cfg(test)]
mod tests;
mod work;

pub use self::{
    daemon::Daemon,
    object::{Host, OfObject, Sight},
    roles::{Role, Roles},
    team::Team,
};

use std::sync::Arc;

use crate::logic::resource::Resource;
use crate::ports::{Clock, Cluster, Current, Facilities, Kin, Scripts};
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
    /// Where it is found what every call can reach.
    pub current: Current,
    /// All that run in this operator.
    pub team: Arc<Team>,
    /// What they are declared as.
    pub roles: Arc<Roles>,
}

impl Base {
    /// What a call that begins now can reach.
    fn facilities(&self) -> Arc<Facilities> {
        Arc::clone(&self.current.get().facilities)
    }
}
