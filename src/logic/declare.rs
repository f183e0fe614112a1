//! From what a script wrote to a [`Handler`]: options, ids, and the errors of declarations.
//!
//! Both languages turn their values into [`Argument`]s; everything after that is the same for both.
//! The contract is `tests/vectors/handler-ids.json`, and `selectors.json` for the positional arguments.

use serde_json::Value;

use super::{
    function::Function,
    handler::{Callback, Kind},
};

/// A value as a script passed it to a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// nil / `()`: the same as not given.
    Absent,
    /// Data without functions or markers inside: a scalar, a list, a map.
    Value(Value),
    /// A function, or a combination of functions (`kopf.all_` and the like).
    Callback(Callback),
    /// `kopf.PRESENT` and the like.
    Marker(Marker),
    /// A list with functions or markers inside.
    List(Vec<Argument>),
    /// A map with functions or markers inside, in the order of the script if the language has one, else sorted.
    Map(Vec<(String, Argument)>),
}

/// The constants of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `kopf.PRESENT`
    Present,
    /// `kopf.ABSENT`
    Absent,
    /// `kopf.EVERYTHING`
    Everything,
}

/// One declaration: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)`.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Which function of `kopf` was called.
    pub kind: Kind,
    /// The positional arguments before the options.
    pub selectors: Vec<Argument>,
    /// The options, by name.
    pub options: Vec<(String, Argument)>,
    /// The handler function.
    pub function: Function,
    /// `file:line` of the declaration.
    pub location: String,
}
