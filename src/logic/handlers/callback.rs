//! Filter functions of scripts, and combinations of them.

use super::function::Function;

/// A filter function of a script, or a combination of filter functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Callback {
    /// One function, which is called with the kwargs of the cause.
    Function(Function),
    /// `kopf.all_`: none fails; passes when empty.
    All(Vec<Callback>),
    /// `kopf.any_`: one passes; fails when empty.
    Any(Vec<Callback>),
    /// `kopf.none_`: none passes; passes when empty.
    None(Vec<Callback>),
    /// `kopf.not_`: passes when the callback fails.
    Not(Box<Callback>),
}

impl Callback {
    /// Returns the number of functions and combinations in it, itself included.
    pub fn count(&self) -> usize {
        match self {
            Callback::Function(_) => 1,
            Callback::All(inner) | Callback::Any(inner) | Callback::None(inner) => {
                1 + inner.iter().map(Callback::count).sum::<usize>()
            }
            Callback::Not(inner) => 1 + inner.count(),
        }
    }
}
