//! All streams of an operator: starts the wanted ones that do not run, and ends the running ones that are not wanted.

use std::collections::BTreeMap;

use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{KnownObjects, Stream, StreamEnd};
use crate::reactor::{
    object::context::{SharedContext, StreamContext},
    observer::{Target, Targets},
};

/// The streams of an operator.
pub(in crate::reactor) struct StreamSet {
    running: BTreeMap<Target, RunningStream>,
    /// Streams that must end and have not ended yet: the next stream of the same target waits for the handover, so that no object has two
    /// workers.
    ending: BTreeMap<Target, Handover>,
    tasks: JoinSet<()>,
    /// Cancelled at the end of the operator.
    exit: CancellationToken,
}

/// A stream, and the channel that ends it.
struct RunningStream {
    context: SharedContext,
    end: oneshot::Sender<StreamEnd>,
    handover: Handover,
}

/// The state that a stream passes to the next stream of the same target.
type Handover = oneshot::Receiver<Option<KnownObjects>>;

impl StreamSet {
    /// Creates an empty set.
    pub(in crate::reactor) fn new() -> Self {
        StreamSet {
            running: BTreeMap::new(),
            ending: BTreeMap::new(),
            tasks: JoinSet::new(),
            exit: CancellationToken::new(),
        }
    }

    /// Starts, replaces and ends streams to match the wanted ones. `context` returns the context for a target: the first one, or
    /// the next one if the previous one is outdated. `end` returns why an unwanted stream ends.
    ///
    /// A stream whose resource has another description than before is replaced by a new one; all others keep running.
    pub(in crate::reactor) fn adjust(
        &mut self,
        wanted: &Targets,
        end: impl Fn(&Target) -> StreamEnd,
        context: impl Fn(&Target, Option<&StreamContext>) -> Option<StreamContext>,
    ) {
        let stays = |target: &Target, running: &mut RunningStream| {
            let Some((wanted, _)) = wanted.get_key_value(target) else { return false };
            running.context.get().resource.is_described_as(&wanted.0)
        };
        for (target, running) in self.running.extract_if(.., |it, running| !stays(it, running)) {
            let is_wanted = wanted.contains_key(&target);
            let end = if is_wanted { StreamEnd::Replaced } else { end(&target) };
            // The stream may have ended by itself.
            let _unheard = running.end.send(end);
            self.ending.insert(target, running.handover);
        }
        self.ending.retain(|_, handover| matches!(handover.try_recv(), Err(TryRecvError::Empty)));
        for target in wanted.keys() {
            match self.running.get(target) {
                Some(running) => {
                    if let Some(next) = context(target, Some(&running.context.get())) {
                        running.context.replace(next);
                    }
                }
                None => {
                    if let Some(first) = context(target, None) {
                        let running = self.start(target, SharedContext::new(first));
                        self.running.insert(target.clone(), running);
                    }
                }
            }
        }
    }

    fn start(&mut self, target: &Target, context: SharedContext) -> RunningStream {
        let (end, signal) = oneshot::channel();
        let (leave, handover) = oneshot::channel();
        let before = self.ending.remove(target);
        let exit = self.exit.clone();
        let mut stream = Stream::new(context.clone(), target.1.clone());
        self.tasks.spawn(async move {
            if let Some(before) = before
                && let Ok(Some(known)) = before.await
            {
                stream.inherit(known);
            }
            // There may be no next stream.
            let _unclaimed = leave.send(stream.run(signal, exit).await);
        });
        RunningStream { context, end, handover }
    }

    /// Removes the tasks of ended streams; logs panics at their end, before which streams recover by themselves. Never completes.
    pub(in crate::reactor) async fn reap(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(target: "kopf.watch", "A watch-stream failed at its end: {error}");
            }
        }
        std::future::pending::<()>().await;
    }

    /// Ends all streams concurrently, and waits for their workers.
    pub(in crate::reactor) async fn end(mut self) {
        self.exit.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
