//! Decides which operator owns a finalizer. Without it, two operators with the same finalizer, one that needs it and one that does
//! not, would add and remove it endlessly.
//!
//! An operator that adds the finalizer again looks the same as a user who applies an older manifest, finalizer included. So a
//! deletion waits for the other operator only as long as the object keeps changing: see [`Quiet`].

use std::time::Duration;

/// The state of the operator's finalizer on one object that none of its handlers needs.
///
/// An operator that was changed must release the objects that it held before. But if the finalizer is added again after that, another
/// operator with the same name needs it, and it stays until that operator removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// As far as is known, the finalizer belongs to this operator.
    #[default]
    Ours,
    /// Its removal was requested.
    Releasing,
    /// The object was seen without it after that.
    Released,
    /// It was added again.
    Foreign,
}

impl Claim {
    /// Returns the claim after an event. `required`: handlers of this operator need the finalizer; `blocked`: the object has it.
    #[must_use]
    pub fn seen(self, required: bool, blocked: bool) -> Self {
        match (self, required, blocked) {
            (_, true, _) => Claim::Ours,
            (Claim::Releasing, false, false) => Claim::Released,
            (Claim::Released, false, true) => Claim::Foreign,
            (it, false, _) => it,
        }
    }

    /// Returns whether this operator may remove the finalizer.
    pub fn is_ours(self) -> bool {
        self != Claim::Foreign
    }
}

/// Minimum time without a change of an object that is being deleted before a foreign finalizer is removed.
const QUIET_MIN: Duration = Duration::from_secs(30);
/// The same while handlers of any operator are in progress. Their operators write at least every ten minutes.
const QUIET_MIN_IN_PROGRESS: Duration = Duration::from_mins(11);

/// The time since the last change of an object that is being deleted and that only a foreign finalizer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// A number that differs for each state of the object.
    state: u64,
    /// On the clock of the caller.
    since: Duration,
    /// Handlers of any operator are in progress.
    in_progress: bool,
}

impl Quiet {
    /// Returns the updated value after one more look at the object. `state` is a number that differs for each state of the object.
    #[must_use]
    pub fn seen(before: Option<Self>, state: u64, in_progress: bool, now: Duration) -> Self {
        let same = before.filter(|it| it.state == state);
        same.unwrap_or(Quiet { state, since: now, in_progress })
    }

    /// Returns how long to wait before the finalizer may be removed; zero if it may be removed now.
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
    fn a_deletion_waits_while_the_object_changes() {
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
    fn a_finalizer_that_comes_back_is_foreign() {
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
