//! The slots that are due, also after restarts, edits and steps of the clock.

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn time(text: &str) -> Timestamp {
    format!("2026-01-{text}Z").parse().expect("a timestamp")
}

fn last(slot: &str, schedule: &str) -> ScheduleSlot {
    let slot = time(slot);
    ScheduleSlot { slot, started: slot, ended: None, by: "a".into(), schedule: schedule.into() }
}

fn daily() -> Cron {
    Cron::parse("0 3 * * *", None).expect("valid")
}

const DAILY: &str = "0 3 * * * (UTC)";

#[test]
fn a_slot_runs_at_its_time_and_never_again() {
    let due = |last: Option<&ScheduleSlot>, since, now| {
        of_cron(&daily(), Missed::Skip, last, (time(since), time(now)))
    };
    let at = |text| Due::At(time(text));
    assert_eq!(due(None, "05T12:00:00", "05T12:00:00"), at("06T03:00:00"));
    assert_eq!(due(None, "05T12:00:00", "06T03:00:05"), Due::Now(time("06T03:00:00")));
    let taken = last("06T03:00:00", DAILY);
    assert_eq!(due(Some(&taken), "05T12:00:00", "06T03:00:05"), at("07T03:00:00"));
    // The clock was set back.
    assert_eq!(due(Some(&taken), "05T12:00:00", "06T02:30:00"), at("07T03:00:00"));
    // By so much that the stored slot comes from a wrong clock.
    let future = last("20T03:00:00", DAILY);
    assert_eq!(due(Some(&future), "05T12:00:00", "06T02:30:00"), at("06T03:00:00"));
}

#[test]
fn missed_slots_are_skipped_or_run_once() {
    let taken = last("01T03:00:00", DAILY);
    let due = |missed, now| of_cron(&daily(), missed, Some(&taken), (time(now), time(now)));
    assert_eq!(due(Missed::Skip, "05T12:00:00"), Due::At(time("06T03:00:00")));
    assert_eq!(due(Missed::Once, "05T12:00:00"), Due::Now(time("05T03:00:00")));
    // A restart within a minute misses nothing.
    assert_eq!(due(Missed::Skip, "05T03:00:59"), Due::Now(time("05T03:00:00")));
    assert_eq!(due(Missed::Skip, "05T03:01:01"), Due::At(time("06T03:00:00")));
    // Nothing is missed before the first slot.
    let now = time("05T12:00:00");
    assert_eq!(of_cron(&daily(), Missed::Once, None, (now, now)), Due::At(time("06T03:00:00")));
}

#[test]
fn the_slots_of_an_edited_expression_begin_with_the_edit() {
    let taken = last("05T03:00:00", "0 3 * * * (Europe/Berlin)");
    let noon = time("05T12:00:00");
    let due = of_cron(&daily(), Missed::Once, Some(&taken), (noon, noon));
    assert_eq!(due, Due::At(time("06T03:00:00")));
}

#[test]
fn an_interval_is_the_pause_between_runs() {
    let of = Interval { interval: 15 * MINUTE, sharp: false, initial_delay: MINUTE };
    let due =
        |last: Option<&ScheduleSlot>, since, now| of_interval(of, last, (time(since), time(now)));
    let after = |minutes: u32, text| Due::After(minutes * MINUTE, time(text));
    assert_eq!(due(None, "05T12:00:00", "05T12:00:00"), after(1, "05T12:01:00"));
    let mut taken = last("05T12:01:00", "");
    assert_eq!(due(Some(&taken), "05T12:00:00", "05T12:06:00"), after(10, "05T12:16:00"));
    taken.ended = Some(time("05T12:05:00"));
    assert_eq!(due(Some(&taken), "05T12:00:00", "05T12:05:00"), after(15, "05T12:20:00"));
    // A restart before the next one, and one after it.
    assert_eq!(due(Some(&taken), "05T12:10:00", "05T12:10:00"), after(10, "05T12:20:00"));
    assert_eq!(due(Some(&taken), "05T13:00:00", "05T13:00:00"), after(1, "05T13:01:00"));
    assert_eq!(due(Some(&taken), "05T13:00:00", "05T13:01:00"), Due::Now(time("05T13:01:00")));
    // The clock was set back: an interval stays an interval, and its slot is after the last one.
    assert_eq!(due(Some(&taken), "04T00:00:00", "05T09:00:00"), after(15, "05T12:16:00"));
}

#[test]
fn a_sharp_interval_has_multiples() {
    let of = Interval { interval: 15 * MINUTE, sharp: true, initial_delay: Duration::ZERO };
    let taken = last("05T12:00:00", "");
    let due = |now| of_interval(of, Some(&taken), (time("05T11:00:00"), time(now)));
    assert_eq!(due("05T12:10:00"), Due::After(5 * MINUTE, time("05T12:15:00")));
    assert_eq!(due("05T12:15:00"), Due::Now(time("05T12:15:00")));
    assert_eq!(due("05T12:50:00"), Due::Now(time("05T12:45:00")));
}

#[test]
fn no_two_runs_of_an_interval_have_the_same_time_after_the_clock_was_set_back() {
    let of = Interval { interval: MINUTE, sharp: false, initial_delay: Duration::ZERO };
    let due =
        |last: &ScheduleSlot, now| of_interval(of, Some(last), (time("05T12:00:00"), time(now)));
    // The clock shows a time before the start of the process, and is right again.
    let before = ScheduleSlot { started: time("05T11:50:00"), ..last("05T12:00:30", "every 60 s") };
    assert_eq!(due(&before, "05T11:51:00"), Due::After(MINUTE, time("05T12:01:30")));
    assert_eq!(due(&before, "05T12:03:00"), Due::Now(time("05T12:01:30")));
    // A slot that comes from a wrong clock is ignored.
    let wrong = ScheduleSlot { started: time("05T12:00:00"), ..last("20T03:00:00", "every 60 s") };
    assert_eq!(due(&wrong, "05T12:03:00"), Due::Now(time("05T12:01:00")));
}
