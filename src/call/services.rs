//! The services that an operator offers to every call of its scripts.

use crate::call::{EventQueue, Indexes, Locks, Notices, Reconcilers};
use crate::ports::{Clock, Kube, Leadership};
use crate::telemetry::OperatorFailures;

/// The services shared by all calls of one operator.
#[derive(Clone, Debug, Default)]
pub struct CallServices {
    /// The in-memory indexes, by id: kwargs of every handler and filter.
    pub indexes: Indexes,
    /// The queue of Kubernetes events to post.
    pub posts: EventQueue,
    /// The clock for stored timestamps.
    pub clock: Clock,
    /// The cluster, for the requests of scripts.
    pub kube: Kube,
    /// Whether calls may continue.
    pub leadership: Leadership,
    /// The locks of scripts.
    pub locks: Locks,
    /// The objects of reconcile handlers.
    pub reconcilers: Reconcilers,
    /// The failures of handlers, by object.
    pub failures: OperatorFailures,
    /// The warnings that are logged once.
    pub notices: Notices,
    /// Whether this is `kopf plan`: `ctx.dry`.
    pub is_dry: bool,
}
