//! The election of a leader among replicas: keeps one Lease, or waits for it.
//!
//! All decisions are in `logic/leadership/`; here are the requests and the clock. The election lasts as long as the
//! operator: also while it ends and cleans up, the lease is renewed. Only the last events are posted after it is given back.

mod candidate;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
use crate::logic::leadership::{Role, Terms};
pub use crate::ports::Leadership;
use crate::ports::{Clock, Cluster, Health};

/// A running election.
pub struct Election {
    leadership: Leadership,
    task: JoinSet<()>,
    stop: CancellationToken,
}

impl Election {
    /// Stands for election; a standby at first. Requests of the cluster that write are fenced from now on.
    pub fn start(
        cluster: Arc<dyn Cluster>,
        terms: Terms,
        (clock, health): (Clock, Health),
        leadership: Leadership,
    ) -> Self {
        leadership.publish(&Role::Standby, None);
        cluster.fence(leadership.clone());
        let stop = CancellationToken::new();
        let candidate = Candidate::new(cluster, terms, (clock, health), leadership.clone());
        let mut task = JoinSet::new();
        task.spawn(candidate.run(stop.clone()));
        Election { leadership, task, stop }
    }

    /// Whether this operator may act.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until the leadership is lost; gives the reason. From then on nothing may be done.
    pub async fn lost(&self) -> String {
        self.leadership.lost().await
    }

    /// Gives the lease back, so that another replica can lead at once.
    pub async fn end(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }
}
