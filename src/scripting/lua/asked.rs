//! A request to the actor of a script, from sending it to its response.
//!
//! Many thousands of requests may wait, so each is small.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    actor::{self, ActorRequest, ActorVm, To},
    raised,
};
use crate::logic::handlers::outcome::Raised;

/// Becomes ready when the VM does not respond; shared by all pending requests.
pub(super) type Stuck = Shared<BoxFuture<'static, ()>>;

/// Sends a request and waits for its response; dropping it cancels the call.
pub(super) struct ActorResponse<T> {
    /// Dropped once the request is sent.
    sending: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Box<T>>,
    /// Kept until the response: the actor of a replaced generation finishes its calls.
    _requests: mpsc::Sender<ActorRequest>,
    stuck: Stuck,
    /// Converts the error if there will be no response.
    gone: fn(Raised) -> T,
}

impl<T: Send + 'static> ActorResponse<T> {
    /// Creates a request that is not sent, or run inline, before the first poll.
    pub(super) fn new(
        requests: mpsc::Sender<ActorRequest>,
        stuck: Stuck,
        shared: Option<Arc<ActorVm>>,
        request: impl FnOnce(To<T>) -> ActorRequest + Send + 'static,
        gone: fn(Raised) -> T,
    ) -> Self {
        let (to, answer) = oneshot::channel();
        let way = requests.clone();
        let sending = async move {
            let request = request(to);
            let left = if let Some(shared) = shared {
                actor::begin_inline(&shared, request)
            } else {
                Some(request)
            };
            if let Some(request) = left {
                // A queue without a reader drops the request, which closes the response channel.
                drop(way.send(request).await);
            }
        };
        ActorResponse { sending: Some(sending.boxed()), answer, _requests: requests, stuck, gone }
    }
}

impl<T> Future for ActorResponse<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.sending.as_mut().is_some_and(|it| it.poll_unpin(cx).is_ready()) {
            self.sending = None;
        }
        // A response that has arrived is returned, even if the VM is stuck now.
        if self.sending.is_none()
            && let Poll::Ready(answer) = self.answer.poll_unpin(cx)
        {
            return Poll::Ready(
                answer.map_or_else(|_| (self.gone)(raised::of_lost_vm()), |it| *it),
            );
        }
        self.stuck.poll_unpin(cx).map(|()| (self.gone)(raised::of_lost_vm()))
    }
}
