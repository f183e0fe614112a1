//! What runs beside the streams: it starts after the login and is told to stop when the streams have ended.

use std::future::Future;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The companions of the streams of one operator: peering, posting and the like.
///
/// None of them can take the operator down: each minds its own errors, tells them and goes on.
pub(super) struct Companions {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Companions {
    /// Nobody yet.
    pub(super) fn new() -> Self {
        Companions { tasks: JoinSet::new(), stop: CancellationToken::new() }
    }

    /// Starts one; it ends soon after its token is cancelled.
    pub(super) fn add<F>(&mut self, life: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let life: BoxFuture<'static, ()> = Box::pin(life(self.stop.clone()));
        self.tasks.spawn(life);
    }

    /// Tells all to stop, and waits until they have.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
