//! How much of the operator's thread the calls of one script may take, if they run there.

use std::time::Duration;

/// The real clock, which tests cannot pause: a paused clock stands still while a script computes.
#[expect(clippy::disallowed_types, reason = "measures computing, which no paused clock sees")]
pub(in crate::scripting) type RealInstant = std::time::Instant;

/// Duration of a call that is longer than expected: a hundred times that of a short call.
pub(in crate::scripting) const LONG: Duration = Duration::from_millis(1);
/// Calls of this length are free: a call on another thread costs the operator's thread a good part of it.
const FREE: Duration = Duration::from_micros(100);
/// How much time beyond [`FREE`] the calls of a script may take in total within a window.
const ALLOWED: Duration = Duration::from_millis(2);
const WINDOW: Duration = Duration::from_millis(20);

/// The share of the operator's thread that the calls of one script take.
#[derive(Default)]
pub(in crate::scripting) struct InlineShare {
    /// When the current window began.
    began: Option<RealInstant>,
    /// Time beyond [`FREE`] within it.
    time: Duration,
}

impl InlineShare {
    /// Returns whether the script may use the operator's thread; begins a new window if the current one is over.
    pub(in crate::scripting) fn admits(&mut self, now: RealInstant) -> bool {
        if self.began.is_none_or(|it| now.duration_since(it) >= WINDOW) {
            (self.began, self.time) = (Some(now), Duration::ZERO);
        }
        self.time < ALLOWED
    }

    /// Counts a call that took this long.
    pub(in crate::scripting) fn add(&mut self, time: Duration) {
        self.time += time.saturating_sub(FREE);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, FREE, InlineShare, RealInstant, WINDOW};

    #[test]
    fn a_script_uses_its_own_thread_for_the_rest_of_a_window() {
        let (mut share, now) = (InlineShare::default(), RealInstant::now());
        for _ in 0..1000 {
            assert!(share.admits(now));
            share.add(FREE);
        }
        for _ in 0..4 {
            assert!(share.admits(now));
            share.add(FREE + ALLOWED / 4);
        }
        assert!(!share.admits(now));
        assert!(share.admits(now + WINDOW));
    }
}
