//! The choice of credentials, and how a 401 changes it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{LoginResult, Rejection, Vault, VaultTicket};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn found(handler: &str, token: &str, priority: i64) -> LoginResult<String> {
    LoginResult {
        handler: handler.into(),
        priority,
        expiration: None,
        returned: Some(json!(token)),
        content: token.to_owned(),
    }
}

fn expiring(handler: &str, second: i64) -> LoginResult<String> {
    LoginResult { expiration: Some(at(second)), ..found(handler, handler, 0) }
}

fn vault(found: Vec<LoginResult<String>>) -> Vault<String> {
    let mut vault = Vault::default();
    vault.fill(found, at(0));
    vault
}

fn pick(vault: &Vault<String>) -> Option<(VaultTicket, String)> {
    vault.pick(at(0), |_| 0)
}

#[test]
fn the_highest_priority_goes_first_and_equals_take_turns() {
    let vault = vault(vec![found("a", "a", 0), found("b", "b", 5), found("c", "c", 5)]);
    let picked = |number| vault.pick(at(0), |_| number).unwrap().1;
    assert_eq!((picked(0).as_str(), picked(1).as_str()), ("b", "c"));
}

#[test]
fn rejected_credentials_make_room_for_the_next() {
    let mut vault = vault(vec![found("a", "a", 0), found("b", "b", 5)]);
    let (ticket, _) = pick(&vault).unwrap();
    assert_eq!(vault.reject(&ticket, at(0)), Rejection::OthersLeft);
    assert_eq!(vault.reject(&ticket, at(0)), Rejection::Stale);
    let (ticket, token) = pick(&vault).unwrap();
    assert_eq!(token, "a");
    assert_eq!(vault.reject(&ticket, at(0)), Rejection::NoneLeft(Duration::ZERO));
    assert!(pick(&vault).is_none());
}

#[test]
fn a_late_rejection_of_old_credentials_changes_nothing() {
    let mut vault = vault(vec![found("a", "old", 0)]);
    let (old, _) = pick(&vault).unwrap();
    vault.fill(vec![found("a", "new", 0)], at(0));
    assert_eq!(vault.reject(&old, at(0)), Rejection::Stale);
    assert_eq!(pick(&vault).unwrap().1, "new");
}

#[test]
fn rejected_credentials_are_tried_last() {
    let both = || vec![found("a", "a", 5), found("b", "b", 0)];
    let mut vault = vault(both());
    let (ticket, _) = pick(&vault).unwrap();
    vault.reject(&ticket, at(0));
    vault.fill(both(), at(0));
    assert_eq!(pick(&vault).unwrap().1, "b");
    vault.fill(vec![found("a", "a", 5)], at(0));
    assert_eq!(pick(&vault).unwrap().1, "a");
    vault.fill(vec![found("a", "another", 5), found("b", "b", 0)], at(0));
    assert_eq!(pick(&vault).unwrap().1, "another");
}

#[test]
fn logins_without_new_credentials_wait_increasingly_longer() {
    let mut vault = Vault::default();
    let mut pauses = Vec::new();
    for _ in 0..9 {
        vault.fill(vec![found("a", "a", 0)], at(0));
        let (ticket, _) = pick(&vault).unwrap();
        let Rejection::NoneLeft(pause) = vault.reject(&ticket, at(0)) else { panic!("others") };
        pauses.push(pause.as_secs());
    }
    assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
    vault.fill(vec![found("a", "a", 0)], at(0));
    assert!(vault.accept());
    assert!(!vault.accept());
    let (ticket, _) = pick(&vault).unwrap();
    assert_eq!(vault.reject(&ticket, at(0)), Rejection::NoneLeft(Duration::ZERO));
}

#[test]
fn credentials_are_renewed_before_they_expire() {
    let hour = vault(vec![expiring("a", 3600)]);
    assert!(!hour.is_ageing(at(3539)));
    assert!(hour.is_ageing(at(3540)));
    assert!(hour.pick(at(3599), |_| 0).is_some());
    assert!(hour.pick(at(3600), |_| 0).is_none());
    assert!(!hour.is_ageing(at(3600)));
    let short = vault(vec![expiring("a", 10)]);
    assert!(!short.is_ageing(at(7)));
    assert!(short.is_ageing(at(8)));
}

#[test]
fn one_that_lasts_is_enough() {
    let vault = vault(vec![expiring("a", 3600), found("b", "b", -1)]);
    assert!(!vault.is_ageing(at(3599)));
    assert_eq!(vault.pick(at(3599), |_| 0).unwrap().1, "a");
    assert_eq!(vault.pick(at(3600), |_| 0).unwrap().1, "b");
}
