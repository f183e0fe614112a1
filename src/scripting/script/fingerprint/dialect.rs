//! The syntax of a language, as far as facts about statements depend on it.

/// The syntax of a language, as far as facts about statements depend on it.
pub(super) struct Dialect {
    /// The keywords that begin a declaration of variables.
    pub(super) declaring: &'static [&'static str],
    pub(super) assigning: &'static [&'static str],
    /// The separators between a name and a member of it.
    pub(super) accessing: &'static [&'static str],
    /// The separator that calls a method.
    pub(super) method: &'static str,
    /// The separator with which `M.f` is tracked as a name separate from `M`.
    pub(super) member: &'static str,
    /// The separator between a key and its value.
    pub(super) keyed: &'static str,
    /// The tokens that begin an expression which creates a value.
    pub(super) fresh: &'static [&'static str],
    /// Whether `f "text"` and `f { … }` are calls.
    pub(super) calls_with_literals: bool,
    /// Functions and libraries whose calls change nothing that other statements have created.
    pub(super) harmless: &'static [&'static str],
    pub(super) harmless_members: &'static [&'static str],
    pub(super) harmless_methods: &'static [&'static str],
    /// Functions that change their first argument.
    pub(super) changing: &'static [&'static str],
    /// Names that give access to everything.
    pub(super) opaque: &'static [&'static str],
    /// The function that converts a string to a function.
    pub(super) names_functions: Option<&'static str>,
    /// Functions that return the table that they are passed.
    pub(super) wrapping: &'static [&'static str],
}
