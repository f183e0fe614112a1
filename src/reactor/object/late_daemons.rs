//! Starts the daemons and timers of scripts whose indexes become complete while handlers of other scripts run.
//!
//! Such a handler may take long, or wait for one of these daemons. Before: `undecided.rs`. After: `daemon_sync.rs`.

use std::collections::BTreeSet;

use futures::future;

use super::{daemon_sync::SyncDaemons, undecided::FilterContext};

impl SyncDaemons<'_> {
    /// Runs the handlers of a change, and starts and stops daemons and timers meanwhile, once their indexes are complete. Returns the
    /// result of the handlers.
    ///
    /// The next cycle does the rest: it handles the finalizer, and the reconcile handlers that need it.
    pub(super) async fn run_late<T>(self, mut handlers: impl Future<Output = T> + Unpin) -> T {
        let serving = self.serving;
        let spawning = &serving.handlers.spawning;
        let late = spawning.iter().filter(|it| self.filters.waits(it));
        let scripts: BTreeSet<_> = late.map(|it| it.function.script).collect();
        // Nothing starts while the object is being deleted.
        if scripts.is_empty() || self.object.header().deletion_timestamp.is_some() {
            return handlers.await;
        }
        tokio::select! {
            biased; // at the end of the handlers, or after a reload, the next cycle starts them
            done = &mut handlers => return done,
            () = serving.replaced.cancelled() => {}
            () = serving.open_for(scripts.iter()) => {
                let filters = FilterContext::complete();
                let sync = SyncDaemons { filters: &filters, ..self };
                return future::join(handlers, sync.run()).await.0;
            }
        }
        handlers.await
    }
}
