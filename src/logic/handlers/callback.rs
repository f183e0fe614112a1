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
