//! Which streams run: starts those that should and do not, ends those that should not and do.

use std::collections::BTreeMap;

use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    observer::{Target, Targets},
    post::Post,
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
    post: Post,
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

    /// Makes the running streams those that are wanted. `serving` prepares what serves a target: anew for one that has no
    /// stream, and in the place of what served it before if that is not good any more. `farewell` is for a stream that nobody
    /// wants.
    ///
    /// A stream whose resource is described otherwise than before is replaced by a new one; all others go on.
    pub(super) fn adjust(
        &mut self,
        wanted: &Targets,
        farewell: impl Fn(&Target) -> Farewell,
        serving: impl Fn(&Target, Option<&Serving>) -> Option<Serving>,
    ) {
        let stays = |target: &Target, running: &mut Running| {
            let Some((wanted, _)) = wanted.get_key_value(target) else { return false };
            running.post.get().resource.is_described_as(&wanted.0)
        };
        for (target, running) in self.running.extract_if(.., |it, running| !stays(it, running)) {
            let is_wanted = wanted.contains_key(&target);
            let farewell = if is_wanted { Farewell::Replaced } else { farewell(&target) };
            // A stream that has ended needs to be told nothing.
            let _unheard = running.farewell.send(farewell);
            self.ending.insert(target, running.legacy);
        }
        self.ending.retain(|_, legacy| matches!(legacy.try_recv(), Err(TryRecvError::Empty)));
        for target in wanted.keys() {
            match self.running.get(target) {
                Some(running) => {
                    if let Some(successor) = serving(target, Some(&running.post.get())) {
                        running.post.hand_over(successor);
                    }
                }
                None => {
                    if let Some(serving) = serving(target, None) {
                        let running = self.start(target, Post::new(serving));
                        self.running.insert(target.clone(), running);
                    }
                }
            }
        }
    }

    fn start(&mut self, target: &Target, post: Post) -> Running {
        let (farewell, told) = oneshot::channel();
        let (leave, legacy) = oneshot::channel();
        let before = self.ending.remove(target);
        let exit = self.exit.clone();
        let mut stream = Streaming::new(post.clone(), target.1.clone());
        self.tasks.spawn(async move {
            if let Some(before) = before
                && let Ok(Some(seen)) = before.await
            {
                stream.inherit(seen);
            }
            // Perhaps nobody comes after it.
            let _unclaimed = leave.send(stream.run(told, exit).await);
        });
        Running { post, farewell, legacy }
    }

    /// Removes streams that have ended, and reports bugs at their end. Before it, streams overcome bugs by themselves.
    pub(super) async fn attend(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(target: "kopf.watching", "A watch-stream failed at its end: {error}");
            }
        }
        std::future::pending::<()>().await;
    }

    /// Ends all streams, side by side, and waits for their workers.
    pub(super) async fn end(mut self) {
        self.exit.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
