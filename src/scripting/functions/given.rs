//! The arguments that a script passes to a library, as the engines see them.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::logic::text::duration;
use crate::scripting::{
    functions::{
        outcome::{Datum, Failure, integer},
        types::{Parameter, Type},
    },
    values::{limits, refused::Refused, text::shown},
};

/// One argument of a call.
#[derive(Debug)]
pub(crate) enum Given {
    /// Data, or bytes.
    Datum(Datum),
    /// A value that is not data: its shape, and the reason.
    Refused(Shape, Refused),
}

/// The shape of an argument, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Null, or an omitted argument.
    Nothing,
    /// True or false.
    Boolean,
    /// A number, with a fraction or without.
    Number { whole: bool },
    /// A string with at least one character.
    Text,
    /// A string without characters.
    EmptyText,
    /// Bytes that are not UTF-8.
    Bytes,
    /// A list, possibly empty.
    List,
    /// A map with fields.
    Map,
    /// Lua cannot distinguish an empty map from an empty list.
    Empty,
    /// A function of the script.
    Function,
    /// A value that no parameter accepts: a coroutine, a value of the host.
    Other(&'static str),
}

impl Shape {
    /// Returns the name that messages use.
    fn name(self) -> &'static str {
        match self {
            Shape::Nothing => "nothing",
            Shape::Boolean => "true or false",
            Shape::Number { .. } => "a number",
            Shape::Text => "a string",
            Shape::EmptyText => "an empty string",
            Shape::Bytes => "bytes that are not UTF-8",
            Shape::List => "a list",
            Shape::Map => "a map",
            Shape::Empty => "an empty table",
            Shape::Function => "a function",
            Shape::Other(name) => name,
        }
    }

    fn fits(self, kind: Type) -> bool {
        match kind {
            Type::Any => true,
            Type::Boolean => self == Shape::Boolean,
            Type::Name => self == Shape::Text,
            Type::Text => matches!(self, Shape::Text | Shape::EmptyText),
            Type::Bytes => matches!(self, Shape::Text | Shape::EmptyText | Shape::Bytes),
            Type::Map => matches!(self, Shape::Map | Shape::Empty),
            Type::List => matches!(self, Shape::List | Shape::Empty),
            Type::Integer | Type::Count => self == Shape::Number { whole: true },
            Type::Number => matches!(self, Shape::Number { .. }),
            Type::Duration => matches!(self, Shape::Number { .. } | Shape::Text),
            Type::Function => self == Shape::Function,
            Type::Nothing => self == Shape::Nothing,
            Type::Selector | Type::Labels => {
                matches!(self, Shape::Text | Shape::Map | Shape::Empty)
            }
            Type::Object => self == Shape::Map,
            Type::Test => matches!(self, Shape::Text | Shape::Function),
        }
    }
}

impl Given {
    /// Returns whether it is a map, as options are.
    pub(super) fn is_map(&self) -> bool {
        matches!(self, Given::Datum(Datum::Json(Value::Object(_))) | Given::Refused(Shape::Map, _))
    }

    /// Returns whether it is null.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Given::Datum(Datum::Json(Value::Null)))
    }
}

impl Parameter {
    /// Returns the argument, if it matches and is not too large.
    pub(super) fn check(&self, given: Given, size_max: usize) -> Result<Datum, Failure> {
        match given {
            Given::Datum(Datum::Json(value)) => self.check_json(value).map(Datum::Json),
            Given::Datum(Datum::Bytes(bytes)) if bytes.len() > size_max => {
                Err(limits::too_large_as_text(&format!("`{}`", self.name), size_max).into())
            }
            Given::Datum(bytes @ Datum::Bytes(_)) if self.kind == Type::Bytes => Ok(bytes),
            Given::Datum(Datum::Bytes(_) | Datum::Map(_)) => Err(self.misfit(Shape::Bytes.name())),
            Given::Refused(shape, refused) if shape.fits(self.kind) => {
                Err(refused.at(&format!("`{}`", self.name)).into())
            }
            Given::Refused(shape, _) => Err(self.misfit(shape.name())),
        }
    }

    /// Checks an argument whose content is not read.
    pub(super) fn check_shape(&self, shape: Shape) -> Result<(), Failure> {
        if shape == Shape::Nothing && (self.kind != Type::Any || !self.required) {
            self.left_out()
        } else if shape.fits(self.kind) {
            Ok(())
        } else {
            Err(self.misfit(shape.name()))
        }
    }

    fn check_json(&self, value: Value) -> Result<Value, Failure> {
        let fits = match self.kind {
            Type::Any => true,
            Type::Boolean => value.is_boolean(),
            Type::Name | Type::Test => value.as_str().is_some_and(|it| !it.is_empty()),
            Type::Text | Type::Bytes => value.is_string(),
            Type::Map | Type::Object => value.is_object(),
            // One of the languages writes an empty list as an empty map.
            Type::List if value.as_object().is_some_and(Map::is_empty) => {
                return Ok(Value::Array(Vec::new()));
            }
            Type::List => value.is_array(),
            Type::Integer => integer(&value).is_some(),
            Type::Number => value.is_number(),
            Type::Duration => span(&value).is_some(),
            Type::Count => integer(&value).is_some_and(|it| it >= 0),
            Type::Selector => value.is_object() || value.as_str().is_some_and(|it| !it.is_empty()),
            Type::Labels => value.is_object() || value.is_string(),
            Type::Function | Type::Nothing => false,
        };
        if fits {
            Ok(value)
        } else if self.is_secret {
            Err(self.misfit(veiled(&value)))
        } else {
            Err(self.misfit(&brief(&value)))
        }
    }

    fn misfit(&self, got: &str) -> Failure {
        format!("`{}`: expected {}, got {got}", self.name, self.kind.expected()).into()
    }

    /// Checks that the parameter may be omitted.
    pub(super) fn left_out(&self) -> Result<(), Failure> {
        if self.required {
            let expected = self.kind.expected();
            return Err(format!("`{}` is missing: expected {expected}", self.name).into());
        }
        Ok(())
    }
}

/// Returns a duration in one of its forms.
pub(super) fn span(value: &Value) -> Option<Duration> {
    duration::parse(value)
}

/// Returns the description of a value that no message may show.
fn veiled(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns a value as messages show it.
fn brief(value: &Value) -> String {
    /// Enough to recognize it.
    const CHARACTERS: usize = 60;
    let text = shown(value);
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
