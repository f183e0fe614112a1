//! State that all members of peerings share.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

use crate::features::leadership::Leadership;
use crate::logic::replicas::peering::{self, PeeringScope};
use crate::ports::{Clock, Cluster, Pauses};
use crate::settings::Settings;
use crate::telemetry::Health;

/// The log target of peering.
pub(super) const TARGET: &str = "kopf.peering";

/// The state that all members share.
#[derive(Clone)]
pub struct Common {
    /// The cluster that contains the peering objects.
    pub cluster: Arc<dyn Cluster>,
    /// The settings after the start-up handlers.
    pub settings: Arc<Settings>,
    /// The clock for records.
    pub clock: Clock,
    /// The key of this operator among peers.
    pub identity: String,
    /// Where members add and remove blockers.
    pub pauses: Pauses,
    /// The leadership: a standby reads, and writes nothing.
    pub leadership: Leadership,
    /// Where members report their health.
    pub health: Health,
}

/// The peering objects that were read.
pub(super) type ReadPlaces = Arc<watch::Sender<BTreeSet<PeeringScope>>>;

impl Common {
    /// Returns the name of a peering object's blocker.
    pub(super) fn blocker(&self, (resource, namespace): &PeeringScope) -> String {
        peering::blocker(&self.settings.peering.name, &resource.group, namespace.as_deref())
    }
}
