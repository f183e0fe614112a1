//! Calls as their caller sees them, from the beginning to the result.
//!
//! A call of a handler begins where it is awaited, if it may (`shared_vm.rs`); all others are requests to the actor of the script. Many
//! thousands may wait for their responses, so each is small.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::sync::{mpsc::error::TrySendError, oneshot};

use super::{
    ActorVm,
    life::ActorRequest,
    of_lost_vm,
    reply::To,
    shared_vm::InlineCall,
    thread::{Actor, Stuck},
};
use crate::call::Invocation;
use crate::heap;
use crate::logic::handlers::outcome::{CallEnd, Raised};

/// The call of a handler; dropping it cancels the call.
pub(super) enum ActorCall<V: ActorVm> {
    /// It begins at the first poll.
    Begins {
        actor: Arc<Actor<V>>,
        invocation: Arc<Invocation>,
        may_be_inline: bool,
    },
    Waits(ActorResponse<V, CallEnd>),
    Ended,
}

impl<V: ActorVm> Future for ActorCall<V> {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        if let ActorCall::Waits(response) = &mut *self {
            return response.poll_unpin(cx);
        }
        let call = mem::replace(&mut *self, ActorCall::Ended);
        let ActorCall::Begins { actor, invocation, may_be_inline } = call else {
            return Poll::Ready(CallEnd::Raised(of_lost_vm()));
        };
        let began = if may_be_inline { actor.shared.run(&invocation) } else { InlineCall::Refused };
        let mut response = match began {
            InlineCall::Ended(end) => return Poll::Ready(end),
            InlineCall::Moved(answer) => ActorResponse::moved(actor, answer, CallEnd::Raised),
            InlineCall::Refused => heap::lasting_if(invocation.may_wait_long(), || {
                let request = |to| ActorRequest::Call(invocation, to);
                ActorResponse::new(actor, CallEnd::Raised, request)
            }),
        };
        let polled = response.poll_unpin(cx);
        *self = ActorCall::Waits(response);
        polled
    }
}

/// Waits for the response to a request; dropping it cancels the request.
pub(super) struct ActorResponse<V: ActorVm, T> {
    /// `None` once the request is sent.
    sending: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Box<T>>,
    /// Kept until the response: the actor of a replaced generation finishes its calls.
    _actor: Arc<Actor<V>>,
    stuck: Stuck,
    /// Converts the error if there will be no response.
    gone: fn(Raised) -> T,
}

impl<V: ActorVm, T: Send + 'static> ActorResponse<V, T> {
    /// Sends a request to the actor, now or as soon as its queue has room.
    pub(super) fn new(
        actor: Arc<Actor<V>>,
        gone: fn(Raised) -> T,
        request: impl FnOnce(To<T>) -> ActorRequest<V>,
    ) -> Self {
        let (to, answer) = oneshot::channel();
        let sending = match actor.requests.try_send(request(to)) {
            // A queue without a reader drops the request, which closes the response channel.
            Ok(()) | Err(TrySendError::Closed(_)) => None,
            Err(TrySendError::Full(request)) => {
                let requests = actor.requests.clone();
                Some(async move { drop(requests.send(request).await) }.boxed())
            }
        };
        ActorResponse { sending, ..ActorResponse::moved(actor, answer, gone) }
    }

    /// Waits for the response to a call that the actor has already.
    fn moved(
        actor: Arc<Actor<V>>,
        answer: oneshot::Receiver<Box<T>>,
        gone: fn(Raised) -> T,
    ) -> Self {
        let stuck = actor.lost.clone();
        ActorResponse { sending: None, answer, _actor: actor, stuck, gone }
    }
}

impl<V: ActorVm, T> Future for ActorResponse<V, T> {
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
