//! The plain values that a setting accepts, by its type.

use std::time::Duration;

use serde_json::Value;

use super::SettingShape;
use crate::logic::text::duration;
use crate::settings::{RetryFailed, Selectors, Strict};

/// A type of settings, as users see it.
pub(super) trait Plain: Sized {
    /// The end of "expected …".
    const TAKES: &'static str;
    /// The kind of value.
    const SHAPE: SettingShape = SettingShape::Plain;
    /// Returns the value for reading.
    fn to_json(&self) -> Value;
    /// Reads a value that is written; the error completes the sentence "settings.x.y: …".
    fn from_json(value: &Value) -> Result<Self, String>;
}

impl Plain for bool {
    const TAKES: &'static str = "true or false";

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for String {
    const TAKES: &'static str = "a string";
    const SHAPE: SettingShape = SettingShape::Text;

    fn to_json(&self) -> Value {
        self.as_str().into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for u32 {
    const TAKES: &'static str = "a non-negative integer";

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let number = whole(value).and_then(|it| u32::try_from(it).ok());
        number.ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for i64 {
    const TAKES: &'static str = "an integer";

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        whole(value).ok_or_else(|| unfit::<Self>(value))
    }
}

/// Settings of this type are limits: zero would stop the operator silently.
impl Plain for usize {
    const TAKES: &'static str = "a positive integer";

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let number = whole(value).and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0);
        number.ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for Duration {
    const TAKES: &'static str = duration::EXPECTED;

    fn to_json(&self) -> Value {
        duration::to_json(*self)
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        duration::parse(value).ok_or_else(|| unfit::<Self>(value))
    }
}

/// A single duration is a list of one. A string with commas is a list, because environment variables have no other form.
impl Plain for Vec<Duration> {
    const TAKES: &'static str = "a list of seconds or durations such as \"10m\"";

    fn to_json(&self) -> Value {
        self.iter().map(Plain::to_json).collect()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let unfit = || unfit::<Self>(value);
        let each = |items: &[Value]| items.iter().map(duration::parse).collect::<Option<_>>();
        let list = match value {
            Value::Array(items) => each(items),
            Value::String(text) if text.contains(',') => {
                let seconds = |it: &str| it.parse::<f64>().map_or_else(|_| it.into(), Value::from);
                each(&text.split(',').map(|it| seconds(it.trim())).collect::<Vec<_>>())
            }
            // An empty table of a script does not show whether it is a list.
            Value::Object(fields) if fields.is_empty() => Some(Vec::new()),
            Value::Null | Value::Bool(_) | Value::Object(_) => None,
            Value::Number(_) | Value::String(_) => each(std::slice::from_ref(value)),
        };
        list.ok_or_else(unfit)
    }
}

impl Plain for Selectors {
    const TAKES: &'static str = "a map from resource selectors to strings";
    const SHAPE: SettingShape = SettingShape::Map;

    fn to_json(&self) -> Value {
        Value::Object(self.iter().map(|(key, it)| (key.clone(), it.as_str().into())).collect())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let texts = |(key, it): (&String, &Value)| Some((key.clone(), it.as_str()?.to_owned()));
        let read = match value {
            Value::Object(items) => items.iter().map(texts).collect(),
            Value::Array(items) if items.is_empty() => Some(Selectors::new()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        };
        let read: Selectors = read.ok_or_else(|| unfit::<Self>(value))?;
        match read.keys().find(|key| key.split('/').any(str::is_empty)) {
            Some(key) => Err(format!(
                "{key:?} is not a resource selector: write it as \"pods\", \"v1/pods\", \"kopf.dev/v1/kopfexamples\" or \"*\""
            )),
            None => Ok(read),
        }
    }
}

impl Plain for RetryFailed {
    const TAKES: &'static str = "true, false or \"all\"";

    fn to_json(&self) -> Value {
        match self {
            RetryFailed::Never => false.into(),
            RetryFailed::Errors => true.into(),
            RetryFailed::All => "all".into(),
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::Bool(true) => Ok(RetryFailed::Errors),
            Value::Bool(false) => Ok(RetryFailed::Never),
            Value::String(text) if text == "all" => Ok(RetryFailed::All),
            Value::String(_)
            | Value::Null
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => Err(unfit::<Self>(value)),
        }
    }
}

impl Plain for Strict {
    const TAKES: &'static str = "\"off\", \"names\" or \"types\"";
    const SHAPE: SettingShape = SettingShape::Text;

    fn to_json(&self) -> Value {
        match self {
            Strict::Off => "off".into(),
            Strict::Names => "names".into(),
            Strict::Types => "types".into(),
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("off") => Ok(Strict::Off),
            Some("names") => Ok(Strict::Names),
            Some("types") => Ok(Strict::Types),
            // YAML reads `off` as a boolean.
            None if *value == Value::Bool(false) => Ok(Strict::Off),
            Some(_) | None => Err(unfit::<Self>(value)),
        }
    }
}

impl<T: Plain> Plain for Option<T> {
    const TAKES: &'static str = T::TAKES;
    const SHAPE: SettingShape = T::SHAPE;

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Plain::to_json)
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }
}

/// Returns a number without a fraction as an integer; all numbers of Lua are floats.
pub(super) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|it| it.fract() == 0.0)?;
        // A float without a fraction prints as an integer, and parses unless it is out of range.
        format!("{float:.0}").parse().ok()
    })
}

/// Returns the error message for a value of another type.
pub(super) fn unfit<T: Plain>(value: &Value) -> String {
    format!("expected {}, got {value}", T::TAKES)
}
