//! The arithmetic of decisions.

use super::*;
use crate::controllers::{
    time::{DecisionTime, duration},
    workloads::{RolloutLimits, portion},
};

#[test]
fn durations_are_parsed() {
    let ms = |text: &str| duration(text).map(|it| it.as_millis());
    assert_eq!(
        ["1500ms", "2", "30s", "1.5m", "1h"].map(ms),
        [1500, 2000, 30_000, 90_000, 3_600_000].map(Some)
    );
    assert_eq!(["", "s", "-1s", "1d", "1e300h", "ö"].map(ms), [None; 6]);
}

#[test]
fn surge_is_rounded_up_and_unavailability_down() {
    assert_eq!(portion(&json!("25%"), 3, true), 1);
    assert_eq!(portion(&json!("25%"), 3, false), 0);
    assert_eq!(portion(&json!(2), 3, false), 2);
    assert_eq!(portion(&json!("nonsense"), 3, false), 0);
    let limits = |surge: Value, unavailable: Value| {
        let rolling = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let limits = RolloutLimits::of(
            &json!({ "spec": { "replicas": 1, "strategy": { "rollingUpdate": rolling } } }),
        );
        (limits.surge, limits.unavailable)
    };
    assert_eq!(limits(json!(0), json!(0)), (0, 1));
    assert_eq!(limits(json!("25%"), json!("25%")), (1, 0));
    assert_eq!(limits(json!(0), json!(5)), (0, 1));
}

#[test]
fn a_moment_counts_seconds_and_never_waits_for_the_past() {
    let moment = DecisionTime::new("2026-01-01T00:00:10Z".into(), Duration::ZERO);
    assert_eq!(moment.until("2026-01-01T00:00:05Z", 7), Some(Duration::from_secs(2)));
    assert_eq!(moment.until("2026-01-01T00:00:05Z", 5), None);
    assert_eq!(moment.until("nonsense", 5), None);
    assert_eq!(
        moment.until("2026-01-01T00:00:05Z", i64::MAX).map(|it| it > Duration::from_secs(1 << 40)),
        Some(true)
    );
}
