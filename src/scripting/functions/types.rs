//! The vocabulary of libraries: a library, its functions, their parameters, and the values between a script and a library.

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
    /// As scripts call it.
    pub(crate) name: &'static str,
    /// What it is for, in one line.
    pub(crate) doc: &'static str,
    /// Its functions.
    pub(crate) functions: &'static [Function],
}

/// One function of a library.
pub(crate) struct Function {
    /// Its name in the library.
    pub(crate) name: &'static str,
    /// What it does, in a sentence or two; the first is the summary.
    pub(crate) doc: &'static str,
    /// What is passed by place.
    pub(crate) parameters: &'static [Parameter],
    /// What is passed by name, in a map that comes last.
    pub(crate) options: &'static [Parameter],
    /// What it gives.
    pub(crate) returns: Type,
    /// What it does.
    pub(crate) body: Body,
}

/// A parameter or an option.
pub(crate) struct Parameter {
    /// In messages, and as the key of an option.
    pub(crate) name: &'static str,
    /// What fits.
    pub(crate) kind: Type,
    /// Whether it must be given.
    pub(crate) required: bool,
    /// What it is, in one line, with its default.
    pub(crate) doc: &'static str,
    /// Whether errors must not show what was passed.
    pub(crate) is_secret: bool,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Anything that JSON has.
    Any,
    /// True or false.
    Boolean,
    /// A text, not empty.
    Name,
    /// A text.
    Text,
    /// A map with texts as keys.
    Map,
    /// A list.
    List,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// Seconds, or a text such as `"10m"`.
    Duration,
    /// A text, or bytes that need not be one: a string in Lua, a blob in Rhai.
    Bytes,
    /// A function of the script; only of functions that are written in the language themselves.
    Function,
    /// No value: what a function returns that is called for its effect.
    Nothing,
    /// A whole number that is not negative.
    Count,
    /// A resource: its name, or a map that describes it, such as `ctx.resource`.
    Selector,
    /// An object, or what names one: `apiVersion`, `kind` and a name.
    Object,
    /// A selector of labels or fields: a text, or a map of what must be equal.
    Labels,
    /// What is waited for: a text, or a function of the script; only of functions that are written in the language.
    Test,
}

/// How a function works.
pub(crate) enum Body {
    /// It computes, at once.
    Immediate(fn(&Call) -> Outcome),
    /// It waits, for a disk or a server: the other calls of the script go on.
    Waiting(fn(Call) -> BoxFuture<'static, Outcome>),
    /// It is written in the language, in `stdlib/`, because it takes functions: see [`embedded`].
    Script,
    /// It gives one value after another, and waits for each: what scripts loop over. It ends when the loop is left.
    Streaming(fn(&Call) -> Result<Flow, Failure>),
    /// It keeps its last argument, a function of the script, which responds to calls in a test: see [`fake`](super::fake).
    Faking(Faked),
}

/// A parameter that must be given.
pub(crate) const fn required(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: true, doc, is_secret: false }
}

/// A parameter that may be left out.
pub(crate) const fn optional(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: false, doc, is_secret: false }
}

/// A function that computes at once.
pub(crate) const fn immediate(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    returns: Type,
    body: fn(&Call) -> Outcome,
) -> Function {
    Function { name, doc, parameters, options: &[], returns, body: Body::Immediate(body) }
}

/// A function that is written in the languages of scripts.
pub(crate) const fn script(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    returns: Type,
) -> Function {
    Function { name, doc, parameters, options: &[], returns, body: Body::Script }
}

impl Parameter {
    /// The same for a key, a token or a password: errors do not show what was passed.
    pub(crate) const fn secret(self) -> Parameter {
        Parameter { is_secret: true, ..self }
    }
}

impl Library {
    /// There is no such function in it.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let (library, known) = (self.name, self.functions.iter().map(|it| it.name));
        format!("there is no {library}.{name}{}", did_you_mean(name, known, &format!("{library}.")))
    }
}

impl Function {
    /// The same, with options.
    pub(crate) const fn with(self, options: &'static [Parameter]) -> Function {
        Function { options, ..self }
    }

    /// How it is called: `env.get(name, [default])`.
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
    /// As messages name it.
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
