//! The names that scripts can use: from the tables of the surface, and those of the languages.

pub(super) mod lua;
pub(super) mod rhai;

use std::{collections::BTreeSet, sync::LazyLock};

use super::types::{CATEGORIES, Ctx, Type};
use crate::logic::text::nearest;
use crate::scripting::surface::{Item, ItemShape, KWARGS, Section, Surface, Ty, ctx_class};

/// Maximum number of names among which the nearest one is searched.
const NAMES_MAX: usize = 1_000;

static SURFACE: LazyLock<Surface> = LazyLock::new(Surface::new);

/// The names of all methods of all classes.
static METHODS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let items = SURFACE.classes.iter().flat_map(|it| &it.items);
    items.filter(|it| matches!(it.shape, ItemShape::Method(_))).map(|it| it.name).collect()
});

/// Top-level fields of Kubernetes objects, in addition to those that `ctx.patch` names.
const TOP_FIELDS: &[&str] = &[
    "addressType",
    "aggregationRule",
    "apiVersion",
    "automountServiceAccountToken",
    "binaryData",
    "data",
    "endpoints",
    "imagePullSecrets",
    "immutable",
    "kind",
    "parameters",
    "ports",
    "provisioner",
    "roleRef",
    "rules",
    "secrets",
    "stringData",
    "subjects",
    "subsets",
    "type",
    "value",
    "webhooks",
];

/// Returns the library with this name, or `kopf`.
pub(super) fn section(name: &str) -> Option<&'static Section> {
    SURFACE.globals.iter().find(|it| it.name == name)
}

/// Returns the names of all libraries.
pub(super) fn sections<'a>() -> impl Iterator<Item = &'a str> {
    SURFACE.globals.iter().map(|it| it.name)
}

/// Returns the type of values of a class.
pub(super) fn class(name: &str) -> Type {
    match name {
        "Ctx" => return Type::Ctx(Ctx::PROBABLE),
        "ObjectCtx" => return Type::Ctx(Ctx::of_objects()),
        _ => {}
    }
    if let Some(category) = CATEGORIES.into_iter().find(|it| ctx_class(*it) == name) {
        return Type::Ctx(Ctx::of(category));
    }
    class_section(name).map_or(Type::Any, Type::Class)
}

/// Returns the type of a value of the surface.
pub(super) fn type_of(ty: Ty) -> Type {
    match ty {
        Ty::Text | Ty::Words(_) => Type::Text,
        Ty::Integer | Ty::Number => Type::Number,
        Ty::Class(name) => class(name),
        Ty::Maybe(inner) => type_of(*inner),
        Ty::ListOf(item) => Type::ListOf(item),
        Ty::List => Type::ListOf(&Ty::Any),
        Ty::Object => Type::Whole,
        Ty::Any
        | Ty::Nothing
        | Ty::Boolean
        | Ty::Duration
        | Ty::Map
        | Ty::Iterator
        | Ty::Either(_)
        | Ty::Function(_)
        | Ty::Handler(_) => Type::Any,
    }
}

/// Returns all classes of the surface.
pub(super) fn classes() -> impl Iterator<Item = &'static Section> {
    SURFACE.classes.iter()
}

/// Returns the items of a class and its parents.
pub(super) fn items(section: &'static Section) -> Vec<&'static Item> {
    let mut all: Vec<&Item> = section.items.iter().collect();
    let mut parent = section.parent;
    while let Some(section) =
        parent.and_then(|name| SURFACE.classes.iter().find(|it| it.name == name))
    {
        all.extend(&section.items);
        parent = section.parent;
    }
    all
}

/// Returns the class with this name.
pub(super) fn class_section(name: &str) -> Option<&'static Section> {
    SURFACE.classes.iter().find(|it| it.name == name)
}

/// Returns the fields of a `ctx`; those of all if its handler is not known.
pub(super) fn fields_of_ctx(ctx: Ctx) -> impl Iterator<Item = &'static Item> {
    let known: BTreeSet<&str> = ctx.categories().map(ctx_class).collect();
    let is_any = known.is_empty();
    let classes = classes().filter(move |it| {
        known.contains(it.name) || (is_any && matches!(it.name, "ChangeCtx" | "BackgroundCtx"))
    });
    classes.flat_map(items)
}

/// Returns all fields of `ctx`.
pub(super) fn kwargs() -> impl Iterator<Item = &'static str> {
    KWARGS.iter().map(|it| it.name)
}

/// Returns whether a class has a method with this name.
pub(super) fn is_method(name: &str) -> bool {
    METHODS.contains(name)
}

/// Returns whether Rhai itself has a function or a property with this name.
pub(super) fn is_of_rhai(name: &str) -> bool {
    rhai::find(name).is_some() || rhai::SYNTAX.contains(&name) || rhai::PROPERTIES.contains(&name)
}

/// Returns whether objects may have this top-level field.
pub(super) fn is_top_field(name: &str) -> bool {
    TOP_FIELDS.contains(&name)
}

/// Returns the known name that this one misspells: at most two letters differ, or one if it is short.
pub(super) fn typo<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = nearest::nearest(name, known)?;
    (nearest::errors(name, near) <= nearest::errors_max(name)).then_some(near)
}

/// Returns the hint for an unknown name.
pub(super) fn hint<'a>(
    prefix: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let known = known.into_iter().take(NAMES_MAX);
    nearest::nearest(name, known).map(|it| format!("did you mean `{prefix}{it}`?"))
}
