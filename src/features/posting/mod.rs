//! Posts Kubernetes events: in order for each object, concurrently for different objects, and without delaying anything else.
//!
//! `logic/posting.rs` decides the content of an event; scripts and loggers put events into `ports/posts.rs`. A failure is logged
//! and the event dropped: events are for people, nothing depends on them.
//!
//! One task does it all. It keeps nothing of objects without events, so it costs nothing when idle and has no workers that
//! `posting.idle_timeout` could end.

mod desk;

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{self, Duration},
};
use tokio_util::sync::CancellationToken;

use self::desk::Desk;
use crate::ports::{Clock, Cluster, Inbox, Posts};

/// Receives the cluster, once it is connected.
pub type Connected = oneshot::Receiver<Arc<dyn Cluster>>;

/// Posts events until told to stop; then posts the waiting ones, for at most `grace`.
///
/// If the operator never connects to a cluster, the events are lost.
pub async fn run(
    posts: Posts,
    connected: Connected,
    clock: Clock,
    (stop, grace): (CancellationToken, Duration),
) {
    let (Some(mut inbox), Ok(cluster)) = (posts.take(), connected.await) else { return };
    let mut desk = Desk::new(cluster, posts.settings(), clock);
    serve(&mut desk, &mut inbox, &stop).await;
    while let Ok(post) = inbox.try_recv() {
        desk.accept(post);
    }
    if time::timeout(grace, desk.finish()).await.is_err() {
        tracing::warn!(
            target: "kopf.posting",
            "{} Kubernetes events were not posted before the exit (settings.queueing.exit_timeout).",
            desk.len()
        );
    }
}

async fn serve(desk: &mut Desk, inbox: &mut Inbox, stop: &CancellationToken) {
    loop {
        tokio::select! {
            // A posted event makes room for the next one; a stop can wait, because waiting events are still posted.
            biased;
            () = desk.advance(), if !desk.is_idle() => {}
            () = stop.cancelled() => return,
            post = inbox.recv(), if desk.has_room() => match post {
                Some(post) => desk.accept(post),
                // All senders are gone.
                None => return,
            },
        }
    }
}
