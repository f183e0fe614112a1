//! The values that scripts and the host pass to each other, independent of the language.

pub(super) mod account;
pub(crate) mod conditions;
pub(super) mod diagnostics;
pub(super) mod errors;
pub(crate) mod files;
pub(super) mod limits;
pub(super) mod memos;
pub(super) mod refusal;
pub(super) mod refused;
pub(super) mod stopped;
pub(super) mod text;
use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::Value;

use super::handles::AnyHandle;
use crate::logic::{
    handlers::declare::{Argument, Marker},
    text::duration,
};
use crate::scripting::values::{
    errors::ErrorValue,
    memos::Memos,
    refused::{Refused, SizeLimit},
};

/// A value that the host returns to a script.
pub(crate) enum HostValue {
    /// No value: nil / `()`.
    Nil,
    /// Data. A null is a value: it is `kopf.null` in Lua.
    Json(Value),
    /// Data that are shared with the host.
    Tree(Arc<Value>),
    /// A live value that scripts use in place.
    Handle(AnyHandle),
    /// A marker such as `kopf.PRESENT`, or a combination of functions.
    Filter(Filter),
    /// An error, which the script may raise.
    Error(ErrorValue),
}

/// A nested value as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nested {
    List,
    Map,
}

/// A marker such as `kopf.PRESENT`, or a combination of functions, as a value of scripts.
#[derive(Clone, Debug)]
pub(crate) struct Filter(pub(crate) Argument);

impl Filter {
    /// Returns the string that it prints as.
    pub(crate) fn text(&self) -> &'static str {
        match &self.0 {
            Argument::Marker(Marker::Present) => "kopf.PRESENT",
            Argument::Marker(Marker::Absent) => "kopf.ABSENT",
            Argument::Marker(Marker::Everything) => "kopf.EVERYTHING",
            Argument::Absent
            | Argument::Value(_)
            | Argument::Callback(_)
            | Argument::List(_)
            | Argument::Map(_) => "a combination of functions",
        }
    }
}

impl HostValue {
    /// Converts data; null becomes nil.
    pub(crate) fn some(value: Value) -> Self {
        if value.is_null() { HostValue::Nil } else { HostValue::Json(value) }
    }
}

/// A key that a script looks up.
pub(crate) enum LookupKey<'a> {
    /// A name, such as that of a field.
    Name(&'a str),
    /// An integer as it is written, and the index from 0 that it means in a list, if it can mean one.
    Place(i64, Option<usize>),
    /// Data of other types.
    Data(Value),
    /// A marker such as `kopf.EVERYTHING`, as it prints.
    Marker(String),
    /// A value of another type, which is named.
    Other(&'static str),
}

impl<'a> LookupKey<'a> {
    /// Returns the key that a name or a number stands for.
    ///
    /// # Errors
    /// It is of another type.
    pub(crate) fn name(&self) -> Result<Cow<'a, str>, String> {
        let kind = match self {
            LookupKey::Name(name) => return Ok(Cow::Borrowed(name)),
            LookupKey::Place(number, _) => return Ok(number.to_string().into()),
            LookupKey::Data(Value::Array(_) | Value::Object(_)) => "table",
            LookupKey::Data(_) | LookupKey::Marker(_) => "value of another type",
            LookupKey::Other(kind) => kind,
        };
        Err(format!("a key must be a string, not a {kind}"))
    }

    /// Returns the key that this value stands for.
    pub(crate) fn of(value: &'a Value) -> Self {
        if let Some(name) = value.as_str() {
            return LookupKey::Name(name);
        }
        value.as_i64().map_or_else(
            || LookupKey::Data(value.clone()),
            |it| LookupKey::Place(it, usize::try_from(it).ok()),
        )
    }
}

/// A value that a script passes, in its language.
pub(crate) trait Passed {
    /// Returns whether it is nil / `()`.
    fn is_nil(&self) -> bool;

    /// Returns whether the value that the object has at the same place decides its form: whether an empty table is a list, or how a number
    /// is written.
    fn takes_form(&self) -> bool;

    /// Returns it as data.
    fn read(&self) -> Result<Value, Refused>;

    /// Returns it as data; errors call it `name`.
    fn data(&self, name: &str) -> Result<Value, String> {
        self.read().map_err(|it| it.at(name))
    }

    /// Returns it as data that are kept within a limit, below a number of levels. Where the language cannot determine the type, it follows that of
    /// `like`.
    fn kept(
        &self,
        name: &str,
        like: Option<&Value>,
        within: (SizeLimit, usize),
    ) -> Result<Value, String>;

    /// Returns the maximum size of what is kept, in bytes of JSON.
    fn room(&self) -> usize;

    /// Calls a function with the memos of the script, if there are any.
    fn memos(&self, use_them: &mut dyn FnMut(&Memos));
}

/// Returns a duration as scripts write it; `None` for null. The error says what is expected.
pub(crate) fn duration(value: &Value) -> Result<Option<Duration>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let negative = if duration::is_negative(value) { ", and not negative" } else { "" };
    let expected = || format!("expected {}{negative}, got {value}", duration::EXPECTED);
    duration::parse(value).map(Some).ok_or_else(expected)
}
