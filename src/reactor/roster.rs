//! Which streams run: starts those that should and do not, ends those that should not and do.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    observer::{Target, Targets},
    serving::Serving,
    streams::{Farewell, Streaming},
};

/// The running streams of an operator.
pub(super) struct Roster {
    running: BTreeMap<Target, Running>,
    /// Those that were told to end and have not yet: the next stream of the same target waits for it, so that no object has
    /// two workers.
    ending: BTreeMap<Target, CancellationToken>,
    tasks: JoinSet<()>,
    /// The operator ends.
    exit: CancellationToken,
}

/// A stream and how it is ended.
struct Running {
    serving: Arc<Serving>,
    farewell: oneshot::Sender<Farewell>,
    ended: CancellationToken,
}

impl Roster {
    /// Nothing runs.
    pub(super) fn new() -> Self {
        Roster {
            running: BTreeMap::new(),
            ending: BTreeMap::new(),
            tasks: JoinSet::new(),
            exit: CancellationToken::new(),
        }
    }

    /// Makes the running streams those that are wanted; `serving` prepares one for its resource, `is_gone` tells whether there
    /// is nothing to watch any more where one has run.
    ///
    /// A stream whose resource is described otherwise than before, or has other handlers, is replaced by a new one.
    pub(super) fn adjust(
        &mut self,
        wanted: Targets,
        is_gone: impl Fn(&Target) -> bool,
        serving: impl Fn(&Target, &Targets) -> Serving,
    ) {
        let stays = |target: &Target, running: &mut Running| {
            let Some((wanted, handlers)) = wanted.get_key_value(target) else { return false };
            running.serving.resource.is_described_as(&wanted.0)
                && running.serving.handlers.are(handlers)
        };
        for (target, running) in self.running.extract_if(.., |it, running| !stays(it, running)) {
            let farewell = if is_gone(&target) { Farewell::Gone } else { Farewell::Unserved };
            // A stream that has ended needs to be told nothing.
            let _unheard = running.farewell.send(farewell);
            self.ending.insert(target, running.ended);
        }
        self.ending.retain(|_, ended| !ended.is_cancelled());
        for target in wanted.keys() {
            if !self.running.contains_key(target) {
                let running = self.start(target, Arc::new(serving(target, &wanted)));
                self.running.insert(target.clone(), running);
            }
        }
    }

    fn start(&mut self, target: &Target, serving: Arc<Serving>) -> Running {
        let (farewell, told) = oneshot::channel();
        let ended = CancellationToken::new();
        let running = Running { serving: Arc::clone(&serving), farewell, ended: ended.clone() };
        let before = self.ending.get(target).cloned();
        let exit = self.exit.clone();
        let stream = Streaming::new(serving, target.1.clone());
        self.tasks.spawn(async move {
            let _told_when_ended = ended.drop_guard();
            if let Some(before) = before {
                before.cancelled().await;
            }
            stream.run(told, exit).await;
        });
        running
    }

    /// Takes note of streams that have ended, for as long as it is polled.
    pub(super) async fn attend(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        std::future::pending::<()>().await;
    }

    /// Ends all streams, side by side, and waits for their workers.
    pub(super) async fn end(mut self) {
        self.exit.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
