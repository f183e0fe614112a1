//! Tasks that run alongside the streams: they start after the login and are stopped after the streams have ended.

use std::future::Future;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The background tasks of one operator: peering, posting and the like.
///
/// None of them can stop the operator: each logs its own errors and keeps running.
pub(in crate::reactor) struct BackgroundTasks {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl BackgroundTasks {
    /// Creates an empty set.
    pub(in crate::reactor) fn new() -> Self {
        BackgroundTasks { tasks: JoinSet::new(), stop: CancellationToken::new() }
    }

    /// Starts a task, which must end soon after its token is cancelled.
    pub(in crate::reactor) fn add<F>(&mut self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task: BoxFuture<'static, ()> = Box::pin(task(self.stop.clone()));
        self.tasks.spawn(task);
    }

    /// Cancels the tokens of all tasks, and waits for the tasks.
    pub(in crate::reactor) async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
