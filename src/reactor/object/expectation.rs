//! The operator's own patch, until its event arrives.
//!
//! Until then, the object in the stream is older than the patch: change handlers wait, because they would otherwise act twice.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::call::Logger;
use crate::logic::{
    change::{order, plan},
    generation::Version,
    handlers::outcome::LogLevel,
    object::{
        Object,
        reason::{EventType, Reason},
    },
};
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
    /// `None` if the handlers may have something to do about the object.
    settled: Option<Settled>,
}

/// The end of a change: its handlers have nothing to do about the object that it leaves behind.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct Settled {
    /// The version of the handlers.
    pub(in crate::reactor) handlers: Version,
    /// The logger of the object.
    pub(in crate::reactor) logger: Logger,
}

impl Expectation {
    /// Returns the expectation that follows from the response to the operator's last request; `None` if the timeout is zero.
    pub(in crate::reactor) fn of(
        answer: Arc<Object>,
        timeout: Duration,
        settled: Option<Settled>,
    ) -> Option<Self> {
        let header = answer.header();
        let version = header.resource_version.clone().filter(|_| !header.is_released());
        (!timeout.is_zero()).then(|| Expectation {
            version,
            object: answer,
            deadline: Instant::now() + timeout,
            settled,
        })
    }

    /// Returns whether an event shows nothing that is new to the handlers of this version: the object, or how it was before.
    pub(in crate::reactor) fn has_settled(&self, event: &Event, handlers: Version) -> bool {
        let Event { event_type, object, for_indexes, recheck, new_handlers, .. } = event;
        let is_change = *event_type == Some(EventType::Modified) && !for_indexes;
        let is_new = recheck.is_some() || new_handlers.is_some();
        let versions = object.header().resource_version.as_ref().zip(self.version.as_ref());
        let is_known =
            versions.is_some_and(|(seen, own)| seen == own || order::is_later(Some(own), seen));
        // Later, an older event may be that of a restored backup.
        let is_soon = Instant::now() < self.deadline;
        let is_settled = self.settled.as_ref().is_some_and(|it| it.handlers == handlers);
        is_settled && is_change && !is_new && is_known && is_soon
    }

    /// Returns whether an event has the expected version, replaced the event that had it, or is newer. Versions are ordered if they are
    /// numbers, as in all servers that store objects in etcd.
    pub(in crate::reactor) fn is_met_by(&self, event: &Event) -> bool {
        let Some(version) = &self.version else { return false };
        let seen = event.object.header().resource_version.as_ref();
        seen == Some(version) || event.replaced.contains(version) || order::is_later(seen, version)
    }

    /// Ends the wait with an event that needs no cycle, and logs what a cycle would log.
    pub(in crate::reactor) fn settle(self) {
        let Some(Settled { logger, .. }) = self.settled else { return };
        for line in plan::unhandled(Reason::Noop).into_iter().chain([plan::FINISHED]) {
            logger.log(LogLevel::Debug, line);
        }
    }

    /// Returns the object of the response if the event has the same version, otherwise that of the event.
    pub(in crate::reactor) fn freshest(self, object: Arc<Object>) -> Arc<Object> {
        if object.header().resource_version == self.version { self.object } else { object }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio::time;

    use super::{Duration, Event, EventType, Expectation, Logger, Object, Settled, Version};
    use crate::logic::generation::NewHandlers;

    fn object(version: &str) -> Arc<Object> {
        Arc::new(Object::from_value(json!({ "metadata": { "resourceVersion": version } })))
    }

    fn modified(version: &str) -> Event {
        Event::new(Some(EventType::Modified), object(version))
    }

    #[tokio::test(start_paused = true)]
    async fn events_up_to_the_settled_version_show_nothing_new() {
        let expected = |handlers: Option<Version>| {
            let settled =
                handlers.map(|it| Settled { handlers: it, logger: Logger::of_activity() });
            Expectation::of(object("10"), Duration::from_secs(5), settled).expect("a timeout")
        };
        let (now, next) = (Version::FIRST, Version::FIRST.next_pass());
        let settled = expected(Some(now));
        for version in ["9", "10"] {
            assert!(settled.has_settled(&modified(version), now));
            assert!(!settled.has_settled(&modified(version), next), "other handlers");
            assert!(!expected(None).has_settled(&modified(version), now));
        }
        for version in ["11", "", "x"] {
            assert!(!settled.has_settled(&modified(version), now), "{version}");
        }
        let new_handlers = Arc::new(NewHandlers::default());
        for event in [
            Event::new(None, object("10")),
            Event::new(Some(EventType::Added), object("10")),
            Event::new(Some(EventType::Deleted), object("10")),
            Event::new(Some(EventType::Modified), Arc::new(Object::from_value(json!({})))),
            Event { for_indexes: true, ..modified("10") },
            Event { recheck: Some(now), ..modified("10") },
            Event { new_handlers: Some(new_handlers), ..modified("10") },
        ] {
            assert!(!settled.has_settled(&event, now), "{event:?}");
        }
        time::advance(Duration::from_secs(5)).await;
        assert!(!settled.has_settled(&modified("9"), now));
    }
}
