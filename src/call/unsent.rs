//! The changes that a daemon has requested and that are not sent yet: they are sent when its call ends, which may never happen.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{Cause, Invocation, SharedPatch};
use crate::logic::handlers::{handler::Kind, outcome::LogLevel};

/// Maximum time that changes wait without a warning: a longer wait is hardly intended.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// The changes of a daemon that is about to wait.
pub struct Unsent {
    invocation: Arc<Invocation>,
    patch: SharedPatch,
    since: Instant,
}

impl Unsent {
    /// Returns the unsent changes of a call, if it is the call of a daemon that no warning was logged for yet.
    pub fn of(invocation: Option<&Arc<Invocation>>) -> Option<Self> {
        let invocation = invocation.filter(|it| it.handler.kind == Kind::Daemon)?;
        let Cause::Object(cause) = &invocation.cause else { return None };
        let patch = &cause.patch;
        let is_empty = patch.peek().is_none_or(|it| it.is_empty());
        let since = if is_empty { None } else { patch.unsent_since() };
        let (invocation, patch) = (Arc::clone(invocation), Arc::clone(patch));
        Some(Unsent { invocation, patch, since: since? })
    }

    /// Waits; logs a warning if the changes have waited for 1 min, once per patch.
    pub async fn watch<T>(self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        tokio::select! {
            biased; // a wait that is over needs no warning
            done = &mut wait => return done,
            () = sleep_until(self.since + WAIT_MAX) => {}
        }
        if self.patch.report_unsent() {
            let id = &self.invocation.handler.id;
            let line = format!(
                "Daemon '{id}' has changed `ctx.patch` {} s ago, and is still running: the changes are sent when its function returns. Use kube.patch to change the object at once.",
                WAIT_MAX.as_secs()
            );
            self.invocation.logger().log(LogLevel::Warning, &line);
        }
        wait.await
    }
}
