//! The version of handlers: the only counter that orders generations.

use std::fmt;

/// The version of the handlers of a stream: the generation that declared them, and within it the pass over the streams that
/// assigned them. Passes count because the handlers of a resource also change with the resources of the cluster.
///
/// Versions of one operator are ordered, also if two generations are active at once. The default precedes all handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    generation: u32,
    pass: u32,
}

impl Version {
    /// The generation at the start, before its first pass.
    pub const FIRST: Version = Version { generation: 1, pass: 0 };

    /// Returns the number of the generation.
    pub fn number(self) -> u64 {
        self.generation.into()
    }

    /// Returns the generation after this one.
    #[must_use]
    pub fn next_generation(self) -> Self {
        Version { generation: self.generation.saturating_add(1), pass: 0 }
    }

    /// Returns the next pass of the same generation.
    #[must_use]
    pub fn next_pass(self) -> Self {
        Version { pass: self.pass.saturating_add(1), ..self }
    }
}

impl fmt::Display for Version {
    /// Formats the number of the generation; the first is 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn a_later_generation_follows_every_pass_of_an_earlier_one() {
        let first = Version::FIRST;
        let later = first.next_pass().next_pass();
        let second = first.next_generation();
        assert!(Version::default() < first && first < later && later < second);
        assert!(second < second.next_pass());
        assert_eq!((later.to_string(), second.to_string()), ("1".into(), "2".into()));
    }
}
