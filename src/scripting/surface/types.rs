//! The types of values, which the reference and the editor stubs of each language render.

use crate::logic::handlers::handler::{Category, Kind};
use crate::scripting::functions;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A value of any type.
    Any,
    /// No value: nil / `()`.
    Nothing,
    /// A boolean: true or false.
    Boolean,
    /// A string of any content.
    Text,
    /// One of these strings.
    Words(&'static [&'static str]),
    /// A number without a fraction.
    Integer,
    /// An integer or a float.
    Number,
    /// Seconds, or a string with a unit such as `"10m"`.
    Duration,
    /// A map with string keys.
    Map,
    /// A list of any values.
    List,
    /// A list of values of this type.
    ListOf(&'static Ty),
    /// A Kubernetes object, as in YAML.
    Object,
    /// A host value with members: the name of a class of the surface.
    Class(&'static str),
    /// An iterator, for a loop.
    Iterator,
    /// A value of this type, or nil.
    Maybe(&'static Ty),
    /// A value of one of these types.
    Either(&'static [Ty]),
    /// A function of the script.
    Function(&'static Callback),
    /// The function of a handler of this kind.
    Handler(Kind),
}

/// A function that a script passes.
#[derive(Debug, PartialEq, Eq)]
pub struct Callback {
    /// The names and types of its arguments, in order.
    pub parameters: &'static [(&'static str, Ty)],
    /// The type of its result.
    pub returns: Ty,
}

impl Ty {
    /// Returns the description for the reference, such as "a string" or "a list of strings".
    pub fn told(self) -> String {
        match self {
            Ty::Any => "any value".into(),
            Ty::Nothing => "nil".into(),
            Ty::Boolean => "true or false".into(),
            Ty::Text => "a string".into(),
            Ty::Words(words) => {
                let quoted: Vec<_> = words.iter().map(|it| format!("`\"{it}\"`")).collect();
                quoted.join(" or ")
            }
            Ty::Integer => "an integer".into(),
            Ty::Number => "a number".into(),
            Ty::Duration => "seconds or a duration such as `\"10m\"`".into(),
            Ty::Map => "a map".into(),
            Ty::List => "a list".into(),
            Ty::ListOf(item) => format!("a list, each item: {}", item.told()),
            Ty::Object => "a Kubernetes object".into(),
            Ty::Class(name) => format!("`{name}`"),
            Ty::Iterator => "an iterator, for a loop".into(),
            Ty::Maybe(inner) => format!("{}, or nil", inner.told()),
            Ty::Either(all) => all.iter().map(|it| it.told()).collect::<Vec<_>>().join(", or "),
            Ty::Function(callback) => {
                let names: Vec<_> = callback.parameters.iter().map(|(name, _)| *name).collect();
                let told = format!("a function of `({})`", names.join(", "));
                if callback.returns == Ty::Nothing {
                    told
                } else {
                    format!("{told} that returns {}", callback.returns.told())
                }
            }
            Ty::Handler(_) => "a function of `ctx`".into(),
        }
    }
}

/// Returns the class of `ctx` in handlers of this category.
pub fn ctx_class(category: Category) -> &'static str {
    match category {
        Category::Activity => "ActivityCtx",
        Category::Indexing => "IndexCtx",
        Category::Watching => "EventCtx",
        Category::Spawning => "BackgroundCtx",
        Category::Changing => "ChangeCtx",
        Category::Admission => "AdmissionCtx",
        Category::Conversion => "ConversionCtx",
    }
}

/// The functions that libraries take.
const CALLBACK: Callback = Callback { parameters: &[("item", Ty::Any)], returns: Ty::Any };

/// The function of `lists.reduce`.
pub(super) const COMBINING: Callback =
    Callback { parameters: &[("so_far", Ty::Any), ("item", Ty::Any)], returns: Ty::Any };

/// The predicate of `kube.wait`.
const PREDICATE: Callback = Callback { parameters: &[("object", Ty::Any)], returns: Ty::Any };

impl From<functions::types::Type> for Ty {
    fn from(it: functions::types::Type) -> Ty {
        match it {
            functions::types::Type::Any => Ty::Any,
            functions::types::Type::Boolean => Ty::Boolean,
            functions::types::Type::Name
            | functions::types::Type::Text
            | functions::types::Type::Bytes => Ty::Text,
            functions::types::Type::Map => Ty::Map,
            functions::types::Type::Duration => Ty::Duration,
            functions::types::Type::Object => Ty::Object,
            functions::types::Type::Selector | functions::types::Type::Labels => {
                Ty::Either(&[Ty::Text, Ty::Map])
            }
            functions::types::Type::List => Ty::List,
            functions::types::Type::Integer | functions::types::Type::Count => Ty::Integer,
            functions::types::Type::Number => Ty::Number,
            functions::types::Type::Function => Ty::Function(&CALLBACK),
            functions::types::Type::Test => Ty::Either(&[Ty::Text, Ty::Function(&PREDICATE)]),
            functions::types::Type::Nothing => Ty::Nothing,
        }
    }
}
