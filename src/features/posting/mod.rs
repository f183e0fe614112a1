//! Posts Kubernetes events: in order for each object, concurrently for different objects, and without delaying anything else.
//!
//! `logic/background/posting.rs` decides the content of an event; scripts and loggers put events into `call/event_queue.rs`. A failure is
//! logged and the event dropped: events are for users, nothing depends on them.
//!
//! One task posts all events. It keeps nothing of objects without events, so it costs nothing when idle and has no workers that
//! `posting.idle_timeout` could end.

mod conditions;
mod dispatcher;
mod failures;

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{self, Duration},
};
use tokio_util::sync::CancellationToken;

use self::dispatcher::Dispatcher;
use crate::call::{EventQueue, EventReceiver};
use crate::ports::{Clock, Cluster};
use crate::telemetry::OperatorFailures;

/// The receiver of the cluster, once it is connected.
pub type Connected = oneshot::Receiver<Arc<dyn Cluster>>;

/// Posts events until `stop`; then posts the waiting ones, for at most `grace`.
///
/// If the operator never connects to a cluster, the events are lost.
pub async fn run(
    posts: EventQueue,
    connected: Connected,
    clock: Clock,
    failures: OperatorFailures,
    (stop, grace): (CancellationToken, Duration),
) {
    let (Some(mut inbox), Ok(cluster)) = (posts.take(), connected.await) else { return };
    let mut dispatcher = Dispatcher::new(Arc::clone(&cluster), posts.settings(), clock);
    tokio::select! {
        biased; // only the first one ends
        () = serve(&mut dispatcher, &mut inbox, &stop) => {}
        () = failures::run(failures.clone(), &posts, &cluster) => {}
        () = conditions::run(failures, &posts, &cluster, clock) => {}
    }
    while let Ok(post) = inbox.try_recv() {
        dispatcher.accept(post);
    }
    if time::timeout(grace, dispatcher.finish()).await.is_err() {
        tracing::warn!(
            target: "kopf.events",
            "{} Kubernetes events were not posted before the exit (settings.queueing.exit_timeout).",
            dispatcher.len()
        );
    }
}

async fn serve(dispatcher: &mut Dispatcher, inbox: &mut EventReceiver, stop: &CancellationToken) {
    loop {
        tokio::select! {
            // A posted event makes room for the next one; a stop can wait, because waiting events are still posted.
            biased;
            () = dispatcher.advance(), if !dispatcher.is_idle() => {}
            () = stop.cancelled() => return,
            post = inbox.recv(), if dispatcher.has_room() => match post {
                Some(post) => dispatcher.accept(post),
                // All senders are dropped.
                None => return,
            },
        }
    }
}
