//! An error of a server as a value of scripts: it prints well, and scripts that catch it can read its fields.

use serde_json::Value;

/// What a server refused, or could not do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerRefusal {
    /// The class of the error, which the log shows if no script catches it.
    pub(crate) class: &'static str,
    /// The field `status`: the HTTP status; `None` if there was no response.
    pub(crate) status: Option<u16>,
    /// The field `reason`: one word, such as `Conflict`; empty if there is none.
    pub(crate) reason: String,
    /// The field `message`: what was attempted, why it failed, and what to do about it.
    pub(crate) message: String,
    /// The field `details`: details from the server; null if there are none.
    pub(crate) details: Value,
}

impl ServerRefusal {
    /// Returns a field; null if there is none of this name.
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
