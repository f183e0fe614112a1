//! The handlers of the daemons and timers of one resource, as they are at the moment.
//!
//! Those that run hold their role, not the handler: another generation of scripts in which nothing of the handler was edited
//! puts its own in the role, so that they go on with the new function from their next call, and nothing keeps the old one. A
//! handler that was edited, or is gone, loses its role: who holds it must stop.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::logic::handler::Handler;

/// What daemons or timers of many objects were declared as.
#[derive(Debug)]
pub struct Role(Mutex<Arc<Handler>>);

/// The roles of the handlers of one resource.
#[derive(Debug, Default)]
pub struct Roles(Mutex<Vec<Arc<Role>>>);

impl Role {
    /// The handler as it is now. Who calls it looks once for each call.
    pub fn handler(&self) -> Arc<Handler> {
        Arc::clone(&self.lock())
    }

    fn renew(&self, handler: &Arc<Handler>) {
        // The one before is dropped after the lock, as that may be the end of a virtual machine.
        let _before = std::mem::replace(&mut *self.lock(), Arc::clone(handler));
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Handler>> {
        self.0.lock()
    }
}

impl Roles {
    /// These are the handlers from now on.
    pub fn renew(&self, handlers: &[Arc<Handler>]) {
        let mut roles = self.lock();
        roles.retain(|role| {
            let before = role.handler();
            let now = handlers.iter().find(|it| it.is_same(&before));
            now.inspect(|it| role.renew(it)).is_some()
        });
        for handler in handlers {
            if !roles.iter().any(|it| it.handler().is_same(handler)) {
                roles.push(Arc::new(Role(Mutex::new(Arc::clone(handler)))));
            }
        }
    }

    /// The role of a handler; none if it is not that of the present generation any more.
    pub(super) fn of(&self, handler: &Handler) -> Option<Arc<Role>> {
        self.lock().iter().find(|it| it.handler().is_same(handler)).map(Arc::clone)
    }

    /// Whether who has this role may go on.
    pub(super) fn have(&self, role: &Arc<Role>) -> bool {
        self.lock().iter().any(|it| Arc::ptr_eq(it, role))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Role>>> {
        self.0.lock()
    }
}
