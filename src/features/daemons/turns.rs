//! Turns of reconcile handlers: after the start, all objects are due at once, and what their functions see and return takes memory
//! until its requests are sent.

use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, Sleep},
};

/// How many calls are at work at a time. More do not make API servers faster.
const TURNS_MAX: usize = 16;

/// After this time, a function is waiting rather than at work, and lets others begin.
const PATIENCE: Duration = Duration::from_secs(1);

/// The turns of an operator.
#[derive(Debug)]
pub(super) struct Turns(Arc<Semaphore>);

/// The right to be at work, until it is dropped.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    patience: Pin<Box<Sleep>>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns(Arc::new(Semaphore::new(TURNS_MAX)))
    }
}

impl Turns {
    /// Waits for a turn, first come, first served.
    pub(super) async fn next(&self) -> Option<Box<Turn>> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        Some(Box::new(Turn { _permit: permit, patience: Box::pin(time::sleep(PATIENCE)) }))
    }
}

impl Turn {
    /// Returns whether the function has had its turn for long enough; wakes the task when it has.
    pub(super) fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().poll(cx) == Poll::Ready(())
    }
}
