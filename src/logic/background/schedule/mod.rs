//! Decides when a daemon or a timer runs.
//!
//! The shell calls [`BackgroundSchedule::next`], executes the step and calls it again: every sleep ends early if the stop flag is set, and after a
//! call the shell reports the outcome. Times are durations since any fixed moment.
//!
//! The contract is `tests/vectors/timers.json`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::logic::{
    handlers::{
        handler::{Background, Handler, Kind},
        outcome::{Effort, Outcome},
    },
    text::nanos::Nanos,
};

/// Minimum pause between two checks for a change: an idle time of zero must not cause a busy loop.
const WATCH_PERIOD_MIN: Duration = Duration::from_millis(100);

/// Minimum time between the starts of two calls: an interval or a pause of zero must not cause a busy loop. The first retry is
/// exempt.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// Longer waits for a time are divided, because the clock may be set meanwhile.
const PLAN_MIN: Duration = Duration::from_mins(1);
const PLAN_MAX: Duration = Duration::from_hours(1);

/// The clocks of waits and of times differ by less than this, so a call may begin a moment before its time.
const TOLERANCE: Duration = Duration::from_millis(500);

/// The next action for a daemon or a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScheduleStep {
    /// Sleep until this time, or until it must stop.
    Sleep(Duration),
    /// Determine the next time of a cron expression after this moment, then report it to [`BackgroundSchedule::planned`].
    Plan(Duration),
    /// Attempt a call, then report its [`Outcome`] to [`BackgroundSchedule::ended`].
    Call(Effort),
    /// End the daemon or timer.
    Exit {
        /// It ended by itself, so it must not start again for this object.
        forever: bool,
    },
}

/// The input of the schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleMoment {
    /// The current time, on the clock of all daemons.
    pub now: Duration,
    /// When the essence of the object last changed, or when the object was first seen.
    pub changed: Duration,
    /// Whether it must stop.
    pub stopped: bool,
}

/// The schedule of one daemon or timer of one object. There may be many thousands.
#[derive(Clone, Debug)]
pub struct BackgroundSchedule {
    state: State,
    /// When the current series of attempts began.
    series: Option<Nanos>,
    /// How many attempts it has had. Next to the flags, it takes no additional memory.
    retries: u32,
    /// The interval of a timer or the resync of a reconcile handler. If a timer has a cron expression, it has no interval, but the
    /// time that was due last. Daemons have neither.
    interval_or_slot: Option<Nanos>,
    sharp: bool,
    idle: Option<Nanos>,
    /// Its calls follow a cron expression.
    is_planned: bool,
    /// Events request its calls.
    is_level: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Waits for the initial delay.
    Delayed(Nanos),
    /// Calls as soon as the object is idle.
    Ready,
    /// Runs a call that began at this time.
    Calling(Nanos),
    /// Sleeps until this time before the next call.
    Resting(Nanos),
    /// Sleeps until `until`, to check whether the object has changed since the call at `called`.
    Watching { called: Nanos, until: Nanos },
    /// Needs the next time of its cron expression.
    Planning,
    /// Sleeps until `until`: its time if `is_slot`, otherwise a moment to determine it again, as a change after `since` also does.
    Planned { since: Nanos, until: Nanos, is_slot: bool },
    /// Reconcile handlers: rests until `until` after the call at `called`, unless something requests a call.
    Idle { called: Nanos, until: Nanos },
    /// Has ended, and is never called again.
    Done,
}

impl BackgroundSchedule {
    /// Creates a schedule that begins now.
    pub fn new(handler: &Handler, initial_delay: Option<Duration>, now: Duration) -> Self {
        let options = match handler.kind {
            Kind::Timer => handler.background.clone(),
            Kind::Reconcile => {
                let resync = handler.reconcile.as_ref().and_then(|it| it.resync);
                Background { interval: resync, ..Background::default() }
            }
            Kind::Create
            | Kind::Update
            | Kind::Delete
            | Kind::Resume
            | Kind::Field
            | Kind::Sub
            | Kind::Event
            | Kind::Index
            | Kind::Daemon
            | Kind::Startup
            | Kind::Cleanup
            | Kind::Login
            | Kind::Probe
            | Kind::Tunnel
            | Kind::Every
            | Kind::Cron
            | Kind::Test
            | Kind::Validate
            | Kind::Mutate
            | Kind::Convert => Background::default(),
        };
        let interval = options.interval.filter(|_| options.times.is_none());
        BackgroundSchedule {
            state: State::Delayed(now.saturating_add(initial_delay.unwrap_or_default()).into()),
            series: None,
            retries: 0,
            interval_or_slot: interval.map(Nanos::from),
            sharp: options.sharp,
            idle: options.idle.map(Nanos::from),
            is_planned: options.times.is_some(),
            is_level: handler.is_reconciler(),
        }
    }

    /// Returns what to do now.
    pub fn next(&mut self, moment: ScheduleMoment) -> ScheduleStep {
        let ScheduleMoment { now, changed, stopped } = moment;
        if stopped {
            return ScheduleStep::Exit { forever: false };
        }
        match self.state {
            // The object has changed before its time, so the next is that after the change, even if it is over.
            State::Planned { since, until, is_slot }
                if changed > Duration::from(since)
                    && !(is_slot && changed >= Duration::from(until)) =>
            {
                self.plan(changed)
            }
            State::Delayed(until)
            | State::Resting(until)
            | State::Watching { until, .. }
            | State::Planned { until, .. }
            | State::Idle { until, .. }
                if now < Duration::from(until) =>
            {
                ScheduleStep::Sleep(Duration::from(until).saturating_sub(now))
            }
            State::Watching { called, .. } if changed <= Duration::from(called) => {
                self.watch(called, now)
            }
            State::Delayed(_) if self.is_planned => self.plan(now),
            State::Planning | State::Planned { is_slot: false, .. } => self.plan(now),
            State::Planned { until, .. } => {
                self.interval_or_slot = Some(until);
                self.begin(now, changed)
            }
            State::Delayed(_)
            | State::Resting(_)
            | State::Watching { .. }
            | State::Idle { .. }
            | State::Ready => self.begin(now, changed),
            // The shell has not reported the end of the call: no second call must begin.
            State::Calling(_) | State::Done => ScheduleStep::Exit { forever: true },
        }
    }

    /// Plans the first time after a moment. A time that was due is not planned again, even if its call began a moment too early.
    fn plan(&mut self, after: Duration) -> ScheduleStep {
        self.state = State::Planning;
        let done = self.interval_or_slot.map(|it| Duration::from(it).saturating_add(TOLERANCE));
        ScheduleStep::Plan(done.map_or(after, |it| it.max(after)))
    }

    /// Records the pause until the next time of the cron expression, for the object as it was at `since`; `None` if there is none.
    pub fn planned(&mut self, pause: Option<Duration>, (since, now): (Duration, Duration)) {
        let part = pause.map_or(PLAN_MAX, |it| (it / 2).clamp(PLAN_MIN, PLAN_MAX));
        // Half of it would be less than a minute.
        let is_slot = pause.is_some_and(|it| it <= 2 * PLAN_MIN);
        let wait = pause.filter(|_| is_slot).unwrap_or(part);
        self.state =
            State::Planned { since: since.into(), until: now.saturating_add(wait).into(), is_slot };
    }

    /// Begins a call, or waits for an idle object. A series lasts from the first attempt to success or failure, including that wait.
    fn begin(&mut self, now: Duration, changed: Duration) -> ScheduleStep {
        let started = *self.series.get_or_insert(now.into());
        self.state = State::Ready;
        let quiet = self.idle.map(|idle| changed.saturating_add(idle.into()));
        if let Some(quiet) = quiet.filter(|quiet| now < *quiet) {
            return ScheduleStep::Sleep(quiet.saturating_sub(now));
        }
        self.state = State::Calling(now.into());
        let runtime = now.saturating_sub(started.into());
        ScheduleStep::Call(Effort { retries: self.retries.into(), runtime })
    }

    fn watch(&mut self, called: Nanos, now: Duration) -> ScheduleStep {
        let period = self.idle.map(Duration::from).unwrap_or_default().max(WATCH_PERIOD_MIN);
        self.state = State::Watching { called, until: now.saturating_add(period).into() };
        ScheduleStep::Sleep(period)
    }

    /// Makes a reconcile handler due: something that its function reads has changed. This also ends the pause after an error.
    pub fn wake(&mut self, now: Duration) {
        self.state = match self.state {
            State::Idle { called, .. } => {
                let earliest = Duration::from(called).saturating_add(PAUSE_MIN);
                State::Idle { called, until: now.max(earliest).into() }
            }
            State::Resting(until) => {
                let until = Duration::from(until).min(now.saturating_add(PAUSE_MIN));
                State::Resting(until.into())
            }
            other @ (State::Delayed(_)
            | State::Ready
            | State::Calling(_)
            | State::Watching { .. }
            | State::Planning
            | State::Planned { .. }
            | State::Done) => other,
        };
    }

    /// Resets the series of attempts, because the object has changed.
    pub fn renew(&mut self) {
        if matches!(self.state, State::Idle { .. } | State::Resting(_)) {
            (self.series, self.retries) = (None, 0);
        }
    }

    /// Makes a reconcile handler due no later than at this moment.
    pub fn requeue(&mut self, at: Duration) {
        if let State::Idle { called, until } = self.state {
            self.state = State::Idle { called, until: Duration::from(until).min(at).into() };
        }
    }

    /// Makes a reconcile handler due no earlier than at this moment.
    pub fn wait_until(&mut self, moment: Duration) {
        if let State::Idle { called, until } = self.state {
            self.state = State::Idle { called, until: Duration::from(until).max(moment).into() };
        }
    }

    /// Handles the end of a call. For timers, permanent failures are like successes: the next interval begins.
    pub fn ended(&mut self, outcome: &Outcome, now: Duration) {
        let State::Calling(called) = self.state else { return };
        let earliest = Duration::from(called).saturating_add(PAUSE_MIN);
        if !outcome.last {
            let mut due = now.saturating_add(outcome.delay.unwrap_or_default());
            self.retries = self.retries.saturating_add(1);
            if self.retries > 1 {
                due = due.max(earliest);
            }
            self.state = State::Resting(due.into());
            return;
        }
        (self.series, self.retries) = (None, 0);
        if self.is_planned {
            self.state = State::Planning;
            return;
        }
        if self.is_level {
            let until =
                self.interval_or_slot.map_or(Duration::MAX, |it| now.saturating_add(it.into()));
            self.state = State::Idle { called, until: until.into() };
            return;
        }
        self.state = match (self.interval_or_slot, self.idle) {
            (Some(interval), _) if self.sharp => {
                let interval = Duration::from(interval).max(PAUSE_MIN);
                State::Resting(next_tick(called.into(), interval, now).into())
            }
            (Some(interval), _) => {
                State::Resting(now.saturating_add(interval.into()).max(earliest).into())
            }
            // The first check is immediate: the object may have changed during the call.
            (None, Some(_)) => State::Watching { called, until: now.into() },
            (None, None) => State::Done,
        };
    }
}

/// Returns the next multiple of the interval after the call began. A call that ends exactly on one waits for the next.
fn next_tick(called: Duration, interval: Duration, now: Duration) -> Duration {
    let lasted = now.saturating_sub(called).as_nanos();
    let over = lasted.checked_rem(interval.as_nanos()).unwrap_or_default();
    let over = Duration::from_nanos(u64::try_from(over).unwrap_or_default());
    now.saturating_add(interval.saturating_sub(over))
}
