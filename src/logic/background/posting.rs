//! Kubernetes events that the operator posts about objects.
//!
//! The contract is `tests/vectors/k8s-events.json`.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::logic::{
    handlers::{outcome::LogLevel, progress::format_stamp},
    object::{ObjectRef, reference},
};
use crate::settings::PostingSettings;

/// Maximum number of characters of a message; longer ones are truncated.
pub const MESSAGE_CHARS_MAX: usize = 1024;
/// Some API servers reject longer messages; they count bytes.
const MESSAGE_BYTES_MAX: usize = 1024;
/// Replaces the truncated part of a message.
const CUT: &str = "...";
/// The default namespace for events of cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// The content of an event, independent of its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The field `type`: `Normal`, `Warning`, and others that only Kopf writes.
    pub kind: String,
    /// The field `reason`: a word for programs.
    pub reason: String,
    /// The field `message`: a sentence for humans.
    pub message: String,
}

/// An event about one object, in the form in which it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The namespace to create it in.
    pub namespace: String,
    /// The body of the Event, as it is created.
    pub body: Value,
}

/// Returns the event of `kopf.event`: any type, independent of the level.
pub fn event(settings: &PostingSettings, note: Note) -> Option<Note> {
    settings.enabled.then_some(note)
}

/// Returns the event of `kopf.info`.
pub fn info(settings: &PostingSettings, reason: &str, message: &str) -> Option<Note> {
    let is_posted = settings.enabled && settings.level <= LogLevel::Info.number();
    is_posted.then(|| Note::new("Normal", reason, message))
}

/// Returns the event of `kopf.warn`. Not posted if posting is disabled, unlike in Kopf.
pub fn warn(settings: &PostingSettings, reason: &str, message: &str) -> Option<Note> {
    let is_posted = settings.enabled && settings.level <= LogLevel::Warning.number();
    is_posted.then(|| Note::new("Warning", reason, message))
}

/// Returns the event of `kopf.exception`, with the class and message of the error, if any.
pub fn exception(
    settings: &PostingSettings,
    reason: Option<&str>,
    message: &str,
    error: Option<(&str, &str)>,
) -> Option<Note> {
    let message = match error {
        Some((_, text)) if message.is_empty() => text.to_owned(),
        Some((_, text)) => format!("{message} {text}"),
        None => message.to_owned(),
    };
    let reason = reason.unwrap_or(error.map_or("NoneType", |(class, _)| class));
    let is_posted = settings.enabled && settings.level <= LogLevel::Error.number();
    is_posted.then(|| Note::new("Error", reason, &message))
}

/// Returns the event of a log line of an object's logger, by the number of its level.
pub fn of_log(settings: &PostingSettings, level: u32, message: &str) -> Option<Note> {
    let kind = match level {
        0..=10 => "Debug".to_owned(),
        11..=20 => "Normal".to_owned(),
        21..=30 => "Warning".to_owned(),
        31..=40 => "Error".to_owned(),
        41..=50 => "Fatal".to_owned(),
        51.. => format!("Level {level}"),
    };
    let is_posted = settings.enabled && settings.loggers && level >= settings.level;
    is_posted.then(|| Note::new(&kind, "Logging", message))
}

/// Returns the event to create for a note; `None` for notes about events, which would cause endless events.
///
/// `default_namespace` is the one of the credentials, for the events of cluster-scoped objects.
pub fn compose(
    note: &Note,
    about: &ObjectRef,
    settings: &PostingSettings,
    default_namespace: Option<&str>,
    now: Timestamp,
) -> Option<NewEvent> {
    let (about, namespace) = place(about, default_namespace)?;
    // Always with a fraction: the API rejects an `eventTime` without one.
    let now = format_stamp(now);
    let body = json!({
        "metadata": { "namespace": namespace, "generateName": settings.event_name_prefix },
        "action": "Action?",
        "type": note.kind,
        "reason": note.reason,
        "message": shortened(&note.message),
        "reportingComponent": settings.reporting_component,
        "reportingInstance": settings.reporting_instance,
        "source": { "component": settings.reporting_component },
        "involvedObject": reference::object(&about),
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": now,
    });
    Some(NewEvent { namespace, body })
}

/// Returns the object as events refer to it, and the namespace of its events; `None` for events, which would cause endless events.
pub(super) fn place(
    about: &ObjectRef,
    default_namespace: Option<&str>,
) -> Option<(ObjectRef, String)> {
    if about.api_version == "v1" && about.kind == "Event" {
        return None;
    }
    let own = about.namespace.as_deref().filter(|it| !it.is_empty());
    let namespace = own.or(default_namespace).unwrap_or(DEFAULT_NAMESPACE).to_owned();
    Some((ObjectRef { namespace: Some(namespace.clone()), ..about.clone() }, namespace))
}

/// Returns a message truncated to the maximum size: longer messages are not kept in the queue.
pub fn shortened(message: &str) -> Cow<'_, str> {
    match cut(message) {
        Cow::Borrowed(message) => fit(message),
        Cow::Owned(message) => Cow::Owned(fit(&message).into_owned()),
    }
}

/// Truncates the middle of a message that is too long; its start and its end are the most useful.
pub fn cut(message: &str) -> Cow<'_, str> {
    let chars = message.chars().count();
    if chars <= MESSAGE_CHARS_MAX {
        return Cow::Borrowed(message);
    }
    let kept = MESSAGE_CHARS_MAX - CUT.len();
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = message.chars().take(head).collect();
    let end: String = message.chars().skip(chars - tail).collect();
    Cow::Owned(format!("{start}{CUT}{end}"))
}

/// Truncates more of the middle, until the message fits in bytes, too.
fn fit(message: &str) -> Cow<'_, str> {
    if message.len() <= MESSAGE_BYTES_MAX {
        return Cow::Borrowed(message);
    }
    let kept = MESSAGE_BYTES_MAX - CUT.len();
    let (head, tail) = (kept.div_ceil(2), message.len() - kept / 2);
    let start = message.get(..message.floor_char_boundary(head)).unwrap_or_default();
    let end = message.get(message.ceil_char_boundary(tail)..).unwrap_or_default();
    Cow::Owned(format!("{start}{CUT}{end}"))
}

/// Returns the log line about an event that could not be posted, with the status of the response, if any.
pub fn failed(status: Option<u16>, problem: &str, note: &Note) -> String {
    let code = status.map_or_else(String::new, |it| format!("Code: {it}. "));
    let event = shown(note);
    format!(
        "Failed to post an event. Ignoring and continuing. {code}Message: {problem}. Event: {event}."
    )
}

/// Formats a note for log lines.
pub fn shown(note: &Note) -> String {
    format!("type='{}', reason='{}', message='{}'", note.kind, note.reason, fit(&note.message))
}

impl Note {
    /// Creates a note of this type, such as `Normal`, with the message in full.
    pub fn new(kind: &str, reason: &str, message: &str) -> Self {
        Note { kind: kind.to_owned(), reason: reason.to_owned(), message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Note, failed, fit, shown};

    #[test]
    fn a_message_fits_in_bytes_and_stays_text() {
        assert_eq!(fit("ü"), "ü");
        assert_eq!(fit(&"x".repeat(1024)).len(), 1024);
        let cut = fit(&"ü".repeat(1000)).into_owned();
        assert!((1020..=1024).contains(&cut.len()), "{}", cut.len());
        assert!(cut.starts_with("üü") && cut.contains("ü...ü") && cut.ends_with("üü"));
        assert!(fit(&"€".repeat(1000)).len() <= 1024);
        let shown = shown(&Note::new("Normal", "Reason", &"x".repeat(10_000)));
        assert!((1024..1100).contains(&shown.len()), "{}", shown.len());
    }

    #[test]
    fn a_failure_names_the_event() {
        let note = Note::new("Normal", "Tested", "hello");
        assert_eq!(
            failed(Some(403), "no", &note),
            "Failed to post an event. Ignoring and continuing. Code: 403. Message: no. \
             Event: type='Normal', reason='Tested', message='hello'."
        );
    }
}
