//! Stopping: cases that the vectors do not cover.

use super::{StopReason, StopReasons};

#[test]
fn reasons_are_named_in_a_fixed_order() {
    let reasons =
        StopReasons::default().with(StopReason::DaemonSignalled).with(StopReason::FiltersMismatch);
    assert_eq!(reasons.to_string(), "FILTERS_MISMATCH|DAEMON_SIGNALLED");
}

#[test]
fn an_ended_daemon_is_not_stopping() {
    let asked = StopReasons::default().with(StopReason::OperatorExiting);
    assert!(asked.is_stopping());
    assert!(!asked.with(StopReason::Done).is_stopping());
    assert!(!StopReasons::default().is_stopping());
}
