//! The libraries of scripts, such as `env` and `files`: the same names, meanings and errors in both languages.
//!
//! A library is a table: [`LIBRARIES`] has each function with its parameters, its documentation and what it does. From it the
//! engines make globals, arguments are checked, and the reference and the stubs of editors are generated. The engines only
//! bring arguments in and results out.

mod call;
mod env;
mod files;
mod kube;
mod refusal;
mod surroundings;
#[cfg(test)]
mod tests;

use futures::stream::BoxStream;

pub(crate) use self::{call::Call, refusal::Refusal, surroundings::Surroundings};
use super::text::did_you_mean;
use crate::logic::duration;
use crate::ports::BoxFuture;

/// All of them.
pub(crate) static LIBRARIES: &[Library] = &[env::LIBRARY, files::LIBRARY, kube::LIBRARY];

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
    /// A whole number that is not negative.
    Count,
    /// Seconds, or a text with a unit.
    Duration,
    /// A resource: its name, or a map that describes it, such as `ctx.resource`.
    Selector,
    /// An object, or what names one: `apiVersion`, `kind` and a name.
    Object,
    /// A selector of labels or fields: a text, or a map of what must be equal.
    Labels,
}

/// How a function works.
pub(crate) enum Body {
    /// It computes, at once.
    Immediate(fn(&Call) -> Outcome),
    /// It waits, for a disk or a server: the other calls of the script go on.
    Waiting(fn(Call) -> BoxFuture<'static, Outcome>),
    /// It gives one value after another, and waits for each: what scripts loop over. It ends when the loop is left.
    Streaming(fn(&Call) -> Result<Flow, Failure>),
}

/// The values of a [`Body::Streaming`].
pub(crate) type Flow = BoxStream<'static, Outcome>;

/// How a call ends.
pub(crate) type Outcome = Result<Datum, Failure>;

/// A value between a script and a library.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// Data.
    Json(serde_json::Value),
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// The arguments, the grants, the content: a text without the name of the function.
    Plain(String),
    /// A server refused: an error value with fields.
    Answer(Box<Refusal>),
}

/// A parameter that must be given.
pub(crate) const fn required(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: true, doc }
}

/// A parameter that may be left out.
pub(crate) const fn optional(name: &'static str, kind: Type, doc: &'static str) -> Parameter {
    Parameter { name, kind, required: false, doc }
}

/// The library of this name.
pub(crate) fn find(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|it| it.name == name)
}

impl Library {
    /// There is no such function in it.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let (library, known) = (self.name, self.functions.iter().map(|it| it.name));
        format!("there is no {library}.{name}{}", did_you_mean(name, known, &format!("{library}.")))
    }
}

impl Function {
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
            Type::Name => "a text that is not empty",
            Type::Text => "a text",
            Type::Map => "a map",
            Type::List => "a list",
            Type::Count => "a whole number, 0 or more",
            Type::Duration => duration::EXPECTED,
            Type::Selector => "the name of a resource, such as \"pods\" or \"deployments.apps\"",
            Type::Object => {
                "an object or a reference to one: a map with `apiVersion`, `kind` and `metadata.name`, or ctx"
            }
            Type::Labels => "a text such as \"app=web,tier!=db\", or a map",
        }
    }
}

impl From<serde_json::Value> for Datum {
    fn from(value: serde_json::Value) -> Self {
        Datum::Json(value)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Plain(message)
    }
}

impl Failure {
    /// The same, with the function that failed.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Failure::Plain(message) => Failure::Plain(format!("{place}: {message}")),
            Failure::Answer(mut refusal) => {
                refusal.message = format!("{place}: {}", refusal.message);
                Failure::Answer(refusal)
            }
        }
    }
}
