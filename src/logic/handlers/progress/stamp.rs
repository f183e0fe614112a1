//! Formats and parses timestamps.

use jiff::{
    Timestamp, civil,
    fmt::temporal::{DateTimeParser, DateTimePrinter},
    tz::Offset,
};

static PARSER: DateTimeParser = DateTimeParser::new();
static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Formats a timestamp, always with microseconds and an offset: Kopf compares only such stamps with its clock.
pub fn format_stamp(moment: Timestamp) -> String {
    PRINTER.timestamp_with_offset_to_string(&moment, Offset::UTC)
}

/// Formats a timestamp for touching an object, without a zero fraction. Any string that changes would do; this is Kopf's form.
pub fn touch_stamp(moment: Timestamp) -> String {
    if moment.subsec_microsecond() == 0 && moment.subsec_millisecond() == 0 {
        moment.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
    } else {
        format_stamp(moment)
    }
}

/// Reads any date or time of ISO 8601. Without an offset it is UTC; Kopf fails on such objects permanently.
pub fn parse_stamp(text: &str) -> Option<Timestamp> {
    let exact = PARSER.parse_timestamp(text).ok();
    exact.or_else(|| utc(PARSER.parse_datetime(text).ok()?))
}

fn utc(moment: civil::DateTime) -> Option<Timestamp> {
    Offset::UTC.to_timestamp(moment).ok()
}
