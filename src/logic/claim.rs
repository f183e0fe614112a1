//! Whose finalizer is it? Two operators with the same finalizer, one that needs it and one that does not, would otherwise
//! put it on and take it off for ever.
//!
//! Nothing tells such an operator from a user who applies an older manifest, finalizer included. So a deletion waits for the
//! other operator only while somebody does something to the object: see [`Quiet`].

use std::time::Duration;

/// What we know about our finalizer on one object that none of our handlers needs.
///
/// An operator that was changed must release the objects that it held before. But a finalizer that comes back after that is
/// not ours: somebody else with the same name needs it, and it stays until that one lets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// As far as we know it is ours.
    #[default]
    Ours,
    /// We have asked to take it off.
    Releasing,
    /// We have seen the object without it after that.
    Released,
    /// It came back.
    Foreign,
}

impl Claim {
    /// The claim after an event. `required`: our handlers need the finalizer; `blocked`: it is on the object.
    #[must_use]
    pub fn seen(self, required: bool, blocked: bool) -> Self {
        match (self, required, blocked) {
            (_, true, _) => Claim::Ours,
            (Claim::Releasing, false, false) => Claim::Released,
            (Claim::Released, false, true) => Claim::Foreign,
            (it, false, _) => it,
        }
    }

    /// Whether we may take it off.
    pub fn is_ours(self) -> bool {
        self != Claim::Foreign
    }
}

/// How long nothing must happen to an object that is being deleted before a foreign finalizer is taken off.
const QUIET_MIN: Duration = Duration::from_secs(30);
/// The same while handlers of somebody are in progress. Their operators write at least every ten minutes.
const QUIET_MIN_IN_PROGRESS: Duration = Duration::from_mins(11);

/// Since when nothing has happened to an object that is being deleted, and that a foreign finalizer still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// Another number for each state of the object.
    state: u64,
    /// On the clock of the caller.
    since: Duration,
    /// Handlers of somebody are in progress.
    in_progress: bool,
}

impl Quiet {
    /// What is known after one more look. `state` is another number for each state of the object.
    #[must_use]
    pub fn seen(before: Option<Self>, state: u64, in_progress: bool, now: Duration) -> Self {
        let same = before.filter(|it| it.state == state);
        same.unwrap_or(Quiet { state, since: now, in_progress })
    }

    /// Returns how long to wait before the finalizer may be taken off; zero if it may be now.
    pub fn remaining(&self, now: Duration) -> Duration {
        let least = if self.in_progress { QUIET_MIN_IN_PROGRESS } else { QUIET_MIN };
        self.since.saturating_add(least).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Claim, Quiet};

    #[test]
    fn a_deletion_waits_as_long_as_somebody_does_something() {
        let second = Duration::from_secs;
        let quiet = Quiet::seen(None, 1, false, second(100));
        assert_eq!(quiet.remaining(second(110)), second(20));
        assert_eq!(Quiet::seen(Some(quiet), 1, false, second(110)), quiet);
        let changed = Quiet::seen(Some(quiet), 2, false, second(110));
        assert_eq!(changed.remaining(second(120)), second(20));
        assert_eq!(changed.remaining(second(140)), Duration::ZERO);
        let busy = Quiet::seen(None, 1, true, second(0));
        assert!(busy.remaining(second(600)) > Duration::ZERO);
        assert_eq!(busy.remaining(second(660)), Duration::ZERO);
    }

    fn after(events: &[(bool, bool)]) -> Claim {
        events.iter().fold(Claim::Releasing, |it, (required, blocked)| it.seen(*required, *blocked))
    }

    #[test]
    fn a_finalizer_that_comes_back_is_of_somebody_else() {
        assert_eq!(after(&[(false, false), (false, true)]), Claim::Foreign);
        assert_eq!(after(&[(false, false), (false, true), (false, false)]), Claim::Foreign);
    }

    #[test]
    fn an_event_from_before_the_release_proves_nothing() {
        assert_eq!(after(&[(false, true), (false, true)]), Claim::Releasing);
    }

    #[test]
    fn a_finalizer_that_we_need_is_ours() {
        assert_eq!(
            after(&[(false, false), (true, false), (true, true), (false, true)]),
            Claim::Ours
        );
    }
}
