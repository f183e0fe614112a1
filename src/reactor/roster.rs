//! Which streams run: starts those that should and do not, ends those that should not and do.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    observer::{Target, Targets},
    seen::Seen,
    serving::Serving,
    streams::{Farewell, Streaming},
};

/// The running streams of an operator.
pub(super) struct Roster {
    running: BTreeMap<Target, Running>,
    /// Those that were told to end and have not yet: the next stream of the same target waits for it, so that no object has
    /// two workers, and takes over what it has seen.
    ending: BTreeMap<Target, Legacy>,
    tasks: JoinSet<()>,
    /// The operator ends.
    exit: CancellationToken,
}

/// A stream and how it is ended.
struct Running {
    serving: Arc<Serving>,
    farewell: oneshot::Sender<Farewell>,
    legacy: Legacy,
}

/// What a stream leaves at its end.
type Legacy = oneshot::Receiver<Option<Seen>>;

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
        wanted: &Targets,
        is_gone: impl Fn(&Target) -> bool,
        serving: impl Fn(&Target, &Targets) -> Serving,
    ) {
        let stays = |target: &Target, running: &mut Running| {
            let Some((wanted, handlers)) = wanted.get_key_value(target) else { return false };
            running.serving.resource.is_described_as(&wanted.0)
                && running.serving.handlers.are(handlers)
        };
        for (target, running) in self.running.extract_if(.., |it, running| !stays(it, running)) {
            let farewell = match (wanted.contains_key(&target), is_gone(&target)) {
                (true, _) => Farewell::Replaced,
                (false, true) => Farewell::Gone,
                (false, false) => Farewell::Unserved,
            };
            // A stream that has ended needs to be told nothing.
            let _unheard = running.farewell.send(farewell);
            self.ending.insert(target, running.legacy);
        }
        self.ending.retain(|_, legacy| matches!(legacy.try_recv(), Err(TryRecvError::Empty)));
        for target in wanted.keys() {
            if !self.running.contains_key(target) {
                let running = self.start(target, Arc::new(serving(target, wanted)));
                self.running.insert(target.clone(), running);
            }
        }
    }

    fn start(&mut self, target: &Target, serving: Arc<Serving>) -> Running {
        let (farewell, told) = oneshot::channel();
        let (leave, legacy) = oneshot::channel();
        let before = self.ending.remove(target);
        let exit = self.exit.clone();
        let mut stream = Streaming::new(Arc::clone(&serving), target.1.clone());
        self.tasks.spawn(async move {
            if let Some(before) = before
                && let Ok(Some(seen)) = before.await
            {
                stream.inherit(seen);
            }
            // Perhaps nobody comes after it.
            let _unclaimed = leave.send(stream.run(told, exit).await);
        });
        Running { serving, farewell, legacy }
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
