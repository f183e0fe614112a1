//! Settings by name: what is taken, what is refused.

use std::time::Duration;

use serde_json::json;

use super::{KNOBS, get, groups, set};
use crate::settings::Settings;

#[test]
fn every_setting_takes_the_value_it_gives() {
    let mut settings = Settings::default();
    for knob in KNOBS.iter().filter(|it| !it.name.ends_with("_storage")) {
        let value = get(&settings, knob.group, knob.name).unwrap();
        set(&mut settings, knob.group, knob.name, value.clone()).unwrap();
        assert_eq!(get(&settings, knob.group, knob.name), Some(value), "{}", knob.name);
    }
}

#[test]
fn durations_are_seconds_or_texts_with_units() {
    let mut settings = Settings::default();
    for (value, expected) in [
        (json!(1.5), Duration::from_millis(1500)),
        (json!("500ms"), Duration::from_millis(500)),
        (json!("1.5s"), Duration::from_millis(1500)),
        (json!("10m"), Duration::from_mins(10)),
        (json!("2h"), Duration::from_hours(2)),
        (json!("1d"), Duration::from_hours(24)),
    ] {
        set(&mut settings, "execution", "default_backoff", value).unwrap();
        assert_eq!(settings.execution.default_backoff, expected);
    }
}

#[test]
fn null_takes_a_limit_away() {
    let mut settings = Settings::default();
    set(&mut settings, "queueing", "worker_limit", json!(3.0)).unwrap();
    assert_eq!(settings.queueing.worker_limit, Some(3));
    set(&mut settings, "queueing", "worker_limit", json!(null)).unwrap();
    assert_eq!(settings.queueing.worker_limit, None);
}

#[test]
fn a_wrong_name_is_told_with_the_nearest_one() {
    let mut settings = Settings::default();
    let error = set(&mut settings, "posting", "enable", json!(true)).unwrap_err();
    assert_eq!(error, "there is no setting settings.posting.enable; did you mean `enabled`?");
    let error = set(&mut settings, "post", "enabled", json!(true)).unwrap_err();
    assert_eq!(error, "there is no group of settings settings.post; did you mean `posting`?");
}

#[test]
fn a_wrong_value_is_told_with_the_setting() {
    let mut settings = Settings::default();
    let error = set(&mut settings, "execution", "max_workers", json!(0)).unwrap_err();
    assert_eq!(error, "settings.execution.max_workers: expected a whole number above zero, got 0");
    let error = set(&mut settings, "queueing", "error_delays", json!([1, -2])).unwrap_err();
    assert!(error.starts_with("settings.queueing.error_delays: expected seconds"), "{error}");
}

#[test]
fn groups_are_listed_once() {
    let all: Vec<_> = groups().collect();
    assert_eq!(all.len(), 10);
    assert_eq!(all.first(), Some(&"process"));
}
