//! Wall-clock time, in production and in tests.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{self, Instant};

/// The source of stored timestamps. Waiting always goes through `tokio::time`.
#[derive(Clone, Copy, Debug)]
pub struct Clock(TimeSource);

#[derive(Clone, Copy, Debug)]
enum TimeSource {
    System,
    /// A base plus tokio's time: stored timestamps follow a paused clock.
    Virtual {
        base: Timestamp,
        origin: Instant,
        /// Seconds by which the clock was set forward (or back, if negative).
        ahead: Option<&'static AtomicI64>,
    },
    /// A base plus the uptime of the system since then.
    Steady {
        base: Timestamp,
        origin: Duration,
    },
}

/// Sets a virtual clock forward or back, as administrators and NTP do.
#[derive(Clone, Copy, Debug)]
pub struct Steps(&'static AtomicI64);

impl Steps {
    /// Sets the clock to this many seconds before or after the time that has passed.
    pub fn set_ahead(&self, seconds: i64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl Default for Clock {
    /// Returns the clock of the machine.
    fn default() -> Self {
        Clock::system()
    }
}

impl Clock {
    /// Returns the clock of the machine.
    pub fn system() -> Self {
        Clock(TimeSource::System)
    }

    /// Returns a clock that shows `base` now and advances with tokio's time, also when that is paused.
    pub fn starting_at(base: Timestamp) -> Self {
        Clock(TimeSource::Virtual { base, origin: Instant::now(), ahead: None })
    }

    /// Returns a virtual clock and the handle that sets it. For tests only: the handle's memory is never freed.
    pub fn stepping(base: Timestamp) -> (Self, Steps) {
        let ahead: &'static AtomicI64 = Box::leak(Box::default());
        let source = TimeSource::Virtual { base, origin: Instant::now(), ahead: Some(ahead) };
        (Clock(source), Steps(ahead))
    }

    /// Returns a clock that shows the same time now, and does not follow when this one is set forward or back.
    ///
    /// Pauses and timeouts are measured with it, so an hour stays an hour. Timestamps that others compare with their own clocks
    /// must not use it.
    #[must_use]
    pub fn steady(&self) -> Self {
        match self.0 {
            TimeSource::System => {
                Clock(TimeSource::Steady { base: self.now(), origin: uptime_of_system() })
            }
            TimeSource::Virtual { ahead: Some(_), .. } => {
                Clock(TimeSource::Virtual { base: self.now(), origin: Instant::now(), ahead: None })
            }
            TimeSource::Virtual { .. } | TimeSource::Steady { .. } => *self,
        }
    }

    /// Returns the current time, truncated to microseconds: stored timestamps have no more digits.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now(&self) -> Timestamp {
        let exact = match self.0 {
            TimeSource::System => Timestamp::now(),
            TimeSource::Virtual { base, origin, ahead } => {
                let now = after(base, origin.elapsed());
                let ahead = ahead.map_or(0, |it| it.load(Ordering::Relaxed));
                now.saturating_add(SignedDuration::from_secs(ahead)).unwrap_or(now)
            }
            TimeSource::Steady { base, origin } => {
                after(base, uptime_of_system().saturating_sub(origin))
            }
        };
        Timestamp::from_microsecond(exact.as_microsecond()).unwrap_or(exact)
    }

    /// Returns a time that never steps: the time since some start. It includes the time that the machine was suspended, where the
    /// system reports that.
    pub fn uptime(&self) -> Duration {
        match self.0 {
            TimeSource::System | TimeSource::Steady { .. } => uptime_of_system(),
            TimeSource::Virtual { origin, .. } => origin.elapsed(),
        }
    }
}

fn after(base: Timestamp, passed: Duration) -> Timestamp {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    base.saturating_add(passed).unwrap_or(base)
}

fn uptime_of_system() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Waits until this moment. Without a moment it never completes, for `select!` arms that may have nothing to wait for.
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
