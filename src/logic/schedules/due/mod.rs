//! Decides when a schedule of the operator runs next, from its last slot and the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{cron::Cron, slots::ScheduleSlot};
use crate::logic::text::python_text;

#[cfg(test)]
mod tests;

/// A slot of a cron expression that is not taken within this time is missed. Restarts and elections need some seconds.
const GRACE: SignedDuration = SignedDuration::from_mins(1);

/// A last slot that is further in the future comes from a wrong clock.
const FUTURE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The treatment of cron slots that were missed while the operator was not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// They never run: the default.
    #[default]
    Skip,
    /// The last one of them runs as soon as possible.
    Once,
}

/// The slot to wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// The slot is due now.
    Now(Timestamp),
    /// The slot is due at its time.
    At(Timestamp),
    /// The slot is due after this pause, whatever the clock shows then.
    After(Duration, Timestamp),
    /// There are no further slots.
    Never,
}

/// The interval of `kopf.every`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The pause from the end of one run to the start of the next.
    pub interval: Duration,
    /// The slots are multiples of the interval after the last one, however long a run takes.
    pub sharp: bool,
    /// The pause after the start of the operator.
    pub initial_delay: Duration,
}

/// Returns the next slot of a cron expression. `since`: when this process has first seen the schedule.
pub fn of_cron(
    cron: &Cron,
    missed: Missed,
    last: Option<&ScheduleSlot>,
    (since, now): (Timestamp, Timestamp),
) -> Due {
    let is_right = |it: &&ScheduleSlot| it.slot.duration_since(now) <= FUTURE_MAX;
    let start = match last.filter(is_right) {
        // Slots of an edited expression begin with the edit.
        Some(last) if last.schedule != cron.to_string() => last.slot.max(since),
        Some(last) => last.slot,
        None => since.min(now),
    };
    if let Some(latest) = cron.latest(start, now)
        && (missed == Missed::Once || now.duration_since(latest) <= GRACE)
    {
        return Due::Now(latest);
    }
    cron.next(start.max(now)).map_or(Due::Never, Due::At)
}

/// Returns the next slot of an interval. `since`: when this process has first seen the schedule.
pub fn of_interval(
    of: Interval,
    last: Option<&ScheduleSlot>,
    (since, now): (Timestamp, Timestamp),
) -> Due {
    let first = plus(since, of.initial_delay);
    let due = match last {
        None => first,
        Some(last) if of.sharp => last_multiple(last.slot, of.interval, now),
        Some(last) => plus(last.ended.unwrap_or(last.started), of.interval).max(first),
    };
    // Each run has its own time, also after the clock was set back.
    let own = |slot: Timestamp| match last.filter(|it| slot <= it.slot) {
        Some(last) if last.slot.duration_since(now) <= FUTURE_MAX => plus(last.slot, of.interval),
        Some(_) | None => slot,
    };
    let pause = Duration::try_from(due.duration_since(now)).unwrap_or_default();
    // More than that means that the clock was set back.
    let longest = of.interval.max(of.initial_delay);
    if pause > longest {
        return Due::After(longest, own(plus(now, longest)));
    }
    if of.sharp && due <= now && first > now {
        let pause = Duration::try_from(first.duration_since(now)).unwrap_or_default();
        return Due::After(pause, own(last_multiple(due, of.interval, first)));
    }
    if pause.is_zero() { Due::Now(own(due)) } else { Due::After(pause, own(due)) }
}

/// Returns the string that is stored with the slots of an interval.
pub fn text(of: Interval) -> String {
    format!("every {} s", python_text::seconds(of.interval))
}

/// Returns the last multiple of the interval after `slot` that is not after `now`; at least the first one.
fn last_multiple(slot: Timestamp, interval: Duration, now: Timestamp) -> Timestamp {
    let passed = u128::try_from(now.duration_since(slot).as_nanos()).unwrap_or_default();
    let count = passed.checked_div(interval.as_nanos()).unwrap_or_default().max(1);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    plus(slot, interval.saturating_mul(count))
}

fn plus(time: Timestamp, pause: Duration) -> Timestamp {
    time.saturating_add(pause).unwrap_or(time)
}
