//! Times of cron expressions, also where clocks change.

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

/// Returns the first times of an expression after a start, in UTC.
fn times(text: &str, zone: Option<&str>, start: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(text, zone).expect("a valid expression");
    let mut found = vec![time(start)];
    while let Some(next) = found.last().and_then(|it| cron.next(*it))
        && found.len() <= count
    {
        found.push(next);
    }
    found.iter().skip(1).map(ToString::to_string).collect()
}

const BERLIN: Option<&str> = Some("Europe/Berlin");

#[test]
fn expressions_have_the_times_of_crontab() {
    let start = "2026-01-01T00:00:00Z";
    let next = |text| times(text, None, start, 2).join(" ");
    for (text, expected) in [
        ("* * * * *", "2026-01-01T00:01:00Z 2026-01-01T00:02:00Z"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z 2026-01-01T00:30:00Z"),
        ("0 3 * * *", "2026-01-01T03:00:00Z 2026-01-02T03:00:00Z"),
        ("@daily", "2026-01-02T00:00:00Z 2026-01-03T00:00:00Z"),
        ("@Hourly", "2026-01-01T01:00:00Z 2026-01-01T02:00:00Z"),
        ("0 9 ? * MON-FRI", "2026-01-01T09:00:00Z 2026-01-02T09:00:00Z"),
        // Either of both days, as in crontab.
        ("0 0 13 * FRI", "2026-01-02T00:00:00Z 2026-01-09T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"),
        ("  5   4 * * * ", "2026-01-01T04:05:00Z 2026-01-02T04:05:00Z"),
    ] {
        assert_eq!(next(text), expected, "{text}");
    }
    assert_eq!(times("0 0 29 2 *", None, "2097-01-01T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
}

#[test]
fn a_time_that_the_clocks_skip_runs_at_the_change() {
    // 02:00 becomes 03:00 on 2026-03-29.
    let start = "2026-03-28T12:00:00Z";
    assert_eq!(
        times("30 2 * * *", BERLIN, start, 2),
        ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    // Three times fall together.
    assert_eq!(
        times("0,30 2,3 * * *", BERLIN, start, 2),
        ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]
    );
    // Samoa had no 30th of December.
    let samoa = Some("Pacific/Apia");
    assert_eq!(
        times("0 12 * * *", samoa, "2011-12-29T21:00:00Z", 2),
        ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z"]
    );
}

#[test]
fn a_time_that_occurs_twice_runs_once() {
    // 03:00 becomes 02:00 on 2026-10-25.
    assert_eq!(
        times("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    assert_eq!(times("30 2 * * *", BERLIN, "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30:00Z"]);
}

#[test]
fn expressions_for_each_hour_run_by_elapsed_time() {
    assert_eq!(
        times("30 * * * *", BERLIN, "2026-03-28T23:40:00Z", 3),
        ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]
    );
    assert_eq!(
        times("0 * * * *", BERLIN, "2026-10-24T23:30:00Z", 4),
        [
            "2026-10-25T00:00:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T02:00:00Z",
            "2026-10-25T03:00:00Z"
        ]
    );
    let minutes = times("*/30 */2 * * *", BERLIN, "2026-10-24T23:30:00Z", 4);
    // 02:00 and 02:30 exist twice.
    assert_eq!(
        minutes,
        [
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z"
        ]
    );
}

#[test]
fn zones_are_names_and_offsets() {
    let next = |zone| times("0 3 * * *", Some(zone), "2026-07-01T12:00:00Z", 1).join("");
    assert_eq!(next("Asia/Kolkata"), "2026-07-01T21:30:00Z");
    assert_eq!(next("+02:00"), "2026-07-02T01:00:00Z");
    assert_eq!(next("utc"), "2026-07-02T03:00:00Z");
}

#[test]
fn the_latest_missed_time_is_found_without_counting() {
    let cron = Cron::parse("* * * JAN *", None).expect("valid");
    let (from, now) = (time("2000-01-01T00:00:00Z"), time("2026-06-01T00:00:00Z"));
    assert_eq!(cron.latest(from, now), Some(time("2026-01-31T23:59:00Z")));
    let now = time("2026-01-31T23:59:00Z");
    assert_eq!(cron.latest(from, now), Some(now));
    assert_eq!(cron.latest(now, now), None);
    assert_eq!(cron.latest(now, from), None);
}

#[test]
fn invalid_expressions_and_zones_say_what_to_write() {
    let problem = |text: &str, zone| {
        let error = Cron::parse(text, zone).expect_err("it is invalid");
        format!("{} | {}", error.message, error.hint)
    };
    let long = "1,".repeat(200);
    for (text, zone, expected) in [
        ("0 0 31 2 *", None, "never matches"),
        ("0 0 30 FEB *", None, "never matches"),
        ("61 * * * *", None, "must be in range 0..=59; found 61"),
        ("* * *", None, "has 3 fields"),
        ("", None, "has 0 fields"),
        ("0 0 3 * * *", None, "for seconds, use an interval"),
        ("0 3 * * * Europe/Berlin", None, "timezone = \"Europe/Berlin\""),
        ("@every 5m", None, "kopf.every"),
        ("@reboot", None, "the names are @yearly"),
        ("*/0 * * * *", None, "invalid cron expression"),
        ("0 3 * * *", Some("Europe/Berln"), "unknown time zone \"Europe/Berln\""),
        ("0 3 * * *", Some("+99:99"), "unknown time zone"),
        ("0 3 * * *", Some("../../etc/passwd"), "unknown time zone"),
        (&long, None, "longer than 200 bytes"),
        ("\0 * * * *", None, "invalid cron expression"),
        ("ä ö ü ß €", None, "invalid cron expression"),
    ] {
        let problem = problem(text, zone);
        assert!(problem.contains(expected), "{text:?}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}
