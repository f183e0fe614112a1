//! How a language writes what facts are read from.

/// How a language writes what facts are read from.
pub(super) struct Dialect {
    /// Begin the declaration of variables.
    pub(super) declaring: &'static [&'static str],
    pub(super) assigning: &'static [&'static str],
    /// Between a name and a name in it.
    pub(super) accessing: &'static [&'static str],
    /// The one of these that calls a method.
    pub(super) method: &'static str,
    /// The one of these that makes `M.f` worth looking at for itself.
    pub(super) member: &'static str,
    /// Between a key and its value.
    pub(super) keyed: &'static str,
    /// Begin a value that is new.
    pub(super) fresh: &'static [&'static str],
    /// Whether `f "text"` and `f { … }` are calls.
    pub(super) calls_with_literals: bool,
    /// Whatever is called in or below these changes nothing that another statement has made.
    pub(super) harmless: &'static [&'static str],
    pub(super) harmless_members: &'static [&'static str],
    pub(super) harmless_methods: &'static [&'static str],
    /// Functions that change their first argument.
    pub(super) changing: &'static [&'static str],
    /// Who mentions these can reach everything.
    pub(super) opaque: &'static [&'static str],
    /// Makes a function of a text.
    pub(super) names_functions: Option<&'static str>,
    /// Functions that give back the table they are given.
    pub(super) wrapping: &'static [&'static str],
}
