//! Which resources a handler wants.
//!
//! The contract is `tests/vectors/selectors.json`.

use super::function::Function;

/// A resource selector, as parsed from a declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    /// The API group; `None` is any, empty is the core group.
    pub group: Option<String>,
    /// The version; `None` is the preferred one.
    pub version: Option<String>,
    /// A kind.
    pub kind: Option<String>,
    /// A plural.
    pub plural: Option<String>,
    /// A singular.
    pub singular: Option<String>,
    /// A short name.
    pub shortcut: Option<String>,
    /// A category.
    pub category: Option<String>,
    /// Kind, plural, singular or short name; or everything.
    pub any_name: Option<AnyName>,
    /// A function of the resource record.
    pub function: Option<Function>,
}

/// The positional name of a selector.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyName {
    /// `kopf.EVERYTHING`
    Everything,
    /// A kind, plural, singular or short name.
    Named(String),
}
