//! The services that an operator offers to every call of its scripts.

use crate::call::{EventQueue, Indexes, Locks, Notices, Reconcilers};
use crate::ports::{Clock, Kube, Leadership};
use crate::telemetry::Failures;

/// The services shared by all calls of one operator.
#[derive(Clone, Debug, Default)]
pub struct CallServices {
    /// The in-memory tables, by id: kwargs of every handler and filter.
    pub indexes: Indexes,
    /// Receives Kubernetes events.
    pub posts: EventQueue,
    /// The clock for stored timestamps.
    pub clock: Clock,
    /// The cluster.
    pub kube: Kube,
    /// Whether calls may continue.
    pub leadership: Leadership,
    /// The locks of scripts.
    pub locks: Locks,
    /// The objects of reconcile handlers.
    pub reconcilers: Reconcilers,
    /// The handlers of objects that fail.
    pub failures: Failures,
    /// What was warned of once.
    pub notices: Notices,
}
