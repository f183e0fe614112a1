//! The result of a library call: data, or a failure.

use futures::stream::BoxStream;

use crate::scripting::values::{limits, refusal::ServerRefusal};

/// The values of a [`Body::Streaming`](super::types::Body::Streaming).
pub(crate) type Flow = BoxStream<'static, Outcome>;

/// The result of a call.
pub(crate) type Outcome = Result<Datum, Failure>;

/// A value between a script and a library.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// Data as JSON.
    Json(serde_json::Value),
    /// Bytes that need not be UTF-8: a string in Lua, a blob in Rhai.
    Bytes(Vec<u8>),
    /// A map of strings, some of which may be bytes.
    Map(Vec<(String, Vec<u8>)>),
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// A problem of the arguments, the grants or the content: a message without the name of the function.
    Plain(String),
    /// A server refused: an error value with fields.
    Answer(Box<ServerRefusal>),
}

impl From<serde_json::Value> for Datum {
    fn from(value: serde_json::Value) -> Self {
        Datum::Json(value)
    }
}

impl Datum {
    /// Returns a number, as an integer if it has no fraction: `5`, not `5.0`.
    pub(crate) fn of_number(number: f64) -> Self {
        Datum::Json(plain_number(number))
    }
}

/// Returns an integer, also from a float without a fraction: `2.0`.
pub(crate) fn integer(value: &serde_json::Value) -> Option<i64> {
    let whole = || value.as_f64().filter(|it| it.fract() == 0.0);
    value.as_i64().or_else(|| format!("{:.0}", whole()?).parse().ok())
}

/// Returns a number as JSON, as an integer if it has no fraction.
pub(crate) fn plain_number(number: f64) -> serde_json::Value {
    /// Beyond this, 64-bit floats have no fractions.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        // Such a number prints as an integer.
        return format!("{number:.0}").parse::<i64>().map_or(number.into(), Into::into);
    }
    number.into()
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Failure::Plain(message.into())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Plain(message)
    }
}

impl Failure {
    /// Returns the message, of either kind.
    pub(crate) fn into_message(self) -> String {
        match self {
            Failure::Plain(message) => message,
            Failure::Answer(refusal) => refusal.message,
        }
    }

    /// Adds the name of the function that failed.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Failure::Plain(message) => Failure::Plain(limits::cut(format!("{place}: {message}"))),
            Failure::Answer(mut refusal) => {
                refusal.message = limits::cut(format!("{place}: {}", refusal.message));
                Failure::Answer(refusal)
            }
        }
    }
}
