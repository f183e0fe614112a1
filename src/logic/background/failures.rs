//! Kubernetes events about handlers that fail: one per object and handler, with a count.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::posting::{self, NewEvent};
use crate::logic::object::{ObjectRef, reference};
use crate::settings::PostingSettings;

/// The reason of an event about a handler that will be retried.
pub const RETRIED: &str = "HandlerFailed";
/// The reason of an event about a handler that has failed permanently.
pub const GAVE_UP: &str = "HandlerGaveUp";

/// The pause after the first event about the failures of one handler of one object; each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(10);
/// The maximum of these pauses.
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// The longest name of an event's object that its own name can begin with.
const NAME_MAX: usize = 230;

/// The event about the failures of one handler of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureEvent {
    /// The object that the handler failed on.
    pub about: Arc<ObjectRef>,
    /// It exists, so another failure updates it.
    pub is_posted: bool,
    /// Identifies the event among all of this operator.
    id: u64,
    gave_up: bool,
    text: String,
    count: u64,
    first: Timestamp,
    last: Timestamp,
}

impl FailureEvent {
    /// Creates an event without failures.
    pub fn new(about: Arc<ObjectRef>, handler: &str, now: Timestamp) -> Self {
        let mut hasher = DefaultHasher::new();
        (&about.uid, handler, now.as_nanosecond()).hash(&mut hasher);
        let (id, text) = (hasher.finish(), String::new());
        FailureEvent {
            about,
            is_posted: false,
            id,
            gave_up: false,
            text,
            count: 0,
            first: now,
            last: now,
        }
    }

    /// Adds a failure. Returns whether this begins a new event, because the reason has changed.
    pub fn failed(&mut self, text: String, gave_up: bool, now: Timestamp) -> bool {
        let is_other = self.count > 0 && self.gave_up != gave_up;
        if is_other {
            (self.is_posted, self.count, self.first) = (false, 0, now);
        }
        (self.text, self.gave_up, self.last) = (text, gave_up, now);
        self.count = self.count.saturating_add(1);
        is_other
    }

    /// Returns whether the handler has failed permanently.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Returns the message of the last failure.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the pause after this many events about the same failures.
    pub fn pause(posts: u32) -> Duration {
        let factor = 2_u32.saturating_pow(posts);
        PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
    }

    /// Returns the name of the event.
    pub fn name(&self) -> String {
        let (name, reason) = (&self.about.name, self.reason().to_ascii_lowercase());
        let name =
            name.get(..name.floor_char_boundary(NAME_MAX - reason.len())).unwrap_or_default();
        format!("{name}.{reason}.{:016x}", self.id)
    }

    /// Returns the event to create; `None` for events about events, which would cause endless events.
    pub fn compose(
        &self,
        settings: &PostingSettings,
        default_namespace: Option<&str>,
    ) -> Option<NewEvent> {
        let (about, namespace) = posting::place(&self.about, default_namespace)?;
        let component = &settings.reporting_component;
        let mut body = self.changes();
        let more = json!({
            "metadata": { "namespace": namespace, "name": self.name() },
            "type": "Warning",
            "reason": self.reason(),
            "reportingComponent": component,
            "reportingInstance": settings.reporting_instance,
            "source": { "component": component },
            "involvedObject": reference::object(&about),
            "firstTimestamp": to_the_second(self.first),
        });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        Some(NewEvent { namespace, body })
    }

    /// Returns the fields that change with each failure, as a merge patch.
    pub fn changes(&self) -> Value {
        json!({
            "count": self.count,
            "lastTimestamp": to_the_second(self.last),
            "message": posting::shortened(&self.text),
        })
    }

    fn reason(&self) -> &'static str {
        if self.gave_up { GAVE_UP } else { RETRIED }
    }
}

fn to_the_second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::{Arc, Duration, FailureEvent, ObjectRef, Timestamp};
    use crate::settings::PostingSettings;

    #[test]
    fn an_event_counts_until_the_operator_gives_up() {
        let about = ObjectRef {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: "web".into(),
            uid: "u".into(),
            namespace: Some("shop".into()),
        };
        let at = |seconds| Timestamp::from_second(seconds).expect("valid");
        let mut event = FailureEvent::new(Arc::new(about), "create_fn", at(1));
        assert!(!event.failed("one".into(), false, at(1)));
        assert!(!event.failed("two".into(), false, at(61)));
        let new = event.compose(&PostingSettings::default(), None).expect("not about an event");
        let (name, body) = (event.name(), new.body);
        assert!(name.starts_with("web.handlerfailed."), "{name}");
        assert_eq!((body["count"].as_u64(), body["type"].as_str()), (Some(2), Some("Warning")));
        assert_eq!(body["firstTimestamp"], "1970-01-01T00:00:01Z");
        assert_eq!(body["lastTimestamp"], "1970-01-01T00:01:01Z");
        assert_eq!((&*new.namespace, body["message"].as_str()), ("shop", Some("two")));
        assert!(event.failed("end".into(), true, at(90)), "another event");
        let body =
            event.compose(&PostingSettings::default(), None).expect("not about an event").body;
        assert_eq!(
            (body["count"].as_u64(), body["reason"].as_str()),
            (Some(1), Some("HandlerGaveUp"))
        );
        assert_ne!(event.name(), name);
    }

    #[test]
    fn events_about_the_same_become_rarer() {
        let pauses = [0, 1, 5, 6, 40].map(FailureEvent::pause);
        assert_eq!(pauses, [10, 20, 320, 600, 600].map(Duration::from_secs));
    }
}
