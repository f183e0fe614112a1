//! Posts Kubernetes events: in order for each object, side by side for different ones, and never in anybody's way.
//!
//! What is in an event is decided in `logic/posting.rs`; scripts and loggers put them into `ports/posts.rs`. A failure is told
//! and forgotten: events are for people who look, nothing depends on them.
//!
//! One task does it all. Of an object without events nothing is kept, so an idle poster costs nothing and holds no place; there
//! is nothing left for `posting.idle_timeout` to end.

mod desk;

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{self, Duration},
};
use tokio_util::sync::CancellationToken;

use self::desk::Desk;
use crate::ports::{Clock, Cluster, Inbox, Posts};

/// Where events go, once it is known.
pub type Connected = oneshot::Receiver<Arc<dyn Cluster>>;

/// Posts events until it is told to stop; then those that wait, for so long.
///
/// Without a cluster, because nobody ever logged in, the events are lost.
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
            "{} Kubernetes events could not be posted before the exit; settings.queueing.exit_timeout is how long it waits.",
            desk.len()
        );
    }
}

async fn serve(desk: &mut Desk, inbox: &mut Inbox, stop: &CancellationToken) {
    loop {
        tokio::select! {
            // What is done makes room for what is next; a stop needs no hurry, for what waits is still posted.
            biased;
            () = desk.advance(), if !desk.is_idle() => {}
            () = stop.cancelled() => return,
            post = inbox.recv(), if desk.has_room() => match post {
                Some(post) => desk.accept(post),
                // Nobody can post any more.
                None => return,
            },
        }
    }
}
