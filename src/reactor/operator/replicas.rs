//! This operator among others: its replicas, which elect a leader, and other operators, found by peering.

use std::sync::Arc;

use super::{background_tasks::BackgroundTasks, serve::Serve};
use crate::features::{
    leadership::{Election, Leadership, Released},
    peering::{self, Common, PeeringTargets},
};
use crate::logic::replicas::{leadership::Terms, peering::PeeringIdentity};
use crate::ports::Cluster;
use crate::reactor::{generation::shared::Shared, operator::OperatorFailure};

/// The leader election among the replicas of this operator, if enabled.
pub(in crate::reactor) struct Replicas {
    election: Option<Election>,
    leadership: Leadership,
    /// The name of this operator among peers. Replicas with leader election are one operator for others, and never peers of each other.
    identity: String,
}

impl Replicas {
    /// Joins the leader election, if the settings enable it.
    pub(in crate::reactor) fn start(
        serve: &Serve<'_>,
        cluster: &Arc<dyn Cluster>,
    ) -> Result<Self, OperatorFailure> {
        let settings = &serve.settings.leadership;
        let leadership = serve.operator.current.get().services.leadership.clone();
        let (seen, help) =
            (leadership.clone(), "Whether this replica leads; 1 without an election");
        let metrics = serve.operator.health.metrics();
        metrics.sample("kopf_leader", help, move || i64::from(seen.is_leading()));
        if !settings.enabled {
            let identity = serve.identity.peer.clone();
            return Ok(Replicas { election: None, leadership, identity });
        }
        let namespace = settings.namespace.as_deref().unwrap_or(cluster.default_namespace());
        let terms = Terms {
            identity: serve.identity.process.clone(),
            name: settings.name.clone(),
            namespace: namespace.to_owned(),
            duration: settings.duration,
            renew_deadline: settings.renew_deadline,
            retry_period: settings.retry_period,
        };
        if let Some(problem) = terms.problem() {
            return Err(OperatorFailure::Settings(problem));
        }
        let identity = PeeringIdentity::of_replicas(namespace, &settings.name);
        let reporting = (serve.operator.clock, serve.operator.health.clone());
        let election = Election::start(Arc::clone(cluster), terms, reporting, leadership.clone());
        Ok(Replicas { election: Some(election), leadership, identity })
    }

    /// Returns whether this replica may act.
    pub(in crate::reactor) fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until this replica may no longer act; returns the reason.
    pub(in crate::reactor) async fn lost(&self) -> String {
        match &self.election {
            Some(election) => election.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether there is no other replica, because there is no election.
    pub(super) fn is_alone(&self) -> bool {
        self.election.is_none()
    }

    /// Releases the lease, so that another replica can lead. Returns it; `None` if this replica did not lead.
    pub(super) async fn end(self) -> Option<Released> {
        self.election?.end().await
    }
}

impl Serve<'_> {
    /// Starts peering with other operators, unless the settings disable it.
    pub(in crate::reactor) fn start_peering(
        &self,
        replicas: &Replicas,
        shared: &Shared<'_>,
        tasks: &mut BackgroundTasks,
    ) -> Option<PeeringTargets> {
        if self.settings.peering.standalone {
            return None;
        }
        let (targets, peering) = peering::prepare(Common {
            cluster: Arc::clone(shared.cluster),
            settings: Arc::clone(&self.settings),
            clock: self.operator.clock,
            identity: replicas.identity.clone(),
            pauses: shared.pauses.clone(),
            leadership: shared.leadership.clone(),
            health: self.operator.health.clone(),
        });
        tasks.add(|stop| peering.run(stop));
        Some(targets)
    }
}
