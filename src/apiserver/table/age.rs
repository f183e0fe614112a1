//! Ages for people: `5m`, `3d2h`.

use jiff::Timestamp;

/// Shown for a missing time.
pub(super) const UNKNOWN: &str = "<unknown>";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age of a time; `<unknown>` for an empty one, `None` for an invalid one.
pub(super) fn since(then: &str, now: Timestamp) -> Option<String> {
    if then.is_empty() {
        return Some(UNKNOWN.into());
    }
    let then: Timestamp = then.parse().ok()?;
    Some(human(now.duration_since(then).as_secs()))
}

/// Formats a duration with two or three significant digits. The limits are those of the real server: seconds up to two minutes, a
/// second unit only while the first one is small.
pub(super) fn human(seconds: i64) -> String {
    let two = |whole: i64, unit: &str, rest: i64, smaller: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{smaller}"),
    };
    let minutes = seconds / MINUTE;
    let hours = seconds / HOUR;
    let days = seconds / DAY;
    let years = seconds / YEAR;
    // One second is tolerated, because clocks differ.
    if seconds < -1 {
        "<invalid>".into()
    } else if seconds < 0 {
        "0s".into()
    } else if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, "m", seconds % MINUTE, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if years < 2 {
        format!("{days}d")
    } else if years < 8 {
        two(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}
