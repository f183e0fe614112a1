//! Reads the limits of scripts, and checks the minimum that a script needs to run.

use std::time::Duration;

use serde_json::Value;

use super::value::Plain;
use crate::logic::text::size;

/// Reads a limit in bytes, at least `least`.
pub(super) fn bytes(value: &Value, least: usize) -> Result<usize, String> {
    let bytes = size::parse(value);
    let bytes = bytes.ok_or_else(|| format!("expected {}, got {value}", size::EXPECTED))?;
    if bytes < least {
        return Err(format!("expected at least {}, got {value}", size::shown(least)));
    }
    Ok(bytes)
}

/// Reads an integer within these bounds.
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

/// Reads a duration of at least `least`.
pub(super) fn time(value: &Value, least: Duration) -> Result<Duration, String> {
    let time = Duration::from_json(value)?;
    if time < least {
        return Err(format!("expected at least {}ms, got {value}", least.as_millis()));
    }
    Ok(time)
}

/// Reads a timeout of at least `least`; null means no timeout.
pub(super) fn optional_time(value: &Value, least: Duration) -> Result<Option<Duration>, String> {
    if value.is_null() { Ok(None) } else { time(value, least).map(Some) }
}
