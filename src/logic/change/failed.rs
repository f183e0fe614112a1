//! Handlers that have failed permanently, stored on their object, so that they are retried once their code has changed, also after
//! a restart.
//!
//! Kopf ignores the annotation, and it is not part of the essence.

use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::state::State;
use crate::logic::{
    handlers::{handler::Handler, progress},
    object::{annotations, fields, reason::Reason},
};
use crate::settings::{PersistenceSettings, ProgressStorage, RetryFailed};

/// The name of the annotation, after the prefix.
pub(super) const NAME: &str = "kopf-failed";

/// Maximum number of handlers that are recorded on one object.
const HANDLERS_MAX: usize = 20;

/// Maximum length of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 200;

/// The handlers that have failed on one object, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailedHandlers(IndexMap<String, HandlerFailure>);

/// The failure of one handler.
#[derive(Clone, Debug, PartialEq)]
struct HandlerFailure {
    /// The fingerprint of its code.
    code: String,
    /// The reason for which it was called.
    reason: Reason,
    /// It raised `PermanentError`, see [`RetryFailed`].
    is_permanent: bool,
    /// A user has requested a retry, whatever the code and the settings.
    is_requested: bool,
    at: String,
    message: String,
}

impl FailedHandlers {
    /// Reads the failures recorded on an object. Those that cannot be read are ignored.
    pub fn of(persistence: &PersistenceSettings, body: &Value) -> Self {
        // Most objects have no annotations when they are created.
        let name = annotations::of(body).and_then(|_| annotation(persistence));
        let text = name.and_then(|it| annotations::text(body, &it));
        let noted = text.and_then(|it| serde_json::from_str::<Map<String, Value>>(it).ok());
        let entries = noted.unwrap_or_default().into_iter();
        FailedHandlers(
            entries.filter_map(|(id, it)| Some((id, HandlerFailure::parse(&it)?))).collect(),
        )
    }

    /// Returns whether nothing has failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ids of the handlers.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether a user has requested a retry of this handler.
    pub fn is_requested(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|it| it.is_requested)
    }

    /// Returns the handlers that failed with other code than their current one, or whose retry was requested, and the reason to call them
    /// for. All of them were called for the same reason.
    pub fn edited(
        &self,
        handlers: &[Arc<Handler>],
        which: RetryFailed,
    ) -> Option<(Reason, Vec<Arc<Handler>>)> {
        let is_edited = |handler: &&Arc<Handler>| {
            let Some(failure) = self.0.get(&*handler.id) else { return false };
            if failure.is_requested {
                return true;
            }
            let is_wanted = match which {
                RetryFailed::Never => false,
                RetryFailed::Errors => !failure.is_permanent,
                RetryFailed::All => true,
            };
            is_wanted && handler.code != 0 && failure.code != fingerprint(handler)
        };
        let mut edited: Vec<_> = handlers.iter().filter(is_edited).cloned().collect();
        let reason = self.0.get(&*edited.first()?.id)?.reason;
        edited.retain(|it| self.0.get(&*it.id).is_some_and(|it| it.reason == reason));
        Some((reason, edited))
    }

    /// Records how the called handlers ended, and removes those that no longer exist.
    pub fn note(
        &mut self,
        state: &State,
        reason: Reason,
        (called, known): (&[Arc<Handler>], &[Arc<Handler>]),
        now: Timestamp,
    ) {
        self.0.retain(|id, _| known.iter().any(|it| *it.id == **id));
        for handler in called {
            let Some(record) = state.record(&handler.id).filter(|it| it.finished()) else {
                continue;
            };
            if record.success {
                self.0.shift_remove(&*handler.id);
            } else if self.0.len() < HANDLERS_MAX || self.0.contains_key(&*handler.id) {
                let message = record.message.as_deref().unwrap_or_default();
                let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
                let failure = HandlerFailure {
                    code: fingerprint(handler),
                    reason,
                    is_permanent: state.is_permanent(&handler.id),
                    is_requested: false,
                    at: progress::touch_stamp(record.stopped.unwrap_or(now)),
                    message: message.get(..end).unwrap_or_default().to_owned(),
                };
                self.0.insert(handler.id.to_string(), failure);
            }
        }
    }

    /// Adds the failures to a patch.
    pub fn store(
        &self,
        persistence: &PersistenceSettings,
        body: &Value,
        patch: &mut Map<String, Value>,
    ) {
        let Some(name) = annotation(persistence) else { return };
        let path = ["metadata", "annotations", &name];
        if !self.0.is_empty() {
            let entries = self.0.iter().map(|(id, it)| (id.clone(), it.to_json()));
            let text = Value::Object(entries.collect()).to_string();
            annotations::put(patch, &name, text.into());
        } else if fields::get(body, &path).is_some() {
            fields::put(patch, &path, Value::Null);
        }
    }
}

impl HandlerFailure {
    fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let reasons = [Reason::Create, Reason::Update, Reason::Resume];
        Some(HandlerFailure {
            code: text("code")?,
            reason: reasons.into_iter().find(|it| value["reason"] == it.as_str())?,
            is_permanent: value["permanent"] == true,
            is_requested: value["retry"] == true,
            at: text("at").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
        })
    }

    fn to_json(&self) -> Value {
        let mut json = json!({
            "code": self.code,
            "reason": self.reason.as_str(),
            "permanent": self.is_permanent,
            "at": self.at,
            "message": self.message,
        });
        if let (true, Some(json)) = (self.is_requested, json.as_object_mut()) {
            json.insert("retry".into(), true.into());
        }
        json
    }
}

fn fingerprint(handler: &Handler) -> String {
    format!("{:016x}", handler.code)
}

/// Returns the name of the annotation; `None` if it is disabled, or if annotations are not used at all.
fn annotation(persistence: &PersistenceSettings) -> Option<String> {
    let prefix =
        persistence.remember_failures.then(|| own_prefix(&persistence.progress_storage))??;
    Some(format!("{prefix}/{NAME}"))
}

/// Returns the prefix of the operator's annotations; `None` if it uses none.
pub(super) fn own_prefix(storage: &ProgressStorage) -> Option<&str> {
    match storage {
        ProgressStorage::Annotations(own) | ProgressStorage::Smart(own, _) => Some(&own.prefix),
        ProgressStorage::Status(_) => None,
        ProgressStorage::Multi(storages) => storages.iter().find_map(own_prefix),
    }
}
