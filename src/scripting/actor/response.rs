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
    ActorVm,
    life::{self, ActorRequest},
    of_lost_vm,
    reply::To,
    shared_vm::SharedVm,
};
use crate::logic::handlers::outcome::Raised;

/// Becomes ready when the VM does not respond; shared by all pending requests.
pub(super) type Stuck = Shared<BoxFuture<'static, ()>>;

/// Sends a request and waits for its response; dropping it cancels the call.
pub(super) struct ActorResponse<V, T> {
    /// Dropped once the request is sent.
    sending: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Box<T>>,
    /// Kept until the response: the actor of a replaced generation finishes its calls.
    _requests: mpsc::Sender<ActorRequest<V>>,
    stuck: Stuck,
    /// Converts the error if there will be no response.
    gone: fn(Raised) -> T,
}

impl<V: ActorVm, T: Send + 'static> ActorResponse<V, T> {
    /// Creates a request that is not sent, or run inline, before the first poll.
    pub(super) fn new(
        requests: mpsc::Sender<ActorRequest<V>>,
        stuck: Stuck,
        shared: Option<Arc<SharedVm<V>>>,
        request: impl FnOnce(To<T>) -> ActorRequest<V> + Send + 'static,
        gone: fn(Raised) -> T,
    ) -> Self {
        let (to, answer) = oneshot::channel();
        let way = requests.clone();
        let sending = async move {
            let request = request(to);
            let left = if let Some(shared) = shared {
                life::begin_inline(&shared, request)
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

impl<V, T> Future for ActorResponse<V, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.sending.as_mut().is_some_and(|it| it.poll_unpin(cx).is_ready()) {
            self.sending = None;
        }
        // A response that has arrived is returned, even if the VM is stuck now.
        if self.sending.is_none()
            && let Poll::Ready(answer) = self.answer.poll_unpin(cx)
        {
            return Poll::Ready(answer.map_or_else(|_| (self.gone)(of_lost_vm()), |it| *it));
        }
        self.stuck.poll_unpin(cx).map(|()| (self.gone)(of_lost_vm()))
    }
}
