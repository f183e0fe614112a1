//! Leader election among replicas: holds one Lease, or waits for it.
//!
//! All decisions are in `logic/replicas/leadership/`; this module has the requests and the clock. The election lasts as long as the
//! operator: the lease is also renewed during shutdown and clean-up handlers. After its release, only the last events are posted and,
//! if no other replica takes it, the webhooks removed.

mod candidate;
mod released;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
pub use self::released::Released;
use crate::logic::replicas::leadership::{ReplicaRole, Terms};
pub use crate::ports::Leadership;
use crate::ports::{Clock, Cluster};
use crate::telemetry::Health;

/// A running leader election.
pub struct Election {
    leadership: Leadership,
    task: JoinSet<Option<Released>>,
    stop: CancellationToken,
}

impl Election {
    /// Joins the election, as a standby at first. After this call, the cluster adapter sends requests that write only while this replica
    /// may act.
    pub fn start(
        cluster: Arc<dyn Cluster>,
        terms: Terms,
        (clock, health): (Clock, Health),
        leadership: Leadership,
    ) -> Self {
        leadership.publish(&ReplicaRole::Standby, None);
        cluster.fence(leadership.clone());
        let stop = CancellationToken::new();
        let candidate = Candidate::new(cluster, terms, (clock, health), leadership.clone());
        let mut task = JoinSet::new();
        task.spawn(candidate.run(stop.clone()));
        Election { leadership, task, stop }
    }

    /// Returns whether this operator may act.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until the leadership is lost; returns the reason. No action is allowed after that.
    pub async fn lost(&self) -> String {
        self.leadership.lost().await
    }

    /// Releases the lease, so that another replica can lead at once. Returns it; `None` if this replica did not lead, or could not
    /// release it.
    pub async fn end(mut self) -> Option<Released> {
        self.stop.cancel();
        self.task.join_next().await?.ok().flatten()
    }
}
