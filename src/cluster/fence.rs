//! Stops the writes of a leader whose lease has expired.
//!
//! An attempt is no longer polled then, see [`Leadership::while_acting`]. But once a request is passed to its connection, the task of the
//! connection sends it: if the process is frozen in between, only the body can still check the lease. If the body fails, the head of its
//! request is not sent either, because both are written together. Writes without a body have only the first check, and so have those
//! through a proxy, which has its own connections.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use crate::ports::Leadership;

/// The leadership that a request requires.
#[derive(Clone)]
pub(super) struct Fence(pub(super) Leadership);

/// A body that fails once the operator may not act.
pub(super) struct FencedBody {
    body: Body,
    fence: Option<Fence>,
}

impl Fence {
    /// Runs an attempt. A write is no longer polled once the operator may not act.
    pub(super) async fn during<T>(
        fence: Option<Self>,
        attempt: impl Future<Output = T> + Unpin,
    ) -> T {
        match fence {
            Some(Self(leadership)) => leadership.while_acting(attempt).await,
            None => attempt.await,
        }
    }
}

impl FencedBody {
    /// Creates the body of a request with this fence, if it needs one.
    pub(super) fn new(body: Body, fence: Option<Fence>) -> Self {
        FencedBody { body, fence }
    }

    /// Returns the body without its fence, for clients with connections of their own.
    pub(super) fn into_body(self) -> Body {
        self.body
    }
}

impl HttpBody for FencedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.fence.as_ref().is_some_and(|Fence(leadership)| !leadership.may_act()) {
            return Poll::Ready(Some(Err("the lease has expired".into())));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
