//! The place of what serves one stream: where its workers find the handlers of the present generation.

use std::sync::Arc;

use parking_lot::Mutex;

use super::serving::Serving;

/// Holds what serves a stream now. Clones share it.
///
/// Who needs it for several steps, as a cycle does, looks once: so these steps are of one generation.
#[derive(Clone)]
pub(super) struct Post(Arc<Mutex<Arc<Serving>>>);

impl Post {
    /// The first one.
    pub(super) fn new(serving: Serving) -> Self {
        Post(Arc::new(Mutex::new(Arc::new(serving))))
    }

    /// What serves now.
    pub(super) fn get(&self) -> Arc<Serving> {
        Arc::clone(&self.0.lock())
    }

    /// Another one takes over. Whoever waits on behalf of the one before is woken; calls that run go on.
    pub(super) fn hand_over(&self, successor: Serving) {
        let before = std::mem::replace(&mut *self.0.lock(), Arc::new(successor));
        before.replaced.cancel();
    }
}
