//! What a script passes to a declaration, and why a declaration is rejected.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

use crate::logic::handlers::{callback::Callback, function::Function, handler::Kind};

/// A value as a script passed it to a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// nil / `()`: the same as absent.
    Absent,
    /// Data without functions or markers inside: a scalar, a list, a map.
    Value(Value),
    /// A function, or a combination of functions (`kopf.all_` and the like).
    Callback(Callback),
    /// `kopf.PRESENT` and the like.
    Marker(Marker),
    /// A list with functions or markers inside.
    List(Vec<Argument>),
    /// A map with functions or markers inside, in the order of the script if the language has one, else sorted.
    Map(Vec<(String, Argument)>),
}

/// The constants of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `kopf.PRESENT`
    Present,
    /// `kopf.ABSENT`
    Absent,
    /// `kopf.EVERYTHING`
    Everything,
}

/// One declaration: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)`.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The function of `kopf` that was called.
    pub kind: Kind,
    /// The positional arguments before the options.
    pub selectors: Vec<Argument>,
    /// The options, by name.
    pub options: Vec<(String, Argument)>,
    /// The handler function.
    pub function: Function,
    /// `file:line` of the declaration.
    pub location: String,
}

/// Why a declaration is rejected. The engines add its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclareError {
    /// The problem.
    pub message: String,
    /// What to do about it, if known.
    pub hint: Option<String>,
}

/// Maximum size in bytes of the data, as JSON, in all declarations of a script, or in those of the sub-handlers of one attempt.
const DATA_MAX: usize = 4 << 20;

impl Declaration {
    /// Adds the size of this declaration's data to `total`.
    ///
    /// # Errors
    /// Fails if the data exceed the limit: the operator keeps them with the handlers.
    pub fn admit(&self, total: &AtomicUsize) -> Result<(), DeclareError> {
        let options = self.options.iter().map(|(name, it)| name.len() + it.bytes());
        let bytes = self.selectors.iter().map(Argument::bytes).chain(options).sum::<usize>();
        let before = total.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= DATA_MAX {
            return Ok(());
        }
        Err("the options of all declarations together are larger than 4 MiB as JSON: keep data in variables".into())
    }
}

impl Argument {
    /// Returns the approximate size of its data as JSON, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Argument::Absent | Argument::Callback(_) | Argument::Marker(_) => 1,
            Argument::Value(value) => json_bytes(value),
            Argument::List(items) => items.iter().map(|it| 1 + it.bytes()).sum(),
            Argument::Map(fields) => {
                fields.iter().map(|(key, it)| key.len() + 4 + it.bytes()).sum()
            }
        }
    }
}

fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(json_bytes).sum::<usize>() + 3,
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| key.len() + 4 + json_bytes(it)).sum::<usize>() + 3
        }
    }
}

impl DeclareError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        DeclareError { message: message.into(), hint: Some(hint.into()) }
    }
}

impl<T: Into<String>> From<T> for DeclareError {
    fn from(message: T) -> Self {
        DeclareError { message: message.into(), hint: None }
    }
}

impl fmt::Display for DeclareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DeclareError {}
