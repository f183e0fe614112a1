//! State that all schedules of an operator share.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Memo, Scripts};
use crate::logic::schedules::slots::LeaseRef;
use crate::ports::{Clock, Cluster, Leadership, Pauses};
use crate::settings::Settings;

/// The log target of schedules.
pub(super) const TARGET: &str = "kopf.schedules";

/// The state that all schedules of an operator share.
pub struct Base {
    /// The cluster with the Lease.
    pub cluster: Arc<dyn Cluster>,
    /// The address of the Lease.
    pub place: LeaseRef,
    /// The scripts with the functions.
    pub scripts: Arc<dyn Scripts>,
    /// The clock of cron expressions, and for the times in the Lease.
    pub clock: Clock,
    /// The clock for pauses and timeouts.
    pub steady: Clock,
    /// The settings as start-up handlers have left them.
    pub settings: Arc<Mutex<Settings>>,
    /// The memo of the operator.
    pub memo: Memo,
    /// The leadership: with an election, only a leader runs schedules.
    pub leadership: Leadership,
    /// The pauses: no schedules run while the operator is paused.
    pub pauses: Pauses,
}
