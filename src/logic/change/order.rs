//! Decides whether an event shows an object as it is, or as it was before the operator's own last request.
//!
//! A server that lags behind, or a list that was requested before the last own request, shows an older version. Work that is already
//! finished must not be repeated for it. Versions are ordered where they are numbers, as on all servers that store objects in etcd
//! (Kubernetes guarantees it since 1.35). Versions that are not numbers are never older.

use std::num::NonZeroU64;

use crate::logic::object::{Object, reason::EventType};

/// The facts about an object when one of its events arrives.
#[derive(Clone, Copy, Debug)]
pub struct EventView {
    /// The type of the event; `None` for an object of a list.
    pub event_type: Option<EventType>,
    /// The event is older than the version that the last own request created.
    pub is_older: bool,
    /// A list showed an older version, and the event of the last own request has not arrived since.
    pub is_unconfirmed: bool,
    /// The server reported at the last own request that the object does not exist.
    pub is_missing: bool,
    /// Whether the server has accepted the last own request is not known, and what to do depends on it.
    pub is_uncertain: bool,
    /// The event of the last own request is still expected within the consistency timeout.
    pub is_expected: bool,
    /// A newer event of the object waits in its queue.
    pub is_followed: bool,
}

/// The relation of an event to the current state of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The event shows the object as it is, as far as is known: handle it.
    Current,
    /// The event of the last own request is expected soon: wait for it.
    Awaited,
    /// A newer event waits: handle that one.
    Followed,
    /// No event is expected: read the object from the server.
    Unknown,
}

impl EventView {
    /// Returns whether the event ends the doubt that a list raised: it is newer than the last own request, or the object is gone.
    pub fn confirms(self) -> bool {
        match self.event_type {
            Some(EventType::Deleted) => true,
            Some(_) => !self.is_older,
            None => false,
        }
    }

    /// Returns what to do with the event. Handlers of changes must not see an object without what they have recorded, nor one
    /// that does not exist.
    pub fn freshness(self) -> Freshness {
        let is_doubtful = self.is_older || self.is_unconfirmed && !self.confirms();
        let is_known = !is_doubtful && !self.is_missing && !self.is_uncertain;
        if self.event_type == Some(EventType::Deleted) || is_known {
            Freshness::Current
        } else if self.is_uncertain {
            // A newer event may still be from before the request.
            Freshness::Unknown
        } else if is_doubtful && self.is_expected {
            Freshness::Awaited
        } else if self.is_followed {
            Freshness::Followed
        } else {
            Freshness::Unknown
        }
    }
}

/// Returns the version of an object, if it is a number.
pub fn number(object: &Object) -> Option<NonZeroU64> {
    object.header().resource_version.as_deref().and_then(of_text)
}

/// Returns whether an object is certainly older than this version.
pub fn is_older(object: &Object, than: Option<NonZeroU64>) -> bool {
    number(object).zip(than).is_some_and(|(seen, own)| seen < own)
}

/// Returns whether a version is certainly later than another one.
pub fn is_later(seen: Option<&String>, than: &str) -> bool {
    seen.and_then(|it| of_text(it)).zip(of_text(than)).is_some_and(|(seen, own)| seen > own)
}

fn of_text(version: &str) -> Option<NonZeroU64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EventType, EventView, Freshness, Object, is_later, is_older, number};

    const NEWER: EventView = EventView {
        event_type: Some(EventType::Modified),
        is_older: false,
        is_unconfirmed: false,
        is_missing: false,
        is_uncertain: false,
        is_expected: false,
        is_followed: false,
    };
    const LISTED: EventView = EventView { event_type: None, ..NEWER };
    const OLDER: EventView = EventView { is_older: true, ..NEWER };

    fn object(version: &str) -> Object {
        Object::from_value(json!({ "metadata": { "resourceVersion": version } }))
    }

    #[test]
    fn only_numbers_are_ordered() {
        let own = number(&object("10"));
        assert!(is_older(&object("9"), own));
        for version in ["10", "11", "a9", "", "-1", "9.5", "99999999999999999999999"] {
            assert!(!is_older(&object(version), own), "{version:?}");
        }
        assert!(!is_older(&object("9"), number(&object("x"))));
        assert!(is_later(Some(&"10".to_owned()), "9") && !is_later(Some(&"9".to_owned()), "9"));
    }

    #[test]
    fn an_older_event_waits_for_our_own_and_then_asks_the_server() {
        assert_eq!(OLDER.freshness(), Freshness::Unknown);
        let expected = EventView { is_expected: true, is_followed: true, ..OLDER };
        assert_eq!(expected.freshness(), Freshness::Awaited);
        let followed = EventView { is_expected: false, ..expected };
        assert_eq!(followed.freshness(), Freshness::Followed);
    }

    #[test]
    fn a_newer_event_is_current_and_ends_the_doubt() {
        for view in [NEWER, EventView { is_unconfirmed: true, is_expected: true, ..NEWER }] {
            assert_eq!((view.freshness(), view.confirms()), (Freshness::Current, true));
        }
        let deleted = EventView { event_type: Some(EventType::Deleted), is_missing: true, ..OLDER };
        assert_eq!((deleted.freshness(), deleted.confirms()), (Freshness::Current, true));
        assert!(!OLDER.confirms() && !LISTED.confirms());
    }

    #[test]
    fn a_list_that_follows_an_older_one_is_doubted_until_our_own_event_comes() {
        assert_eq!(LISTED.freshness(), Freshness::Current);
        let unconfirmed = EventView { is_unconfirmed: true, ..LISTED };
        assert_eq!(unconfirmed.freshness(), Freshness::Unknown);
        let expected = EventView { is_expected: true, ..unconfirmed };
        assert_eq!(expected.freshness(), Freshness::Awaited);
    }

    #[test]
    fn an_object_is_read_if_our_last_request_may_have_been_accepted() {
        let uncertain = EventView { is_uncertain: true, is_expected: true, ..NEWER };
        for view in [uncertain, EventView { is_followed: true, is_older: true, ..uncertain }] {
            assert_eq!(view.freshness(), Freshness::Unknown);
        }
        let deleted = EventView { event_type: Some(EventType::Deleted), ..uncertain };
        assert_eq!(deleted.freshness(), Freshness::Current);
    }

    #[test]
    fn a_missing_object_is_read_unless_a_newer_event_waits() {
        let missing = EventView { is_missing: true, is_expected: true, ..NEWER };
        assert_eq!(missing.freshness(), Freshness::Unknown);
        let followed = EventView { is_followed: true, ..missing };
        assert_eq!(followed.freshness(), Freshness::Followed);
    }
}
