//! Which plain values a setting takes, by its type.

use std::time::Duration;

use serde_json::{Value, json};

use crate::settings::{DiffBaseStorage, ProgressStorage};

/// A type of settings, as scripts see it.
pub(super) trait Setting: Sized {
    /// For reading.
    fn to_json(&self) -> Value;
    /// For writing; the error completes the sentence "settings.x.y: …".
    fn from_json(value: Value) -> Result<Self, String>;
}

impl Setting for bool {
    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| unfit("true or false", &value))
    }
}

impl Setting for String {
    fn to_json(&self) -> Value {
        self.as_str().into()
    }

    fn from_json(value: Value) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| unfit("a string", &value))
    }
}

impl Setting for i64 {
    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: Value) -> Result<Self, String> {
        let negative = || value.as_f64().filter(|it| it.fract() == 0.0 && *it < 0.0);
        let exact = value.as_i64().or_else(|| whole(&value));
        let exact = exact.or_else(|| format!("{:.0}", negative()?).parse().ok());
        exact.ok_or_else(|| unfit("a whole number", &value))
    }
}

impl Setting for u32 {
    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: Value) -> Result<Self, String> {
        whole(&value).ok_or_else(|| unfit("a whole number", &value))
    }
}

impl Setting for usize {
    fn to_json(&self) -> Value {
        (*self).into()
    }

    /// Settings of this type are limits: zero would stop the operator without a word.
    fn from_json(value: Value) -> Result<Self, String> {
        let positive = whole(&value).filter(|limit| *limit > 0);
        positive.ok_or_else(|| unfit("a whole number above zero", &value))
    }
}

impl Setting for Duration {
    fn to_json(&self) -> Value {
        let seconds = self.as_secs_f64();
        if self.subsec_nanos() == 0 { self.as_secs().into() } else { seconds.into() }
    }

    fn from_json(value: Value) -> Result<Self, String> {
        duration(&value).ok_or_else(|| unfit("seconds or a duration such as \"10m\"", &value))
    }
}

impl Setting for Vec<Duration> {
    fn to_json(&self) -> Value {
        self.iter().map(Setting::to_json).collect()
    }

    /// One duration is a list of one.
    fn from_json(value: Value) -> Result<Self, String> {
        if let Value::Array(items) = value {
            items.into_iter().map(Setting::from_json).collect()
        } else {
            Ok(vec![Setting::from_json(value)?])
        }
    }
}

impl<T: Setting> Setting for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Setting::to_json)
    }

    fn from_json(value: Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }
}

impl Setting for ProgressStorage {
    fn to_json(&self) -> Value {
        match self {
            ProgressStorage::Annotations(it) => json!({ "annotations": it.prefix }),
            ProgressStorage::Status(it) => json!({ "status": it.field }),
            ProgressStorage::Multi(all) => all.iter().map(Setting::to_json).collect(),
            ProgressStorage::Smart(annotations, status) => {
                json!({ "annotations": annotations.prefix, "status": status.field })
            }
        }
    }

    fn from_json(_: Value) -> Result<Self, String> {
        Err("changing the storage is not supported yet by this version".into())
    }
}

impl Setting for DiffBaseStorage {
    fn to_json(&self) -> Value {
        match self {
            DiffBaseStorage::Annotations(it) => json!({ "annotations": it.prefix }),
            DiffBaseStorage::Status(it) => json!({ "status": it.field }),
            DiffBaseStorage::Multi(all) => all.iter().map(Setting::to_json).collect(),
        }
    }

    fn from_json(_: Value) -> Result<Self, String> {
        Err("changing the storage is not supported yet by this version".into())
    }
}

/// A number without a fraction; Lua has no other numbers than floats.
fn whole<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    let exact = value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|it| it.fract() == 0.0 && *it >= 0.0)?;
        // The text of a float without a fraction is an integer, unless it is too large for one.
        format!("{float:.0}").parse().ok()
    })?;
    T::try_from(exact).ok()
}

/// Seconds, or a number with a unit.
pub(crate) fn duration(value: &Value) -> Option<Duration> {
    /// The longer unit goes first where one ends with the other.
    const UNITS: [(&str, f64); 5] =
        [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];
    if let Some(seconds) = value.as_f64() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let text = value.as_str()?.trim();
    let (number, unit) =
        UNITS.iter().find_map(|(suffix, seconds)| Some((text.strip_suffix(suffix)?, seconds)))?;
    let number: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

fn unfit(expected: &str, value: &Value) -> String {
    format!("expected {expected}, got {value}")
}
