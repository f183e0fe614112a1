//! The task that runs all daemons and timers of an operator.
//!
//! It exists while there are any daemons. Each daemon is woken individually, so waiting ones cost only their memory: a task per
//! daemon would take more than all of its state.

use std::sync::Arc;

use tokio::{task, time};

use super::all::{Daemons, DriverWait};
use crate::handling::time_slice::TimeSlice;

/// Maximum number of daemons to run before the task yields.
const TURNS: usize = 64;

/// The task that runs woken daemons.
pub(super) struct Driver {
    daemons: Arc<Daemons>,
    is_over: bool,
}

impl Driver {
    /// Creates the only driver of these daemons.
    pub(super) fn of(daemons: &Arc<Daemons>) -> Self {
        Driver { daemons: Arc::clone(daemons), is_over: false }
    }

    /// Runs until no daemons are left.
    pub(super) async fn run(mut self) {
        loop {
            self.daemons.enqueue_due();
            if self.round() {
                task::yield_now().await;
                continue;
            }
            match self.daemons.next() {
                DriverWait::End => {
                    self.is_over = true;
                    return;
                }
                DriverWait::Wakeup => self.daemons.wakeup().await,
                DriverWait::Pause(pause) => tokio::select! {
                    biased; // the order makes no difference: due daemons stay due
                    () = self.daemons.wakeup() => {}
                    () = time::sleep(pause) => {}
                },
            }
        }
    }

    /// Runs some of the woken daemons; returns whether there may be more.
    fn round(&self) -> bool {
        let slice = TimeSlice::start();
        for _ in 0..TURNS {
            let Some(daemon) = self.daemons.next_woken() else { return false };
            daemon.run_woken();
            if slice.is_over() {
                break;
            }
        }
        true
    }
}

impl Drop for Driver {
    /// Ends all daemons if the runtime is dropped before they have ended, because nothing runs them any more.
    fn drop(&mut self) {
        if !self.is_over {
            self.daemons.all().iter().for_each(|it| it.finish());
        }
    }
}
