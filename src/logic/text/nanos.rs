//! Compact durations, for structures that exist by the thousands.

use std::{num::NonZeroU64, time::Duration};

/// A duration in eight bytes, also as an `Option`. Limited to five centuries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(NonZeroU64);

impl Nanos {
    /// A duration of zero.
    pub const ZERO: Nanos = Nanos(NonZeroU64::MIN);
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Nanos(NonZeroU64::MIN.saturating_add(nanos))
    }
}

impl From<Nanos> for Duration {
    fn from(Nanos(nanos): Nanos) -> Self {
        // Zero is stored as one.
        Duration::from_nanos(nanos.get() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Nanos};

    #[test]
    fn durations_keep_their_length() {
        for duration in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1 << 33)] {
            assert_eq!(Duration::from(Nanos::from(duration)), duration);
        }
        assert!(Duration::from(Nanos::from(Duration::MAX)) > Duration::from_secs(1 << 34));
        assert_eq!(Duration::from(Nanos::ZERO), Duration::ZERO);
        assert_eq!(size_of::<Option<Nanos>>(), 8);
    }
}
