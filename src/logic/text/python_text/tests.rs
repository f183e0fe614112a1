//! Python's text formats.

use super::*;

#[test]
fn seconds_are_whole_unless_they_are_not() {
    assert_eq!(seconds(Duration::from_mins(1)), "60");
    assert_eq!(seconds(Duration::from_millis(1500)), "1.5");
}

#[test]
fn intervals_have_days_and_microseconds_only_if_needed() {
    assert_eq!(interval(Duration::from_secs(101)), "0:01:41");
    assert_eq!(interval(Duration::from_millis(86_400_500)), "1 day, 0:00:00.500000");
    assert_eq!(interval(Duration::from_hours(51)), "2 days, 3:00:00");
}

#[test]
fn quotes_are_single_unless_the_text_has_them() {
    assert_eq!(quoted("a"), "'a'");
    assert_eq!(quoted("it's"), "\"it's\"");
    assert_eq!(quoted("'\""), "'\\'\"'");
    assert_eq!(list(["a", "b"]), "['a', 'b']");
}
