//! Wall time, in production and in tests.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{self, Instant};

/// Where stored timestamps come from. Waiting always goes through `tokio::time`.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    /// A base plus tokio's time: stored stamps follow a paused clock.
    Virtual {
        base: Timestamp,
        origin: Instant,
    },
}

impl Default for Clock {
    /// That of the machine.
    fn default() -> Self {
        Clock::system()
    }
}

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Self {
        Clock(Source::System)
    }

    /// A clock that shows `base` now and goes with tokio's time, also when that is paused.
    pub fn starting_at(base: Timestamp) -> Self {
        Clock(Source::Virtual { base, origin: Instant::now() })
    }

    /// The present moment, to the microsecond: stored stamps have no more digits.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now(&self) -> Timestamp {
        let exact = match self.0 {
            Source::System => Timestamp::now(),
            Source::Virtual { base, origin } => {
                let passed =
                    SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                base.saturating_add(passed).unwrap_or(base)
            }
        };
        Timestamp::from_microsecond(exact.as_microsecond()).unwrap_or(exact)
    }

    /// Returns a time that never steps: since some start, and with the time in which the machine was suspended, where the system tells.
    pub fn uptime(&self) -> Duration {
        match self.0 {
            Source::System => uptime_of_system(),
            Source::Virtual { origin, .. } => origin.elapsed(),
        }
    }
}

fn uptime_of_system() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Waits until this moment; without one for ever, for the arms of a `select!` that may have nothing to wait for.
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
