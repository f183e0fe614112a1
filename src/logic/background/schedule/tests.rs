//! Schedules: cases that the vectors do not cover.

use serde_json::json;

use super::*;
use crate::logic::handlers::{
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
};

const DONE: Outcome = Outcome {
    last: true,
    delay: None,
    result: None,
    entries: None,
    error: None,
    subrefs: Vec::new(),
};

fn schedule(kind: Kind, options: &[(&str, f64)]) -> BackgroundSchedule {
    let options = options.iter().map(|(key, it)| ((*key).to_owned(), Argument::Value(json!(it))));
    let handler = declare(Declaration {
        kind,
        selectors: vec![Argument::Value("kex".into())],
        options: options.collect(),
        function: Function::new(ScriptId(0), 0, "fn"),
        location: String::new(),
    });
    BackgroundSchedule::new(&handler.expect("a handler"), None, Duration::ZERO)
}

fn at(now: u64) -> ScheduleMoment {
    ScheduleMoment { now: Duration::from_secs(now), changed: Duration::ZERO, stopped: false }
}

fn is_call(step: ScheduleStep) -> bool {
    matches!(step, ScheduleStep::Call(_))
}

#[test]
fn an_idle_timer_waits_for_a_change_after_its_call() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert_eq!(schedule.next(at(0)), ScheduleStep::Sleep(Duration::from_secs(10)));
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(10));
    assert_eq!(schedule.next(at(10)), ScheduleStep::Sleep(Duration::from_secs(10)));
    assert_eq!(schedule.next(at(20)), ScheduleStep::Sleep(Duration::from_secs(10)));
    let changed = ScheduleMoment { changed: Duration::from_secs(25), ..at(30) };
    assert_eq!(schedule.next(changed), ScheduleStep::Sleep(Duration::from_secs(5)));
    assert!(is_call(schedule.next(ScheduleMoment { now: Duration::from_secs(35), ..changed })));
}

#[test]
fn an_idle_timer_sees_a_change_during_its_call() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(15));
    let changed = ScheduleMoment { changed: Duration::from_secs(12), ..at(15) };
    assert_eq!(schedule.next(changed), ScheduleStep::Sleep(Duration::from_secs(7)));
}

#[test]
fn an_idle_timer_that_waits_for_a_change_stops_when_asked() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(10));
    let stop = ScheduleMoment { stopped: true, ..at(12) };
    assert_eq!(schedule.next(stop), ScheduleStep::Exit { forever: false });
}

#[test]
fn an_idle_time_of_zero_causes_no_busy_loop() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 0.0)]);
    assert!(is_call(schedule.next(at(0))));
    schedule.ended(&DONE, Duration::ZERO);
    assert_eq!(schedule.next(at(0)), ScheduleStep::Sleep(WATCH_PERIOD_MIN));
}

#[test]
fn a_daemon_that_succeeded_does_not_start_again() {
    let mut schedule = schedule(Kind::Daemon, &[]);
    assert!(is_call(schedule.next(at(0))));
    schedule.ended(&DONE, Duration::from_secs(5));
    assert_eq!(schedule.next(at(5)), ScheduleStep::Exit { forever: true });
}

#[test]
fn a_sharp_interval_of_zero_is_back_to_back() {
    let zero = Duration::ZERO;
    assert_eq!(next_tick(zero, zero, Duration::from_secs(7)), Duration::from_secs(7));
}

/// Returns when a timer for every minute is called in five minutes. It starts at a moment, its object changes at others, and its clock
/// of waits is ahead of the clock of times: the calls begin that much too early.
fn calls_of_each_minute(start: u64, changes: &[u64], ahead: u64) -> Vec<u64> {
    let millis = Duration::from_millis;
    let state = State::Delayed(millis(start).into());
    let mut schedule = BackgroundSchedule { state, is_planned: true, ..schedule(Kind::Timer, &[]) };
    let (mut now, mut calls) = (start, Vec::new());
    while now < 300_000 {
        let changed = changes.iter().copied().filter(|it| *it <= now).max().unwrap_or_default();
        match schedule.next(ScheduleMoment {
            now: millis(now),
            changed: millis(changed),
            stopped: false,
        }) {
            ScheduleStep::Plan(after) => {
                let after = u64::try_from(after.as_millis()).expect("milliseconds");
                let slot = (after / 60_000 + 1) * 60_000;
                // In the test, the plan of a time that is over does not come too early.
                let pause = slot.saturating_sub(now);
                let pause = if pause > ahead { pause - ahead } else { pause };
                schedule.planned(Some(millis(pause)), (millis(now), millis(now)));
            }
            ScheduleStep::Sleep(pause) => {
                now += u64::try_from(pause.as_millis()).expect("milliseconds");
            }
            ScheduleStep::Call(_) => {
                calls.push(now);
                schedule.ended(&DONE, millis(now));
            }
            ScheduleStep::Exit { .. } => panic!("a timer goes on"),
        }
    }
    calls
}

#[test]
fn each_time_is_called_once_whenever_the_timer_starts_and_the_object_changes() {
    for start in [1, 10_000, 59_400, 59_600, 59_999] {
        for change in [0, 30_000, 119_400, 119_600, 119_990, 119_999, 120_000, 120_001, 150_000] {
            for ahead in [0, 1, 100, 400] {
                let calls = calls_of_each_minute(start, &[change, change + 5], ahead);
                let minutes: Vec<_> = calls.iter().map(|it| (it + 30_000) / 60_000).collect();
                let case = format!("start {start}, change {change}, {ahead} ms ahead: {calls:?}");
                assert_eq!(minutes, [1, 2, 3, 4, 5][..minutes.len().max(4)], "{case}");
            }
        }
    }
}

#[test]
fn distant_times_are_planned_again_until_they_are_near() {
    for pause in [60.4, 119.9, 120.4, 150.0, 600.0, 7200.4, 100_000.0] {
        let slot = Duration::from_secs_f64(pause);
        let state = State::Planning;
        let mut schedule =
            BackgroundSchedule { state, is_planned: true, ..schedule(Kind::Timer, &[]) };
        let mut now = Duration::ZERO;
        loop {
            match schedule.next(ScheduleMoment { now, ..at(0) }) {
                ScheduleStep::Plan(after) => {
                    assert_eq!(after, now);
                    schedule.planned(Some(slot.saturating_sub(now)), (now, now));
                }
                ScheduleStep::Sleep(pause) => {
                    assert!(pause <= PLAN_MAX);
                    now += pause;
                }
                ScheduleStep::Call(_) => break,
                ScheduleStep::Exit { .. } => panic!("a timer goes on"),
            }
        }
        assert_eq!(now, slot);
    }
}
