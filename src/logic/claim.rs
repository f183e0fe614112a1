//! Whose finalizer is it? Two operators with the same finalizer, one that needs it and one that does not, would otherwise
//! put it on and take it off for ever.

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

#[cfg(test)]
mod tests {
    use super::Claim;

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
