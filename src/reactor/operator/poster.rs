//! Posts Kubernetes events, from the start-up handlers to the end of the clean-up handlers.

use std::sync::Arc;

use tokio::{sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::call::CallServices;
use crate::features::posting;
use crate::ports::Cluster;
use crate::settings::Settings;

/// The task that posts Kubernetes events, from the start-up handlers to the end of the clean-up handlers.
pub(in crate::reactor) struct Poster {
    task: JoinSet<()>,
    stop: CancellationToken,
    /// Taken when the cluster is connected.
    cluster: Option<oneshot::Sender<Arc<dyn Cluster>>>,
}

impl Poster {
    /// Starts to collect events; they are posted as soon as the cluster is connected.
    pub(in crate::reactor) fn start(services: &CallServices, settings: &Settings) -> Self {
        let CallServices { posts, failures, clock, .. } = services;
        let (sender, receiver) = oneshot::channel();
        let (stop, grace) = (CancellationToken::new(), settings.queueing.exit_timeout);
        let mut task = JoinSet::new();
        let (posts, failures) = (posts.clone(), failures.clone());
        let stop_and_grace = (stop.clone(), grace);
        task.spawn(posting::run(posts, receiver, *clock, failures, stop_and_grace));
        Poster { task, stop, cluster: Some(sender) }
    }

    /// Posts events to this cluster from this call on.
    pub(in crate::reactor) fn connected(&mut self, cluster: &Arc<dyn Cluster>) {
        if let Some(sender) = self.cluster.take() {
            // The task may have ended already; then there is nothing to post.
            drop(sender.send(Arc::clone(cluster)));
        }
    }

    /// Posts the remaining events, and waits for that.
    pub(in crate::reactor) async fn end(mut self) {
        self.stop.cancel();
        // Without a cluster, nothing can be posted.
        self.cluster = None;
        while self.task.join_next().await.is_some() {}
    }
}
