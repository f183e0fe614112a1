//! Cases that the vectors do not cover.

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn timestamps_of_all_usual_forms_are_read() {
    let expected = at("2025-12-31T23:59:00Z");
    let forms = [
        "2025-12-31T23:59:00.000000+00:00",
        "2025-12-31T23:59:00Z",
        "2025-12-31 23:59:00+00:00",
        "2025-12-31T23:59Z",
        "2025-12-31T23:59+00:00",
        "2026-01-01T02:59:00+03:00",
        "2026-01-01T02:59:00+0300",
        "2026-01-01T02:59:00+03",
        "20251231T235900Z",
        "2025-12-31T23:59:00",
        "2025-12-31 23:59",
    ];
    for form in forms {
        assert_eq!(parse_stamp(form), Some(expected), "{form}");
    }
    assert_eq!(parse_stamp("2026-01-01"), Some(at("2026-01-01T00:00:00Z")));
    assert_eq!(parse_stamp("2025-12-31T23:59:00,5Z"), Some(at("2025-12-31T23:59:00.5Z")));
    assert_eq!(parse_stamp(""), None);
    assert_eq!(parse_stamp("yesterday"), None);
}

#[test]
fn stamps_always_have_microseconds_and_an_offset() {
    assert_eq!(format_stamp(at("2026-01-01T00:00:00Z")), "2026-01-01T00:00:00.000000+00:00");
    assert_eq!(format_stamp(at("2026-01-01T00:00:00.5Z")), "2026-01-01T00:00:00.500000+00:00");
    assert_eq!(touch_stamp(at("2026-01-01T00:00:30Z")), "2026-01-01T00:00:30+00:00");
    assert_eq!(touch_stamp(at("2026-01-01T00:00:30.000001Z")), "2026-01-01T00:00:30.000001+00:00");
}

#[test]
fn a_damaged_timestamp_names_the_handler_and_the_field() {
    let stored = serde_json::json!({"delayed": "soon"});
    let error = ProgressRecord::parse("fn/sub", &stored, at("2026-01-01T00:00:00Z")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("fn/sub") && text.contains("delayed") && text.contains("soon"), "{text}");
}

#[test]
fn an_endless_delay_ends_with_the_calendar() {
    let outcome = Outcome { delay: Some(Duration::MAX), ..Outcome::default() };
    let now = at("2026-01-01T00:00:00Z");
    assert_eq!(
        ProgressRecord::new(now, None).transition(&outcome, now).delayed,
        Some(Timestamp::MAX)
    );
}

#[test]
fn a_long_message_is_stored_as_far_as_there_is_room() {
    let failure = |text: &str| {
        let raised = crate::logic::handlers::outcome::Failure {
            class: "Error".into(),
            message: text.into(),
            code: None,
        };
        let outcome = Outcome { error: Some(raised), ..Outcome::default() };
        ProgressRecord::new(Timestamp::UNIX_EPOCH, None)
            .transition(&outcome, Timestamp::UNIX_EPOCH)
            .message
    };
    let long = failure(&"я".repeat(100_000)).expect("a message");
    assert!(long.len() <= 4096 && long.len() > 4090 && long.ends_with("я..."), "{}", long.len());
    assert_eq!(failure(&"x".repeat(4096)).as_deref(), Some(&*"x".repeat(4096)));
}
