//! An error of a server as a value of scripts: it prints well, and its fields can be read by whoever catches it.

use serde_json::Value;

/// What a server refused, or could not do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refusal {
    /// The class of the error, as the log names it where nobody catches it.
    pub(crate) class: &'static str,
    /// The field `status`: the HTTP status; nothing if there was no answer.
    pub(crate) status: Option<u16>,
    /// The field `reason`: in one word, such as `Conflict`; empty if there is none.
    pub(crate) reason: String,
    /// The field `message`: what was attempted, why it failed, and what to do about it.
    pub(crate) message: String,
    /// The field `details`: more of it, as the server gives it; null if nothing.
    pub(crate) details: Value,
}

impl Refusal {
    /// A field; null if there is none of this name.
    pub(crate) fn field(&self, name: &str) -> Value {
        match name {
            "status" => self.status.map_or(Value::Null, Value::from),
            "reason" => self.reason.as_str().into(),
            "message" => self.message.as_str().into(),
            "details" => self.details.clone(),
            _ => Value::Null,
        }
    }
}
