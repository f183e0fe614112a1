//! Which of the handlers that are due run in one cycle.
//!
//! The contract is `tests/vectors/lifecycles.json`. Before: `selection.rs` and `progress.rs`. After: `handling/`.

use std::sync::Arc;

use super::handler::Handler;

/// The order of a cycle's handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifecycle {
    /// The one with the fewest attempts so far, so that a failing handler does not block the others.
    #[default]
    Asap,
    /// The first.
    OneByOne,
    /// All, one after another.
    AllAtOnce,
    /// All, in random order.
    Shuffled,
    /// One at random.
    Randomized,
}

impl Lifecycle {
    /// All of them, by the names users write.
    pub const ALL: [(&'static str, Lifecycle); 5] = [
        ("asap", Lifecycle::Asap),
        ("one_by_one", Lifecycle::OneByOne),
        ("all_at_once", Lifecycle::AllAtOnce),
        ("shuffled", Lifecycle::Shuffled),
        ("randomized", Lifecycle::Randomized),
    ];

    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(it, _)| *it == name).map(|(_, lifecycle)| lifecycle)
    }

    /// Picks from the handlers that are due, given in order. `random` gives a number below its argument.
    pub fn pick(
        self,
        handlers: &[Arc<Handler>],
        retries: impl Fn(&str) -> u64,
        random: &mut dyn FnMut(usize) -> usize,
    ) -> Vec<Arc<Handler>> {
        match self {
            Lifecycle::AllAtOnce => handlers.to_vec(),
            Lifecycle::OneByOne => handlers.first().cloned().into_iter().collect(),
            // Of equals, the minimum is the first.
            Lifecycle::Asap => {
                handlers.iter().min_by_key(|it| retries(&it.id)).cloned().into_iter().collect()
            }
            Lifecycle::Randomized if handlers.is_empty() => Vec::new(),
            Lifecycle::Randomized => {
                handlers.get(random(handlers.len())).cloned().into_iter().collect()
            }
            Lifecycle::Shuffled => {
                let mut shuffled = handlers.to_vec();
                for last in (1..shuffled.len()).rev() {
                    shuffled.swap(last, random(last + 1));
                }
                shuffled
            }
        }
    }
}
