//! The calls in a VM, each with the channel of its result.

use std::{
    future::Future,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt as _, future::LocalBoxFuture};
use tokio::sync::oneshot;

use super::ActorVm;
use crate::logic::handlers::outcome::{CallEnd, Raised};

/// The channel of a response. Boxed, because most requests have no response yet.
pub(super) type To<T> = oneshot::Sender<Box<T>>;

/// The future of a request. Calls of handlers are stored inline, because very many may wait.
pub(super) enum Answering<V: ActorVm> {
    Call(ActorReply<CallEnd, V::Call>),
    Other(LocalBoxFuture<'static, ()>),
}

impl<V: ActorVm> Future for Answering<V> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Answering::Call(it) => it.poll_unpin(cx),
            Answering::Other(it) => it.poll_unpin(cx),
        }
    }
}

/// Begins a call that runs until it ends or its caller drops it. A panic of the host ends only this call; if it panics right at the start,
/// the error is sent at once.
pub(super) fn reply<T, F>(
    to: To<T>,
    broken: fn(Raised) -> T,
    begin: impl FnOnce() -> F,
) -> Option<ActorReply<T, F>> {
    // No code of the script runs yet: a call that was cancelled meanwhile is noticed before its first step.
    if let Ok(call) = panic::catch_unwind(AssertUnwindSafe(begin)) {
        Some(ActorReply::new(call, to, broken))
    } else {
        drop(to.send(Box::new(broken(panicked()))));
        None
    }
}

/// A call and the channel of its result.
pub(super) struct ActorReply<T, F> {
    call: F,
    /// `None` once the result is sent.
    to: Option<To<T>>,
    broken: fn(Raised) -> T,
}

// The call is never pinned through the reply.
impl<T, F: Unpin> Unpin for ActorReply<T, F> {}

impl<T, F> ActorReply<T, F> {
    /// Creates the reply of a call that has begun; `broken` converts the error if the host panics.
    pub(super) fn new(call: F, to: To<T>, broken: fn(Raised) -> T) -> Self {
        ActorReply { call, to: Some(to), broken }
    }
}

impl<T, F: Future<Output = T> + Unpin> Future for ActorReply<T, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A cancelled call must not take another step.
        if self.to.as_mut().is_none_or(|it| it.poll_closed(cx).is_ready()) {
            return Poll::Ready(());
        }
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.call.poll_unpin(cx)));
        let result = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => (self.broken)(panicked()),
        };
        if let Some(to) = self.to.take() {
            // The caller may have cancelled the call meanwhile.
            drop(to.send(Box::new(result)));
        }
        Poll::Ready(())
    }
}

/// Returns the error of a call in which the host panicked.
pub(super) fn panicked() -> Raised {
    Raised::of_host("internal error in this call; please report it")
}
