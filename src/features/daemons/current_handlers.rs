//! The handlers of the daemons and timers of one resource, in their latest generation.
//!
//! Daemons hold a [`CurrentHandler`], not the handler. If the handler was not edited, the next generation replaces it in there, so
//! that daemons use the new function from their next call on and nothing keeps the old one. A handler that was edited or removed
//! loses its entry, and daemons that hold it must stop. The services of their calls belong to the same generation as the handler.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::call::CallServices;
use crate::logic::handlers::{handler::Handler, relations::RelationIds};

/// A handler that daemons or timers of many objects run, in its latest generation.
#[derive(Debug)]
pub struct CurrentHandler(Mutex<Arc<BoundHandler>>);

/// A handler, and the services of its calls.
#[derive(Debug)]
pub struct BoundHandler {
    /// The handler as the live generation declares it.
    pub handler: Arc<Handler>,
    /// The services, which belong to the same generation.
    pub services: Arc<CallServices>,
    /// The ids of the indexes of a reconcile handler: each of its calls needs them.
    pub relations: RelationIds,
}

/// The handlers of one resource.
#[derive(Debug, Default)]
pub struct CurrentHandlers(Mutex<Vec<Arc<CurrentHandler>>>);

impl CurrentHandler {
    fn new(handler: &Arc<Handler>, services: &Arc<CallServices>) -> Self {
        let (handler, services) = (Arc::clone(handler), Arc::clone(services));
        let relations = handler.relation_ids();
        CurrentHandler(Mutex::new(Arc::new(BoundHandler { handler, services, relations })))
    }

    /// Returns the present handler. Callers must get it once for each call.
    pub fn get(&self) -> Arc<BoundHandler> {
        Arc::clone(&self.0.lock())
    }

    fn replace(&self, next: CurrentHandler) {
        // Dropped after the lock is released, because this may end a virtual machine.
        let _before = std::mem::replace(&mut *self.0.lock(), next.0.into_inner());
    }
}

impl CurrentHandlers {
    /// Replaces the handlers with those of the next generation, or with others of the same one.
    pub fn renew(&self, handlers: &[Arc<Handler>], services: &Arc<CallServices>) {
        let mut all = self.lock();
        all.retain(|current| {
            let before = current.get();
            let now = handlers.iter().find(|it| it.is_same(&before.handler));
            now.inspect(|it| current.replace(CurrentHandler::new(it, services))).is_some()
        });
        for handler in handlers {
            if !all.iter().any(|it| it.get().handler.is_same(handler)) {
                all.push(Arc::new(CurrentHandler::new(handler, services)));
            }
        }
    }

    /// Returns the entry of a handler; `None` if it was edited or removed since.
    pub(super) fn of(&self, handler: &Handler) -> Option<Arc<CurrentHandler>> {
        self.lock().iter().find(|it| it.get().handler.is_same(handler)).map(Arc::clone)
    }

    /// Returns whether daemons that hold this entry may continue.
    pub(super) fn has(&self, current: &Arc<CurrentHandler>) -> bool {
        self.lock().iter().any(|it| Arc::ptr_eq(it, current))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CurrentHandler>>> {
        self.0.lock()
    }
}
