//! The operator's own patch, until its event arrives.
//!
//! Until then, the object in the stream is older than the patch: change handlers wait, because they would otherwise act twice.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::logic::{change::order, object::Object};
use crate::reactor::object::queue::Event;

/// The expected version of the object, after the operator's own patch.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct Expectation {
    /// `None` if no further version will arrive, only the object's deletion.
    version: Option<String>,
    /// The object from the response to the patch. It replaces the same version from the stream, so that parsed parts are not parsed
    /// again.
    pub(in crate::reactor) object: Arc<Object>,
    /// The time when the wait ends.
    pub(in crate::reactor) deadline: Instant,
}

impl Expectation {
    /// Returns the expectation that follows from the response to the operator's last request; `None` if the timeout is zero.
    pub(in crate::reactor) fn of(answer: Arc<Object>, timeout: Duration) -> Option<Self> {
        let header = answer.header();
        let version = header.resource_version.clone().filter(|_| !header.is_released());
        (!timeout.is_zero()).then(|| Expectation {
            version,
            object: answer,
            deadline: Instant::now() + timeout,
        })
    }

    /// Returns whether an event has the expected version, replaced the event that had it, or is newer. Versions are ordered if they are
    /// numbers, as in all servers that store objects in etcd.
    pub(in crate::reactor) fn is_met_by(&self, event: &Event) -> bool {
        let Some(version) = &self.version else { return false };
        let seen = event.object.header().resource_version.as_ref();
        seen == Some(version) || event.replaced.contains(version) || order::is_later(seen, version)
    }

    /// Returns the object of the response if the event has the same version, otherwise that of the event.
    pub(in crate::reactor) fn freshest(self, object: Arc<Object>) -> Arc<Object> {
        if object.header().resource_version == self.version { self.object } else { object }
    }
}
