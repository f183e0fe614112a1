//! Our own patch that has not come back yet.
//!
//! Until it does, the object as we see it is older than what we did to it: change handlers wait, or they would act twice.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::queue::Event;
use crate::logic::{object::Object, order};

/// What the next events of an object should bring.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// `None`: no version will arrive any more, only the end of the object.
    version: Option<String>,
    /// The object as the answer to the patch showed it. It stands in for the same version in the stream: what was parsed of
    /// it need not be parsed again.
    pub(super) object: Arc<Object>,
    /// Then we go on without.
    pub(super) deadline: Instant,
}

impl Expectation {
    /// What follows from the answer to our last request; nothing if nobody wants to wait.
    pub(super) fn of(answer: Arc<Object>, timeout: Duration) -> Option<Self> {
        let header = answer.header();
        let version = header.resource_version.clone().filter(|_| !header.is_released());
        (!timeout.is_zero()).then(|| Expectation {
            version,
            object: answer,
            deadline: Instant::now() + timeout,
        })
    }

    /// Returns whether an event brings it, replaced the one that did, or is newer. Versions are ordered where they are numbers, as
    /// in all servers that store objects in etcd.
    pub(super) fn is_met_by(&self, event: &Event) -> bool {
        let Some(version) = &self.version else { return false };
        let seen = event.object.header().resource_version.as_ref();
        seen == Some(version) || event.replaced.contains(version) || order::is_later(seen, version)
    }

    /// Our own copy of the object, if the event brings no newer one.
    pub(super) fn freshest(self, object: Arc<Object>) -> Arc<Object> {
        if object.header().resource_version == self.version { self.object } else { object }
    }
}
