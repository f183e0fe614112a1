//! The types of values, as far as they are known.

use std::rc::Rc;

use super::schemas::SchemaPart;
use crate::logic::handlers::handler::{Category, Kind};
use crate::scripting::surface::{Item, Section, Ty};

/// A name in a library of Luau: a function with its minimum and maximum number of arguments, or a value.
pub(super) type Member = (&'static str, Option<(usize, usize)>);

/// The type of a value, as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// A value of an unknown type.
    Any,
    Text,
    Number,
    /// A function of this source.
    Function(usize),
    /// A library or `kopf`.
    Section(&'static Section),
    /// A table of names below a library: `kopf.on`.
    Names(Rc<str>, &'static [Item]),
    /// A value of a class of the surface.
    Class(&'static Section),
    /// The argument of a handler.
    Ctx(Ctx),
    /// A list of values.
    ListOf(&'static Ty),
    /// A function of the surface, with its path.
    Callable(Rc<str>, &'static Item),
    /// A library of Luau.
    Std(&'static str, &'static [Member]),
    /// A function of Luau with its minimum and maximum number of arguments.
    StdFunction(Rc<str>, (usize, usize)),
    /// A Kubernetes object, as `kube.get` returns it.
    Whole,
    /// The key of an item in a loop over a list, or over a value that is a list or a map.
    Place(bool),
    /// A part of the object, which is read-only.
    View,
    /// A part of an object with a known schema; whether it can be assigned to.
    Object(SchemaPart, bool),
    /// A table of the script with known names: the number of its variable.
    Own(usize),
    /// A module with known names.
    Module(usize),
}

/// The handlers that a `ctx` may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ctx {
    /// A bit for each category; 0: not known.
    categories: u8,
    /// The index of the kind of its object, if it is known.
    pub(super) kind: Option<usize>,
    /// The declaration of its handler, if it is the only one.
    pub(super) declared: Option<DeclaredHandler>,
}

/// The properties of a declaration that lints use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeclaredHandler {
    pub(super) kind: Kind,
    /// Whether options may filter the changes.
    pub(super) is_filtered: bool,
    /// Whether its attempts are limited.
    pub(super) is_bounded: bool,
}

/// All kinds of `ctx`.
pub(super) const CATEGORIES: [Category; 7] = [
    Category::Activity,
    Category::Indexing,
    Category::Watching,
    Category::Spawning,
    Category::Changing,
    Category::Admission,
    Category::Conversion,
];

impl Ctx {
    /// A value that is probably a `ctx`, by its name.
    pub(super) const PROBABLE: Ctx = Ctx { categories: 0, kind: None, declared: None };

    pub(super) fn of(category: Category) -> Self {
        let at = CATEGORIES.iter().position(|it| *it == category).unwrap_or_default();
        Ctx { categories: 1 << at, ..Ctx::PROBABLE }
    }

    /// Returns the `ctx` of filters: that of any handler of objects.
    pub(super) fn of_objects() -> Self {
        let all = CATEGORIES.iter().filter(|it| **it != Category::Activity);
        all.fold(Ctx::PROBABLE, |all, it| all.or(Ctx::of(*it)))
    }

    pub(super) fn is_certain(self) -> bool {
        self.categories != 0
    }

    fn or(self, other: Self) -> Self {
        let kind = self.kind.filter(|it| other.kind == Some(*it));
        let declared = self.declared.filter(|it| other.declared == Some(*it));
        Ctx { categories: self.categories | other.categories, kind, declared }
    }

    /// Returns the categories that it may belong to.
    pub(super) fn categories(self) -> impl Iterator<Item = Category> {
        let all = CATEGORIES.iter().enumerate();
        all.filter(move |(at, _)| self.categories & (1 << at) != 0).map(|(_, it)| *it)
    }
}

impl Type {
    /// Returns the type that covers both.
    pub(super) fn join(self, other: Type) -> Type {
        match (self, other) {
            (Type::Ctx(a), Type::Ctx(b)) if a.is_certain() && b.is_certain() => Type::Ctx(a.or(b)),
            (a, b) if a == b => a,
            _ => Type::Any,
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Type::Any, Type::Any)
            | (Type::Text, Type::Text)
            | (Type::Number, Type::Number)
            | (Type::Whole, Type::Whole)
            | (Type::View, Type::View) => true,
            (Type::Function(a), Type::Function(b))
            | (Type::Own(a), Type::Own(b))
            | (Type::Module(a), Type::Module(b)) => a == b,
            (Type::Section(a), Type::Section(b)) | (Type::Class(a), Type::Class(b)) => {
                a.name == b.name
            }
            (Type::Names(a, _), Type::Names(b, _))
            | (Type::Callable(a, _), Type::Callable(b, _))
            | (Type::StdFunction(a, _), Type::StdFunction(b, _)) => a == b,
            (Type::Place(a), Type::Place(b)) => a == b,
            (Type::Ctx(a), Type::Ctx(b)) => a == b,
            (Type::ListOf(a), Type::ListOf(b)) => a == b,
            (Type::Std(a, _), Type::Std(b, _)) => a == b,
            (Type::Object(a, its), Type::Object(b, others)) => a == b && its == others,
            _ => false,
        }
    }
}
