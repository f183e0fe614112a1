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

fn schedule(kind: Kind, options: &[(&str, f64)]) -> Schedule {
    let options = options.iter().map(|(key, it)| ((*key).to_owned(), Argument::Value(json!(it))));
    let handler = declare(Declaration {
        kind,
        selectors: vec![Argument::Value("kex".into())],
        options: options.collect(),
        function: Function::new(ScriptId(0), 0, "fn"),
        location: String::new(),
    });
    Schedule::new(&handler.expect("a handler"), None, Duration::ZERO)
}

fn at(now: u64) -> Moment {
    Moment { now: Duration::from_secs(now), changed: Duration::ZERO, stopped: false }
}

fn is_call(step: Step) -> bool {
    matches!(step, Step::Call(_))
}

#[test]
fn an_idle_timer_waits_for_a_change_after_its_call() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert_eq!(schedule.next(at(0)), Step::Sleep(Duration::from_secs(10)));
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(10));
    assert_eq!(schedule.next(at(10)), Step::Sleep(Duration::from_secs(10)));
    assert_eq!(schedule.next(at(20)), Step::Sleep(Duration::from_secs(10)));
    let changed = Moment { changed: Duration::from_secs(25), ..at(30) };
    assert_eq!(schedule.next(changed), Step::Sleep(Duration::from_secs(5)));
    assert!(is_call(schedule.next(Moment { now: Duration::from_secs(35), ..changed })));
}

#[test]
fn an_idle_timer_sees_a_change_during_its_call() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(15));
    let changed = Moment { changed: Duration::from_secs(12), ..at(15) };
    assert_eq!(schedule.next(changed), Step::Sleep(Duration::from_secs(7)));
}

#[test]
fn an_idle_timer_that_waits_for_a_change_stops_when_asked() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 10.0)]);
    assert!(is_call(schedule.next(at(10))));
    schedule.ended(&DONE, Duration::from_secs(10));
    let stop = Moment { stopped: true, ..at(12) };
    assert_eq!(schedule.next(stop), Step::Exit { forever: false });
}

#[test]
fn an_idle_time_of_zero_causes_no_busy_loop() {
    let mut schedule = schedule(Kind::Timer, &[("idle", 0.0)]);
    assert!(is_call(schedule.next(at(0))));
    schedule.ended(&DONE, Duration::ZERO);
    assert_eq!(schedule.next(at(0)), Step::Sleep(WATCH_PERIOD_MIN));
}

#[test]
fn a_daemon_that_succeeded_does_not_start_again() {
    let mut schedule = schedule(Kind::Daemon, &[]);
    assert!(is_call(schedule.next(at(0))));
    schedule.ended(&DONE, Duration::from_secs(5));
    assert_eq!(schedule.next(at(5)), Step::Exit { forever: true });
}

#[test]
fn a_sharp_interval_of_zero_is_back_to_back() {
    let zero = Duration::ZERO;
    assert_eq!(next_tick(zero, zero, Duration::from_secs(7)), Duration::from_secs(7));
}

#[test]
fn a_time_is_never_planned_again_just_before_it() {
    for pause in [0.4, 59.9, 60.0, 60.4, 61.0, 90.0, 120.0, 120.4, 150.0, 600.0, 7200.4, 100_000.0]
    {
        let slot = Duration::from_secs_f64(pause);
        let state = State::Planning;
        let mut schedule = Schedule { state, is_planned: true, ..schedule(Kind::Timer, &[]) };
        let mut now = Duration::ZERO;
        loop {
            match schedule.next(Moment { now, ..at(0) }) {
                Step::Plan => {
                    let left = slot.saturating_sub(now);
                    assert!(
                        now.is_zero() || left >= PLAN_MIN,
                        "{left:?} before a slot in {slot:?}"
                    );
                    schedule.planned(Some(left), (now, now));
                }
                Step::Sleep(pause) => now += pause,
                Step::Call(_) => break,
                Step::Exit { .. } => panic!("a timer goes on"),
            }
        }
        assert_eq!(now, slot);
    }
}
