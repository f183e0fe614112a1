//! The retry policy.

use std::time::Duration;

use crate::cluster::{
    failure::{ErrorResponse, RequestFailure},
    retry::{RetryDecision, judge},
};
use crate::settings::NetworkingSettings;

fn answer(status: u16, retry_after: &str) -> RequestFailure {
    let retry_after = Some(retry_after.to_owned());
    RequestFailure::Answer(ErrorResponse { status, retry_after, ..ErrorResponse::default() })
}

fn pause(failure: &RequestFailure) -> Option<Duration> {
    match judge(failure, 0, &NetworkingSettings::default(), true) {
        RetryDecision::Again(pause) => Some(pause.duration()),
        RetryDecision::Final | RetryDecision::Exhausted => None,
    }
}

#[test]
fn a_missing_permission_is_final() {
    assert_eq!(pause(&answer(403, "5")), None);
}

#[test]
fn only_too_many_requests_can_ask_for_a_pause() {
    assert_eq!(pause(&answer(429, "50")), Some(Duration::from_secs(50)));
    assert_eq!(pause(&answer(503, "50")), Some(Duration::from_secs(1)));
}

#[test]
fn an_invalid_pause_is_ignored_and_a_long_one_is_limited() {
    for odd in ["", "soon", "-5", "NaN", "inf", "Wed, 21 Oct 2026 07:28:00 GMT"] {
        assert_eq!(pause(&answer(429, odd)), Some(Duration::from_secs(1)), "{odd}");
    }
    assert_eq!(pause(&answer(429, "1e9")), Some(Duration::from_mins(1)));
}

#[test]
fn a_broken_response_and_a_wrong_certificate_are_final() {
    assert_eq!(pause(&RequestFailure::Payload(String::new())), None);
    assert_eq!(pause(&RequestFailure::Untrusted(String::new())), None);
}
