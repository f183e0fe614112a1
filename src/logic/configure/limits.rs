//! The limits of scripts: what they take, and the least that leaves a script something to run with.

use std::time::Duration;

use serde_json::Value;

use super::value::Plain;
use crate::logic::size;

/// A limit in bytes, of at least so many.
pub(super) fn bytes(value: &Value, least: usize) -> Result<usize, String> {
    let bytes = size::parse(value);
    let bytes = bytes.ok_or_else(|| format!("expected {}, got {value}", size::EXPECTED))?;
    if bytes < least {
        return Err(format!("expected at least {}, got {value}", size::shown(least)));
    }
    Ok(bytes)
}

/// A number in these bounds.
pub(super) fn count(value: &Value, (least, most): (usize, usize)) -> Result<usize, String> {
    let count = usize::from_json(value)?;
    if count < least {
        return Err(format!("expected at least {least}, got {value}"));
    }
    if count > most {
        return Err(format!("expected at most {most}, got {value}"));
    }
    Ok(count)
}

/// A running time of at least so much.
pub(super) fn time(value: &Value, least: Duration) -> Result<Duration, String> {
    let time = Duration::from_json(value)?;
    if time < least {
        return Err(format!("expected at least {}ms, got {value}", least.as_millis()));
    }
    Ok(time)
}

/// The longest time of something, of at least so much; null is no limit.
pub(super) fn optional_time(value: &Value, least: Duration) -> Result<Option<Duration>, String> {
    if value.is_null() { Ok(None) } else { time(value, least).map(Some) }
}
