//! A request to the actor of a script, on its way and until its answer.
//!
//! There may be many thousands that wait, so each is little: the way to the actor, and the way back.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    actor::{Request, To},
    raised,
};
use crate::logic::handlers::outcome::Raised;

/// Ready when the actor no longer listens; one for all that wait.
pub(super) type Stuck = Shared<BoxFuture<'static, ()>>;

/// Sends a request and waits for its answer; dropping it cancels the call.
pub(super) struct Asked<T> {
    /// Freed when the request is sent.
    sending: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Box<T>>,
    /// Held until the answer: a generation that was replaced finishes its calls.
    _requests: mpsc::Sender<Request>,
    stuck: Stuck,
    /// The answer if there will be none.
    gone: fn(Raised) -> T,
}

impl<T: Send + 'static> Asked<T> {
    /// Creates a request that is not sent before the first poll.
    pub(super) fn new(
        requests: mpsc::Sender<Request>,
        stuck: Stuck,
        request: impl FnOnce(To<T>) -> Request + Send + 'static,
        gone: fn(Raised) -> T,
    ) -> Self {
        let (to, answer) = oneshot::channel();
        let way = requests.clone();
        // A queue without a reader drops the request, which closes the answer.
        let sending = async move { drop(way.send(request(to)).await) };
        Asked { sending: Some(sending.boxed()), answer, _requests: requests, stuck, gone }
    }
}

impl<T> Future for Asked<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.sending.as_mut().is_some_and(|it| it.poll_unpin(cx).is_ready()) {
            self.sending = None;
        }
        // An answer that is there counts.
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
