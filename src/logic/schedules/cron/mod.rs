//! The times of a cron expression in a time zone.
//!
//! The expression is evaluated on a calendar without clock changes; this file maps its times to those of the zone. Where the clocks of
//! the zone change, the rules are those of Vixie cron. If the field of the hours begins with a star, a job runs by elapsed time: each
//! time that exists and matches. Otherwise it runs at times of the day: one that is skipped runs at the change, one that occurs twice
//! runs at its first occurrence.

use std::fmt;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

#[cfg(test)]
mod tests;

/// Maximum length of an expression in bytes.
const TEXT_MAX: usize = 200;

/// The search of the parser ends after four years. The calendar repeats after 28 years, with one exception per century.
const SEARCHES: usize = 10;
const SEARCH_SECONDS: i64 = 4 * 366 * 24 * 3600;

/// Maximum number of clock changes, and of times within one of them, that a search passes.
const STEPS_MAX: usize = 5000;

/// The named expressions, and what they stand for.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    text: String,
    /// As the script spells it; `UTC` by default.
    zone_name: String,
    zone: TimeZone,
    /// The parsed expression, evaluated in UTC.
    table: Crontab,
    /// Whether it runs by elapsed time when the clocks change.
    is_elapsed: bool,
}

/// The error of an invalid expression or zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    /// What is wrong with the expression or the zone.
    pub message: String,
    /// How the user can fix it.
    pub hint: String,
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.zone_name) == (&other.text, &other.zone_name)
    }
}

impl fmt::Display for Cron {
    /// Formats it for logs: `0 3 * * * (Europe/Berlin)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone_name)
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl Cron {
    /// Parses an expression of five fields, or a name such as `@daily`.
    ///
    /// # Errors
    /// Fails if the expression is invalid, if it never matches, or if the zone is unknown.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, CronError> {
        let fields = fields(text)?;
        let zone_name = zone.unwrap_or("UTC").to_owned();
        let zone = time_zone(&zone_name)?;
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let written = fields.join(" ");
        let table = cronexpr::parse_crontab_with(&written, options).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches([' ', '^']);
            CronError {
                message: format!("invalid cron expression {text:?}: {reason}"),
                hint: FORM.to_owned(),
            }
        })?;
        let is_elapsed = fields.get(1).is_some_and(|it| it.starts_with('*'));
        let cron = Cron { text: text.trim().to_owned(), zone_name, zone, table, is_elapsed };
        // From a leap year on.
        if cron.on_calendar(DateTime::constant(2024, 1, 1, 0, 0, 0, 0)).is_none() {
            return Err(CronError {
                message: format!(
                    "the cron expression {text:?} never matches: no month has such a day"
                ),
                hint: "check the day of the month and the month".to_owned(),
            });
        }
        Ok(cron)
    }

    /// Returns the first time after `after`; `None` if there is none within decades.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if self.is_elapsed { self.next_elapsed(after) } else { self.next_of_day(after) }
    }

    /// Returns the last time after `from` and not after `now`.
    pub fn latest(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let is_before = |it: &Timestamp| *it <= now;
        let mut found = self.next(from).filter(is_before)?;
        // A time exists after `low`, and none after `high`.
        let (mut low, mut high) = (from.as_second(), now.as_second());
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            let start = Timestamp::from_second(middle).ok()?;
            match self.next(start).filter(is_before) {
                Some(time) => (low, found) = (middle, time),
                None => high = middle,
            }
        }
        Some(found)
    }

    /// Follows the clock of the zone from one change to the next.
    fn next_elapsed(&self, after: Timestamp) -> Option<Timestamp> {
        let mut start = after;
        for _ in 0..STEPS_MAX {
            let offset = self.zone.to_offset(start);
            let found = instant(self.on_calendar(offset.to_datetime(start))?, offset)?;
            let change = self.zone.following(start).next().map(|it| it.timestamp());
            match change.filter(|change| *change <= found) {
                None => return Some(found),
                Some(change) => {
                    // The first moment with the new offset can match, too.
                    let offset = self.zone.to_offset(change);
                    let before = change.checked_sub(SignedDuration::from_secs(1)).ok()?;
                    let found = instant(self.on_calendar(offset.to_datetime(before))?, offset)?;
                    if found == change {
                        return Some(found);
                    }
                    start = change;
                }
            }
        }
        None
    }

    fn next_of_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut time = self.zone.to_datetime(after);
        for _ in 0..STEPS_MAX {
            time = self.on_calendar(time)?;
            let found = self.moment(time)?;
            // Times that occur twice belong to their first occurrence, which may be over.
            if found > after {
                return Some(found);
            }
        }
        None
    }

    /// Returns the moment of a time of the day.
    fn moment(&self, time: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => instant(time, offset),
            AmbiguousOffset::Fold { before, .. } => instant(time, before),
            AmbiguousOffset::Gap { after, .. } => {
                let before_change = instant(time, after)?;
                self.zone.following(before_change).next().map(|it| it.timestamp())
            }
        }
    }

    /// Returns the first match after a time, on a calendar without clock changes.
    fn on_calendar(&self, after: DateTime) -> Option<DateTime> {
        let mut start = instant(after, Offset::UTC)?;
        for _ in 0..SEARCHES {
            if let Ok(found) = self.table.find_next(start) {
                return Some(found.datetime());
            }
            start = start.checked_add(SignedDuration::from_secs(SEARCH_SECONDS)).ok()?;
        }
        None
    }
}

/// The form of an expression.
const FORM: &str = "write 5 fields: minute, hour, day of the month, month, day of the week; such as \"0 3 * * *\" for 03:00 each day";

/// Returns the five fields of an expression.
fn fields(text: &str) -> Result<Vec<String>, CronError> {
    let error = |message: String, hint: &str| CronError { message, hint: hint.to_owned() };
    if text.len() > TEXT_MAX {
        let message = format!("the cron expression is longer than {TEXT_MAX} bytes");
        return Err(error(message, FORM));
    }
    let text = text.trim();
    if let Some((_, fields)) = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Ok(fields.split(' ').map(str::to_owned).collect());
    }
    if text.starts_with("@every") {
        let message = format!("{text:?} is not a cron expression");
        return Err(error(
            message,
            "use an interval: kopf.every(\"15m\", …), or the option `interval` of timers",
        ));
    }
    if text.starts_with('@') {
        let names = NAMED.map(|(name, _)| name).join(", ");
        return Err(error(
            format!("there is no cron expression {text:?}"),
            &format!("the names are {names}"),
        ));
    }
    let fields: Vec<_> = text.split_whitespace().map(|it| it.replace('?', "*")).collect();
    match fields.len() {
        5 => Ok(fields),
        count => {
            let zone = "; the time zone is an option: timezone = \"Europe/Berlin\"";
            let hint = if count > 5 {
                format!("{FORM}{zone}; for seconds, use an interval")
            } else {
                FORM.to_owned()
            };
            Err(error(format!("the cron expression {text:?} has {count} fields"), &hint))
        }
    }
}

fn time_zone(name: &str) -> Result<TimeZone, CronError> {
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    let is_offset = name.starts_with(['+', '-']);
    let parser = jiff::fmt::temporal::DateTimeParser::new();
    let found = if is_offset { parser.parse_time_zone(name) } else { TimeZone::get(name) };
    found.map_err(|_unknown| CronError {
        message: format!("unknown time zone {name:?}"),
        hint: "write \"UTC\", an offset such as \"+02:00\", or a name of the IANA database such as \"Europe/Berlin\"".to_owned(),
    })
}

fn instant(time: DateTime, offset: Offset) -> Option<Timestamp> {
    offset.to_timestamp(time).ok()
}
