//! Which streams run: starts those that should and do not, ends those that should not and do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{observer::Target, serving::Serving, streams::Streaming};

/// The running streams of an operator.
pub(super) struct Roster {
    running: BTreeMap<Target, CancellationToken>,
    tasks: JoinSet<()>,
}

impl Roster {
    /// Nothing runs.
    pub(super) fn new() -> Self {
        Roster { running: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// Makes the running streams those that are wanted; `serving` prepares one for its resource.
    pub(super) fn adjust(
        &mut self,
        wanted: BTreeSet<Target>,
        serving: impl Fn(&Target) -> Serving,
    ) {
        self.running.retain(|target, stop| {
            let stays = wanted.contains(target);
            if !stays {
                stop.cancel();
            }
            stays
        });
        for target in wanted {
            if !self.running.contains_key(&target) {
                let stop = CancellationToken::new();
                let stream = Streaming::new(Arc::new(serving(&target)), target.1.clone());
                self.tasks.spawn(stream.run(stop.clone()));
                self.running.insert(target, stop);
            }
        }
    }

    /// Takes note of streams that have ended, for as long as it is polled.
    pub(super) async fn attend(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        std::future::pending::<()>().await;
    }

    /// Ends all streams, side by side, and waits for their workers.
    pub(super) async fn end(mut self) {
        self.running.values().for_each(CancellationToken::cancel);
        while self.tasks.join_next().await.is_some() {}
    }
}
