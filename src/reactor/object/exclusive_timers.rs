//! Change handlers and exclusive timers of one object exclude each other.

use super::cycle::Cycle;

impl Cycle<'_> {
    /// Waits until no exclusive timer of the object is being called, and blocks their calls until the change is handled. Returns false if a
    /// newer event or a reload comes first.
    pub(super) async fn exclude_timers(&mut self) -> bool {
        let Some(background) = &mut self.memory.background else { return true };
        let Some(lock) = background.change_lock() else { return true };
        let mut change = lock.try_change();
        if change.is_none() {
            let wait = async {
                tokio::select! {
                    biased; // at the end of the call, the change is handled, even if a newer event arrives at the same time
                    change = lock.change() => Some(change),
                    () = self.queue.pressure() => None,
                    () = self.serving.replaced.cancelled() => None,
                }
            };
            // Other workers use the permit meanwhile.
            change = self.permit.release_while(wait).await;
        }
        let is_taken = change.is_some();
        if is_taken {
            background.keep_change(change);
        }
        is_taken
    }
}
