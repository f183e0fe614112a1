//! One schedule: waits for a slot, takes it, runs the function, and waits for the next.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time};

use super::{
    base::{Base, TARGET},
    lease::{Lease, LeaseProblem},
};
use crate::call::CallServices;
use crate::handling::{
    activities::{self, Activity},
    run::HandlerRunner,
};
use crate::logic::{
    handlers::handler::{Handler, InitialDelay, Times},
    schedules::{
        due::{self, Due, Interval},
        slots::ScheduleSlot,
    },
};
use crate::ports::NativeLogins;

/// The pause after the Lease could not be used.
const RETRY: Duration = Duration::from_secs(10);
/// The clock may be set while a schedule waits, so waits are in parts.
const PART: Duration = Duration::from_secs(30);
/// A slot that is reached later than this is decided again: the clock was set forward, or the process was suspended.
const LATE: SignedDuration = SignedDuration::from_secs(30);

/// A schedule in one generation.
#[derive(Clone)]
pub(super) struct BoundSchedule {
    /// The handler that runs at each slot.
    pub(super) handler: Arc<Handler>,
    /// The services of its calls, which belong to the same generation.
    pub(super) services: Arc<CallServices>,
    /// The keys of all schedules of the generation.
    pub(super) known: Arc<BTreeSet<String>>,
}

/// One schedule of scripts, which waits for its slots in a task.
pub(super) struct Schedule {
    base: Arc<Base>,
    lease: Lease,
    key: String,
    current: watch::Receiver<BoundSchedule>,
    /// When this process has first seen the schedule.
    since: Timestamp,
    /// The last reported problem; each is logged once.
    told: Option<LeaseProblem>,
}

/// A slot that is due, and the last one before it.
struct DueSlot {
    last: Option<ScheduleSlot>,
    slot: Timestamp,
}

impl Schedule {
    pub(super) fn new(
        base: Arc<Base>,
        lease: Lease,
        key: String,
        current: watch::Receiver<BoundSchedule>,
    ) -> Self {
        let since = base.clock.now();
        Schedule { base, lease, key, current, since, told: None }
    }

    /// Runs until the schedule is removed.
    pub(super) async fn run(mut self) {
        let mut before = None;
        loop {
            let bound = self.current.borrow_and_update().clone();
            let text = text(&bound.handler);
            if before.replace(text.clone()).is_some_and(|it| it != text) {
                // The times of an edited schedule begin with the edit.
                self.since = self.base.clock.now();
            }
            let mut current = self.current.clone();
            let next = tokio::select! {
                biased; // nothing runs after the end, or with an outdated function
                changed = current.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    continue;
                }
                next = self.next(&bound) => next,
            };
            // Not interrupted from here on: a slot that is taken must run.
            let slot = self.lease.slot(next.slot, text);
            match self.lease.take(&self.key, next.last.as_ref(), &slot, &bound.known).await {
                Ok(true) => self.call(&bound, &slot).await,
                Ok(false) => {
                    tracing::debug!(
                        target: TARGET,
                        "{} does not run its slot {}: another process runs it.", bound.handler, next.slot
                    );
                }
                Err(problem) => {
                    self.report(&bound.handler, problem);
                    time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Waits until a slot is due.
    async fn next(&mut self, bound: &BoundSchedule) -> DueSlot {
        loop {
            self.base.leadership.until_leading().await;
            self.base.pauses.until(false).await;
            let last = match self.lease.last(&self.key).await {
                Ok(last) => last,
                Err(problem) => {
                    self.report(&bound.handler, problem);
                    time::sleep(RETRY).await;
                    continue;
                }
            };
            self.told = None;
            let slot = match self.due(&bound.handler, last.as_ref()) {
                Due::Now(slot) => slot,
                Due::After(pause, slot) => {
                    time::sleep(pause).await;
                    slot
                }
                Due::At(slot) => {
                    if !self.until(slot).await {
                        continue;
                    }
                    slot
                }
                Due::Never => {
                    tracing::warn!(target: TARGET, "{} has no further times to run at.", bound.handler);
                    std::future::pending().await
                }
            };
            if self.base.leadership.is_leading() && !self.base.pauses.is_paused() {
                return DueSlot { last, slot };
            }
        }
    }

    /// Waits until the clock shows this time; returns false if the clock was set past it.
    async fn until(&self, slot: Timestamp) -> bool {
        loop {
            let left = slot.duration_since(self.base.clock.now());
            match Duration::try_from(left) {
                Ok(left) if !left.is_zero() => time::sleep(left.min(PART)).await,
                Ok(_) | Err(_) => return left >= -LATE,
            }
        }
    }

    fn due(&self, handler: &Handler, last: Option<&ScheduleSlot>) -> Due {
        let times = (self.since, self.base.clock.now());
        match &handler.background.times {
            Some(Times::Cron(cron)) => due::of_cron(cron, handler.background.missed, last, times),
            Some(Times::Computed(..)) | None => due::of_interval(interval(handler), last, times),
        }
    }

    /// Runs the function, with its retries.
    async fn call(&self, bound: &BoundSchedule, slot: &ScheduleSlot) {
        let base = &self.base;
        let execution = base.settings.lock().execution.clone();
        let runner = HandlerRunner {
            scripts: &*base.scripts,
            clock: base.steady,
            settings: &execution,
            services: &bound.services,
        };
        let activity = Activity {
            kind: bound.handler.kind,
            handlers: vec![Arc::clone(&bound.handler)],
            settings: Arc::clone(&base.settings),
            memo: base.memo.clone(),
            logins: NativeLogins::default(),
            server: None,
            scheduled: Some(slot.slot),
        };
        // Its failures are logged; the next slot runs in any case.
        drop(activities::run(runner, &activity).await);
        if let Err(problem) = self.lease.end(&self.key, slot).await {
            tracing::debug!(target: TARGET, "Cannot record the end of a run in {problem}");
        }
    }

    fn report(&mut self, handler: &Handler, problem: LeaseProblem) {
        if self.told.as_ref() != Some(&problem) {
            let seconds = RETRY.as_secs();
            tracing::error!(
                target: TARGET,
                "{handler} cannot run, retrying every {seconds} s: cannot use {problem}"
            );
            self.told = Some(problem);
        }
    }
}

/// Returns the schedule as it is stored with its slots.
fn text(handler: &Handler) -> String {
    match &handler.background.times {
        Some(Times::Cron(cron)) => cron.to_string(),
        Some(Times::Computed(..)) | None => due::text(interval(handler)),
    }
}

fn interval(handler: &Handler) -> Interval {
    let background = &handler.background;
    let initial_delay = match &background.initial_delay {
        Some(InitialDelay::Fixed(delay)) => *delay,
        Some(InitialDelay::Computed(_)) | None => Duration::ZERO,
    };
    Interval {
        interval: background.interval.unwrap_or(Duration::MAX),
        sharp: background.sharp,
        initial_delay,
    }
}
