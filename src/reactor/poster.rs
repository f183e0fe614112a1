//! Whoever posts Kubernetes events, from the login to the end of the clean-up handlers.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::operator::Connect;
use crate::features::posting;
use crate::ports::{Clock, Posts};
use crate::settings::Settings;

/// Whoever posts events, from the start-up handlers to the clean-up handlers.
pub(super) struct Poster {
    task: JoinSet<()>,
    stop: CancellationToken,
}

impl Poster {
    /// Starts; the returned `connect` tells it the cluster.
    pub(super) fn start(
        connect: Connect,
        posts: &Posts,
        settings: &Settings,
        clock: Clock,
    ) -> (Connect, Self) {
        let (tell, told) = oneshot::channel();
        let (stop, grace) = (CancellationToken::new(), settings.queueing.exit_timeout);
        let mut task = JoinSet::new();
        task.spawn(posting::run(posts.clone(), told, clock, (stop.clone(), grace)));
        let tell = Arc::new(Mutex::new(Some(tell)));
        let connect: Connect = Box::new(move |with| {
            let (connecting, tell) = (connect(with), Arc::clone(&tell));
            Box::pin(async move {
                let cluster = connecting.await?;
                if let Some(tell) = tell.lock().take() {
                    // It may have ended already; then there is nothing to tell.
                    drop(tell.send(Arc::clone(&cluster)));
                }
                Ok(cluster)
            })
        });
        (connect, Poster { task, stop })
    }

    /// Lets it post what waits, and waits for it.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }
}
