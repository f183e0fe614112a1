//! The types of the tables of libraries: a library, its functions, their parameters.

use super::{
    call::Call,
    outcome::{Failure, Flow, Outcome},
};
use crate::call::Faked;
use crate::logic::text::duration;
use crate::ports::BoxFuture;
use crate::scripting::values::text::did_you_mean;

/// One global of scripts, with its functions.
pub(crate) struct Library {
    /// The name in scripts.
    pub(crate) name: &'static str,
    /// The documentation, in one line.
    pub(crate) doc: &'static str,
    /// Its functions, in the order of the reference.
    pub(crate) functions: &'static [Function],
}

/// One function of a library.
pub(crate) struct Function {
    /// Its name in the library.
    pub(crate) name: &'static str,
    /// The documentation, a sentence or two; the first is the summary.
    pub(crate) doc: &'static str,
    /// The positional parameters, in order.
    pub(crate) parameters: &'static [Parameter],
    /// The options, in a map that comes last.
    pub(crate) options: &'static [Parameter],
    /// The type of its result.
    pub(crate) returns: Type,
    /// The implementation, or where it is.
    pub(crate) body: Body,
}

/// A parameter or an option.
pub(crate) struct Parameter {
    /// The name in messages, and the key of an option.
    pub(crate) name: &'static str,
    /// The type that is accepted.
    pub(crate) kind: Type,
    /// Whether it is required.
    pub(crate) required: bool,
    /// The documentation, in one line, with the default.
    pub(crate) doc: &'static str,
    /// Whether errors must not show the argument.
    pub(crate) is_secret: bool,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Any value that JSON can hold.
    Any,
    /// True or false; no other value is accepted.
    Boolean,
    /// A string that is not empty.
    Name,
    /// A string, possibly empty.
    Text,
    /// A map with string keys.
    Map,
    /// A list; in Lua, an empty table counts as one.
    List,
    /// A number without a fraction; `2.0` is accepted.
    Integer,
    /// A finite number.
    Number,
    /// Seconds, or a string such as `"10m"`.
    Duration,
    /// A string, or bytes that need not be UTF-8: a string in Lua, a blob in Rhai.
    Bytes,
    /// A function of the script; only for functions that are written in the language.
    Function,
    /// No value: the result of a function that is called for its effect.
    Nothing,
    /// An integer that is not negative.
    Count,
    /// A resource: its name, or a map that describes it, such as `ctx.resource`.
    Selector,
    /// An object, or what identifies one: `apiVersion`, `kind` and a name.
    Object,
    /// A selector of labels or fields: a string, or a map of values that must be equal.
    Labels,
    /// A condition to wait for: a string, or a function of the script; only for functions that are written in the language.
    Test,
}

/// The implementation of a function.
pub(crate) enum Body {
    /// Computes, and returns at once.
    Immediate(fn(&Call) -> Outcome),
    /// Waits for a disk or a server; other calls of the script continue.
    Waiting(fn(Call) -> BoxFuture<'static, Outcome>),
    /// Written in the language, in `stdlib/`, because it takes functions: see [`embedded`].
    Script,
    /// Returns a stream of values for a loop, and waits for each. It ends when the loop is left.
    Streaming(fn(&Call) -> Result<Flow, Failure>),
    /// Keeps its last argument, a function of the script, which responds to calls in a test: see [`fake`](super::fake).
    Faking(Faked),
}

/// Returns a required parameter, for tables.
pub(crate) const fn required(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: true, doc, is_secret: false }
}

/// Returns an optional parameter, for tables.
pub(crate) const fn optional(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: false, doc, is_secret: false }
}

/// Returns a function that computes and returns at once.
pub(crate) const fn immediate(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    returns: Type,
    body: fn(&Call) -> Outcome,
) -> Function {
    Function { name, doc, parameters, options: &[], returns, body: Body::Immediate(body) }
}

/// Returns a function that is written in the languages of scripts.
pub(crate) const fn script(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    returns: Type,
) -> Function {
    Function { name, doc, parameters, options: &[], returns, body: Body::Script }
}

impl Parameter {
    /// Marks a key, a token or a password: errors do not show the argument.
    pub(crate) const fn secret(self) -> Parameter {
        Parameter { is_secret: true, ..self }
    }
}

impl Library {
    /// Returns the error of an unknown function of the library.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let (library, known) = (self.name, self.functions.iter().map(|it| it.name));
        format!("there is no {library}.{name}{}", did_you_mean(name, known, &format!("{library}.")))
    }
}

impl Function {
    /// Adds options to the function.
    pub(crate) const fn with(self, options: &'static [Parameter]) -> Function {
        Function { options, ..self }
    }

    /// Returns how it is called: `env.get(name, [default])`.
    pub(crate) fn signature(&self, library: &str) -> String {
        let bracket =
            |name: &str, required| if required { name.into() } else { format!("[{name}]") };
        let mut shown: Vec<String> =
            self.parameters.iter().map(|it| bracket(it.name, it.required)).collect();
        if !self.options.is_empty() {
            shown.push(bracket("options", self.options.iter().any(|it| it.required)));
        }
        format!("{library}.{}({})", self.name, shown.join(", "))
    }
}

impl Type {
    /// Returns the name of the type in messages.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Type::Any => "a value",
            Type::Boolean => "true or false",
            Type::Name => "a non-empty string",
            Type::Text => "a string",
            Type::Map => "a map",
            Type::List => "a list",
            Type::Integer => "an integer",
            Type::Number => "a number",
            Type::Duration => duration::EXPECTED,
            Type::Bytes => "a string or bytes",
            Type::Function => "a function",
            Type::Nothing => "nothing",
            Type::Count => "a non-negative integer",
            Type::Selector => "the name of a resource, such as \"pods\" or \"deployments.apps\"",
            Type::Object => {
                "an object or a reference to one: a map with `apiVersion`, `kind` and `metadata.name`, or ctx"
            }
            Type::Labels => "a string such as \"app=web,tier!=db\", or a map",
            Type::Test => "a string such as \"condition=Ready\", or a function of the object",
        }
    }
}
