//! The election of a leader among replicas: keeps one Lease, or waits for it.
//!
//! All decisions are in `logic/leadership/`; here are the requests and the clock. The election lasts as long as the
//! operator: also while it ends, the lease is renewed, and it is given back as the very last thing.

mod candidate;

use std::sync::Arc;

use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::candidate::Candidate;
use crate::logic::leadership::{Role, Terms};
use crate::ports::{Clock, Cluster, Health};

/// Whether this operator may act. Clones share it. Without an election it always may.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<watch::Sender<Role>>);

impl Default for Leadership {
    fn default() -> Self {
        Leadership(Arc::new(watch::Sender::new(Role::Leader)))
    }
}

impl Leadership {
    /// Whether it may act now.
    pub fn is_leading(&self) -> bool {
        *self.0.borrow() == Role::Leader
    }

    /// Waits until it may act.
    pub async fn until_leading(&self) {
        // The sender lives as long as `self`: there is no error to see.
        drop(self.0.subscribe().wait_for(|it| *it == Role::Leader).await);
    }

    fn set(&self, role: Role) {
        self.0.send_replace(role);
    }
}

/// A running election.
pub struct Election {
    leadership: Leadership,
    task: JoinSet<()>,
    stop: CancellationToken,
}

impl Election {
    /// Stands for election; a standby at first.
    pub fn start(cluster: Arc<dyn Cluster>, terms: Terms, clock: Clock, health: Health) -> Self {
        let leadership = Leadership(Arc::new(watch::Sender::new(Role::Standby)));
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
        let mut roles = self.leadership.0.subscribe();
        loop {
            if let Role::Lost(reason) = &*roles.borrow_and_update() {
                return reason.clone();
            }
            if roles.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Gives the lease back, so that another replica can lead at once.
    pub async fn end(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }
}
