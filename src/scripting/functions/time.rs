//! `time`: times are seconds since 1970, with a fraction; durations are seconds.

use jiff::{SignedDuration, Timestamp, Zoned, fmt::strtime, tz::TimeZone};
use serde_json::{Value, json};

use super::Call;
use crate::scripting::functions::{
    outcome::{Datum, Failure, Outcome},
    types::{Library, Parameter, Type, immediate, optional, required},
};

const MOMENT: Parameter = optional("moment", Type::Number, "Seconds since 1970; default: now.");
const ZONE: Parameter = optional(
    "zone",
    Type::Name,
    "\"UTC\", an offset such as \"+02:00\", or a name such as \"Europe/Berlin\"; default: UTC.",
);

/// Units of durations, the longer name first where one begins with another.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

pub(super) const LIBRARY: Library = Library {
    name: "time",
    doc: "Times, which are seconds since 1970, and durations, which are seconds.",
    functions: &[
        immediate("now", "Returns the current time, with a fraction.", &[], Type::Number, |call| {
            Ok(seconds(call.surroundings.clock.now()))
        }),
        immediate(
            "stamp",
            "Returns a time in the format of Kubernetes, in UTC and without a fraction: `2026-01-31T12:00:00Z`.",
            &[MOMENT],
            Type::Text,
            |call| Ok(Value::from(moment(call)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).into()),
        ),
        immediate(
            "parse",
            "Parses a time: RFC 3339, as in `metadata.creationTimestamp`, or another format.",
            &[
                required("text", Type::Name, "Such as `2026-01-31T12:00:00Z`."),
                optional("format", Type::Name, "A format of strptime, such as \"%d.%m.%Y %H:%M\"; UTC unless it has %z. At most 1000 bytes; a longer one is an error."),
            ],
            Type::Number,
            parse,
        ),
        immediate(
            "format",
            "Formats a time: RFC 3339 with its fraction, or another format.",
            &[
                MOMENT,
                optional("format", Type::Name, "A format of strftime, such as \"%Y-%m-%d\"; default: RFC 3339. At most 1000 bytes; a longer one is an error."),
            ],
            Type::Text,
            format,
        )
        .with(&[ZONE]),
        immediate(
            "parts",
            "Returns the parts of a time: `year, month, day, hour, minute, second, weekday, day_of_year`; Monday is 1.",
            &[MOMENT],
            Type::Map,
            |call| {
                let it = moment(call)?.to_zoned(zone(call)?);
                Ok(parts(&it).into())
            },
        )
        .with(&[ZONE]),
        immediate(
            "since",
            "Returns the seconds since a time: `time.since(ctx.meta.creationTimestamp)`.",
            &[required("moment", Type::Any, "RFC 3339, or seconds since 1970.")],
            Type::Number,
            |call| {
                let then = any_moment(call)?;
                let passed = call.surroundings.clock.now().duration_since(then);
                Ok(Datum::of_number(rounded(passed.as_secs_f64())))
            },
        ),
        immediate(
            "duration",
            "Returns a duration in seconds: `time.duration(\"1h30m\")` is 5400. Units are w, d, h, m, s, ms, us, ns.",
            &[required("duration", Type::Any, "A string, or a number of seconds, which is returned unchanged.")],
            Type::Number,
            duration,
        ),
        immediate(
            "format_duration",
            "Formats a duration: `time.format_duration(5400)` is `1h30m`.",
            &[required("seconds", Type::Number, "The seconds.")],
            Type::Text,
            |call| {
                let seconds = call.number("seconds").unwrap_or_default();
                Ok(Value::from(shown(seconds)).into())
            },
        ),
    ],
};

fn seconds(moment: Timestamp) -> Datum {
    Datum::of_number(rounded(moment.as_duration().as_secs_f64()))
}

/// Rounds to microseconds, the precision of a float for a current time.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn moment(call: &Call) -> Result<Timestamp, Failure> {
    match call.number("moment") {
        None => Ok(call.surroundings.clock.now()),
        Some(seconds) => of_seconds(seconds),
    }
}

fn of_seconds(seconds: f64) -> Result<Timestamp, Failure> {
    let duration = SignedDuration::try_from_secs_f64(seconds).ok();
    let moment = duration.and_then(|it| Timestamp::from_duration(it).ok());
    let moment = moment.and_then(|it| it.round(jiff::Unit::Microsecond).ok());
    moment.ok_or_else(|| {
        format!("`moment`: {seconds} is not a time in the years from -9999 to 9999").into()
    })
}

fn any_moment(call: &Call) -> Result<Timestamp, Failure> {
    match call.value("moment") {
        Value::Number(it) => of_seconds(it.as_f64().unwrap_or_default()),
        Value::String(text) => rfc3339(text).map_err(|it| format!("`moment`: {it}").into()),
        other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            Err(format!(
                "`moment`: expected a string such as \"2026-01-31T12:00:00Z\" or a number, got {}",
                crate::scripting::values::text::shown(other)
            )
            .into())
        }
    }
}

fn rfc3339(text: &str) -> Result<Timestamp, String> {
    text.trim().parse().map_err(|_problem| {
        format!("expected a time such as \"2026-01-31T12:00:00Z\", got {}", Value::from(text))
    })
}

/// Returns a format. It must be short: each letter is work, and may produce many characters.
fn format_of(call: &Call) -> Result<Option<&str>, Failure> {
    const BYTES_MAX: usize = 1000;
    let format = call.some_text("format");
    if format.is_some_and(|it| it.len() > BYTES_MAX) {
        return Err(format!("`format`: longer than {BYTES_MAX} bytes").into());
    }
    Ok(format)
}

fn parse(call: &Call) -> Outcome {
    let text = call.text("text");
    let Some(format) = format_of(call)? else {
        let moment = rfc3339(text).map_err(|it| format!("`text`: {it}"))?;
        return Ok(seconds(moment));
    };
    let read = strtime::parse(format, text).and_then(|parts| {
        // Without an offset, and possibly without a time of day.
        parts.to_timestamp().or_else(|_| {
            let date = parts.to_date()?;
            let time = parts.to_time().unwrap_or(jiff::civil::Time::midnight());
            Ok::<_, jiff::Error>(date.to_datetime(time).to_zoned(TimeZone::UTC)?.timestamp())
        })
    });
    let moment = read.map_err(|problem| {
        format!("`text`: {text:?} does not match the format {format:?}: {problem}")
    })?;
    Ok(seconds(moment))
}

fn zone(call: &Call) -> Result<TimeZone, Failure> {
    let Some(name) = call.some_text("zone") else { return Ok(TimeZone::UTC) };
    if name == "UTC" || name == "Z" {
        return Ok(TimeZone::UTC);
    }
    let offset = strtime::parse("%:z", name).ok().and_then(|it| it.offset());
    let zone = offset.map(TimeZone::fixed).or_else(|| TimeZone::get(name).ok());
    zone.ok_or_else(|| {
        format!("`zone`: unknown time zone \"{name}\"; expected \"UTC\", an offset such as \"+02:00\", or a name such as \"Europe/Berlin\"").into()
    })
}

fn format(call: &Call) -> Outcome {
    let moment = moment(call)?;
    let zone = zone(call)?;
    let text = match format_of(call)? {
        None if zone == TimeZone::UTC => moment.to_string(),
        None => moment.display_with_offset(zone.to_offset(moment)).to_string(),
        Some(format) => {
            // Formats can widen their parts: the result is bounded by the limit of each part.
            let written = strtime::format(format, &moment.to_zoned(zone));
            written.map_err(|problem| format!("`format`: {problem}"))?
        }
    };
    Ok(Value::from(text).into())
}

fn parts(it: &Zoned) -> Value {
    json!({
        "year": it.year(),
        "month": it.month(),
        "day": it.day(),
        "hour": it.hour(),
        "minute": it.minute(),
        "second": it.second(),
        "weekday": it.weekday().to_monday_one_offset(),
        "day_of_year": it.day_of_year(),
    })
}

fn duration(call: &Call) -> Outcome {
    let wrong = || {
        let got = crate::scripting::values::text::shown(call.value("duration"));
        format!("`duration`: expected seconds or a string such as \"1h30m\", got {got}")
    };
    let seconds = match call.value("duration") {
        Value::Number(it) => it.as_f64(),
        Value::String(text) => read(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    Ok(Datum::of_number(seconds.ok_or_else(wrong)?))
}

/// Reads numbers with units, one after the other, with an optional sign in front.
fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, mut rest) = text.strip_prefix('-').map_or((1.0, text), |it| (-1.0, it));
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let (unit, size) = UNITS.iter().find(|(unit, _)| starts_with_unit(after, unit))?;
        sum += number.parse::<f64>().ok()? * size;
        rest = after.strip_prefix(unit)?.trim_start();
    }
    Some(sign * rounded_to_nanos(sum))
}

/// Returns whether this unit follows, and not a longer one.
fn starts_with_unit(text: &str, unit: &str) -> bool {
    text.strip_prefix(unit)
        .is_some_and(|rest| !rest.starts_with(|it: char| it.is_ascii_alphabetic()))
}

fn rounded_to_nanos(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

fn shown(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    let mut left = rounded(seconds.abs());
    if left < 1.0 {
        let text = if left == 0.0 { "0s".into() } else { format!("{}ms", rounded(left * 1e3)) };
        return format!("{sign}{text}");
    }
    let mut text = String::new();
    for (unit, size) in [("d", 86_400.0), ("h", 3_600.0), ("m", 60.0)] {
        let count = (left / size).floor();
        if count > 0.0 {
            text.extend([&format!("{count:.0}"), unit]);
            left = rounded(left - count * size);
        }
    }
    if left > 0.0 {
        text.extend([&left.to_string(), "s"]);
    }
    format!("{sign}{text}")
}
