//! The rules: their names, their levels, their explanations.

use crate::settings::Strict;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A variable or a global that does not exist.
    UnknownVariable,
    /// A function that does not exist.
    UnknownFunction,
    /// A member of a library, of `ctx` or of a handle that does not exist.
    UnknownMember,
    /// An option that a function does not have.
    UnknownOption,
    /// A field that the schema of the resource does not have.
    UnknownField,
    /// Too few or too many arguments.
    Arguments,
    /// A literal of the wrong type.
    Type,
    /// A field of `ctx` that this kind of handler does not have.
    OtherHandler,
    /// An assignment to something that is read-only.
    ReadOnly,
}

/// What a finding means for loading the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A name that does not exist: the code cannot work.
    Name,
    /// A value or a call that is probably wrong.
    Type,
}

impl Level {
    /// Whether a finding of this level rejects its script.
    pub fn rejects(self, strict: Strict) -> bool {
        match strict {
            Strict::Off => false,
            Strict::Names => self == Level::Name,
            Strict::Types => true,
        }
    }
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 9] = [
        Rule::UnknownVariable,
        Rule::UnknownFunction,
        Rule::UnknownMember,
        Rule::UnknownOption,
        Rule::UnknownField,
        Rule::Arguments,
        Rule::Type,
        Rule::OtherHandler,
        Rule::ReadOnly,
    ];

    /// Returns the name, as in `kopf: allow(NAME)`.
    pub fn name(self) -> &'static str {
        match self {
            Rule::UnknownVariable => "unknown-variable",
            Rule::UnknownFunction => "unknown-function",
            Rule::UnknownMember => "unknown-member",
            Rule::UnknownOption => "unknown-option",
            Rule::UnknownField => "unknown-field",
            Rule::Arguments => "wrong-arguments",
            Rule::Type => "wrong-type",
            Rule::OtherHandler => "other-handler",
            Rule::ReadOnly => "read-only",
        }
    }

    /// Returns the rule with this name.
    pub fn find(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the level of its findings.
    pub fn level(self) -> Level {
        match self {
            Rule::UnknownVariable
            | Rule::UnknownFunction
            | Rule::UnknownMember
            | Rule::UnknownOption => Level::Name,
            Rule::UnknownField
            | Rule::Arguments
            | Rule::Type
            | Rule::OtherHandler
            | Rule::ReadOnly => Level::Type,
        }
    }

    /// Returns the explanation.
    pub fn doc(self) -> &'static str {
        match self {
            Rule::UnknownVariable => {
                "The variable is not declared in any scope around this line, and the script never assigns a global with this name. \
                 Lua reads it as nil; Rhai raises an error."
            }
            Rule::UnknownFunction => {
                "No function with this name is defined in the script, its modules, the language or the libraries. The call fails \
                 when the line is reached."
            }
            Rule::UnknownMember => {
                "The library, `ctx` or the handle has no member with this name. Reading it is an error or nil; writing it into \
                 `ctx.patch` changes a field that the resource probably does not have."
            }
            Rule::UnknownOption => {
                "The function does not have this option. The call fails when the line is reached."
            }
            Rule::UnknownField => {
                "The schema of the resource does not have this field. The server drops it when it is written, and it is always \
                 missing when it is read."
            }
            Rule::Arguments => {
                "The function takes fewer or more arguments. The call fails when the line is reached."
            }
            Rule::Type => "The function or the option expects a value of another type.",
            Rule::OtherHandler => {
                "Only other kinds of handlers have this field of `ctx`, such as `ctx.stopped` of daemons. Here, it is nil."
            }
            Rule::ReadOnly => {
                "`ctx` and the parts of the object are read-only: change the object through `ctx.patch`, keep data in `ctx.memo`, \
                 or change a `kopf.copy`."
            }
        }
    }
}
