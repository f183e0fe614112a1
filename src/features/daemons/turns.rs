//! Turns of reconcile handlers and of exclusive timers.
//!
//! Few reconcile handlers run at the same time: after the start, all objects are due at once, and the inputs and results of their functions
//! take memory until the requests are sent.

use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::exclusion::{ChangeLock, TimerGuard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, Sleep},
};

/// Maximum number of calls that run at the same time. More do not make API servers faster.
const TURNS_MAX: usize = 16;

/// Time after which a function counts as waiting, and its turn passes to another call.
const PATIENCE: Duration = Duration::from_secs(1);

/// The turns of an operator.
#[derive(Debug)]
pub(super) struct Turns(Arc<Semaphore>);

/// The right to run, until it is dropped.
pub(super) struct Turn {
    _right: Right,
    /// `None`: the turn lasts until the end of the call.
    patience: Option<Pin<Box<Sleep>>>,
}

/// The exclusive part of a turn.
#[expect(dead_code, reason = "it is held, and dropped")]
enum Right {
    Work(OwnedSemaphorePermit),
    Timer(TimerGuard),
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
        let patience = Some(Box::pin(time::sleep(PATIENCE)));
        Some(Box::new(Turn { _right: Right::Work(permit), patience }))
    }
}

impl Turn {
    /// Waits until no change of the object is being handled.
    pub(super) async fn exclusive(lock: &ChangeLock) -> Option<Box<Turn>> {
        Some(Box::new(Turn { _right: Right::Timer(lock.timer().await), patience: None }))
    }

    /// Returns whether the function has had its turn for long enough; wakes the task when that is the case.
    pub(super) fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().is_some_and(|it| it.as_mut().poll(cx) == Poll::Ready(()))
    }
}
