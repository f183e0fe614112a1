//! Durations as users write them: seconds, or a number with a unit.

use std::time::Duration;

use serde_json::Value;

/// The accepted forms, for messages.
pub const EXPECTED: &str = "seconds or a duration such as \"10m\"";

/// A longer unit comes first if it ends with a shorter one.
const UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// Maximum duration. More than a century is a mistake, and sums with the current time must not overflow.
const MAX: Duration = Duration::from_hours(100 * 366 * 24);

/// Reads a duration; `None` if the value is invalid, negative or more than a century.
pub fn parse(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(it) => it.as_f64()?,
        Value::String(text) => single(text).or_else(|| several(text))?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|it| *it <= MAX)
}

/// Reads one number with a unit, in seconds.
fn single(text: &str) -> Option<f64> {
    let split = |(unit, size): &(&str, f64)| Some((text.trim().strip_suffix(unit)?, *size));
    let (number, size) = UNITS.iter().find_map(split)?;
    Some(number.trim().parse::<f64>().ok()? * size)
}

/// Reads several numbers with units, such as `1h30m`, in seconds.
fn several(text: &str) -> Option<f64> {
    let (mut rest, mut seconds) = (text.trim(), None);
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let split = |(unit, size): &(&str, f64)| Some((after.strip_prefix(unit)?, *size));
        let (after, size) = UNITS.iter().find_map(split)?;
        seconds = Some(seconds.unwrap_or(0.0) + number.parse::<f64>().ok()? * size);
        rest = after.trim_start();
    }
    seconds
}

/// Returns whether a value is a number below zero, or a string that begins with one.
pub fn is_negative(value: &Value) -> bool {
    let is_below_zero = value.as_f64().is_some_and(|it| it < 0.0);
    is_below_zero || value.as_str().is_some_and(|it| it.trim_start().starts_with('-'))
}

/// Returns seconds, without a fraction if possible.
pub fn to_json(duration: Duration) -> Value {
    if duration.subsec_nanos() == 0 {
        duration.as_secs().into()
    } else {
        duration.as_secs_f64().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Duration, parse, to_json};

    #[test]
    fn seconds_and_units_are_read_and_invalid_text_is_not() {
        for (value, expected) in [
            (json!(0), Duration::ZERO),
            (json!(1.5), Duration::from_millis(1500)),
            (json!("500ms"), Duration::from_millis(500)),
            (json!(" 1.5 s "), Duration::from_millis(1500)),
            (json!("10m"), Duration::from_mins(10)),
            (json!("2h"), Duration::from_hours(2)),
            (json!("1d"), Duration::from_hours(24)),
            (json!("1h30m"), Duration::from_mins(90)),
            (json!("30m 30s"), Duration::from_secs(1830)),
            (json!("1.5s500ms"), Duration::from_secs(2)),
        ] {
            assert_eq!(parse(&value), Some(expected), "{value}");
        }
        for value in [
            json!(-1),
            json!("10"),
            json!("m"),
            json!(1e12),
            json!(true),
            json!("NaNs"),
            json!("1h30"),
            json!("h"),
            json!("-1h30m"),
        ] {
            assert_eq!(parse(&value), None, "{value}");
        }
    }

    #[test]
    fn whole_seconds_are_integers() {
        assert_eq!(to_json(Duration::from_secs(5)), json!(5));
        assert_eq!(to_json(Duration::from_millis(100)), json!(0.1));
    }
}
