//! The task that brings all daemons and timers of an operator forward.
//!
//! It is there while there are any of them. Each is woken for itself, so those that wait cost nothing but their memory: one task
//! for each of them would take more than all that is kept of it.

use std::sync::Arc;

use tokio::{task, time};

use super::all::{Daemons, Next};

/// After so many the other tasks get a turn.
const TURNS: usize = 64;

/// Brings those forward that have something to do.
pub(super) struct Driver {
    daemons: Arc<Daemons>,
    is_over: bool,
}

impl Driver {
    /// Creates the only driver of these daemons.
    pub(super) fn of(daemons: &Arc<Daemons>) -> Self {
        Driver { daemons: Arc::clone(daemons), is_over: false }
    }

    /// Works until nobody is left.
    pub(super) async fn run(mut self) {
        loop {
            self.daemons.call_due();
            if self.round() {
                task::yield_now().await;
                continue;
            }
            match self.daemons.next() {
                Next::End => {
                    self.is_over = true;
                    return;
                }
                Next::Call => self.daemons.call().await,
                Next::Pause(pause) => tokio::select! {
                    biased; // who is due stays so
                    () = self.daemons.call() => {}
                    () = time::sleep(pause) => {}
                },
            }
        }
    }

    /// One turn for some of those that have something to do; tells whether there may be more.
    fn round(&self) -> bool {
        for _ in 0..TURNS {
            let Some(daemon) = self.daemons.next_called() else { return false };
            daemon.go_on();
        }
        true
    }
}

impl Drop for Driver {
    /// If the runtime goes before they have ended, nobody brings them forward any more.
    fn drop(&mut self) {
        if !self.is_over {
            self.daemons.all().iter().for_each(|it| it.leave());
        }
    }
}
