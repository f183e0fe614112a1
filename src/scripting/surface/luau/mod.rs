//! The surface as a definition file of Luau, which luau-lsp and luau-analyze understand.
//!
//! Both solvers of its type checker are to find mistakes and nothing else. That decides the forms: one type for each function,
//! not one for each form of a call, as the new solver looks into tables that are passed only then; no `read` fields, which the
//! old one refuses; callable values by a metatable, as a table that is a function too has no fields in the new one.

mod calls;
mod types;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use super::{CustomKind, Item, Language, Parameter, Section, Shape, Signature, Surface, Ty};
pub(super) use types::class_name;

const HEADER: &str = "\
-- What Lua scripts of kopf can use, for the type checker of Luau: made by `kopf stubs luau`, not to be edited.
--
-- luau-lsp: --definitions:@kopf=kopf.d.luau, or luau-lsp.types.definitionFiles in the settings of the editor.

--- Seconds, or a text with a unit: 500ms, 1.5s, 10m, 2h, 1d.
export type KopfDuration = number | string
--- A Kubernetes object, as in YAML.
export type KopfObject = { [string]: any }
--- A resource: `\"kopfexamples\"`, `\"kopfexamples.kopf.dev\"`, a kind, a short name, `kopf.EVERYTHING`, or a function of the resource.
export type KopfSelector = string | KopfMarker | ((resource: KopfResource) -> ...any)
--- A function of a `ctx` that the script knows better, such as one with the indexes of the script: twice, since the checker
--- would otherwise not know which function gives `ctx` its type.
export type KopfFunction = ((ctx: never) -> ...any) & ((ctx: never) -> ...any)
";

/// What scripts have besides the built-ins of Luau.
const REST: &str = "\n--- Loads a module beside the script, or of the standard library.\ndeclare function require(name: string): any\n";

/// The words that are no names.
const RESERVED: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The fields that the definition of a custom resource gives types to.
const OF_KIND: &[(&str, &str)] = &[("spec", "Spec"), ("status", "Status")];

/// The definitions, with the types of these kinds.
pub fn stubs(surface: &Surface, kinds: &[CustomKind]) -> String {
    let classes: BTreeMap<&str, &Section> =
        surface.classes.iter().map(|it| (it.name, it)).collect();
    let mut text = HEADER.to_owned();
    // A type with parameters takes types that are known by then only: those of `ctx` come last.
    let (of_ctx, others): (Vec<_>, Vec<_>) = surface.classes.iter().partition(|it| is_ctx(it));
    for class in others.into_iter().chain(of_ctx) {
        of_class(&mut text, class, &classes);
    }
    for kind in kinds {
        text.push_str(&kind.luau());
    }
    for global in &surface.globals {
        for item in &global.items {
            options_class(&mut text, global.name, item);
        }
    }
    for global in &surface.globals {
        text.push('\n');
        comment(&mut text, "", global.doc);
        let items = table(global.name, &global.items, "");
        add(&mut text, format_args!("declare {}: {items}\n", global.name));
    }
    text + REST
}

fn add(text: &mut String, more: fmt::Arguments<'_>) {
    // Memory takes every text.
    let _fits = text.write_fmt(more);
}

fn comment(text: &mut String, indent: &str, doc: &str) {
    for line in doc.lines() {
        add(text, format_args!("{indent}--- {line}\n"));
    }
}

fn is_ctx(class: &Section) -> bool {
    class.name.ends_with("Ctx")
}

/// The items of a class and of those it is made of.
fn members<'a>(class: &'a Section, classes: &BTreeMap<&str, &'a Section>) -> Vec<&'a Item> {
    let parent = class.parent.and_then(|it| classes.get(it));
    let mut items = parent.map_or_else(Vec::new, |it| members(it, classes));
    items.extend(&class.items);
    items.retain(|it| it.spoken.in_language(Language::Lua));
    items
}

fn of_class(text: &mut String, class: &Section, classes: &BTreeMap<&str, &Section>) {
    text.push('\n');
    comment(text, "", class.doc);
    let name = class_name(class.name);
    let members = members(class, classes);
    if members.is_empty() && class.others.is_none() {
        // As a table without fields, it would be any table.
        add(text, format_args!("declare extern type {name} with\nend\n"));
        return;
    }
    let generic = members.iter().any(|it| it.name == "spec") && is_ctx(class);
    let mut fields = String::from("{\n");
    for item in members {
        comment(&mut fields, "\t", item.doc);
        let of_kind = OF_KIND.iter().find(|(field, _)| generic && *field == item.name);
        let ty = match (&item.shape, of_kind) {
            (_, Some((_, parameter))) => (*parameter).to_owned(),
            (Shape::Value(ty), None) => types::given(*ty),
            (Shape::Function(signature), None) => calls::function("", item, signature, None),
            (Shape::Method(signature), None) => calls::function("", item, signature, Some(&name)),
            (Shape::Table(items), None) => table("", items, "\t"),
        };
        add(&mut fields, format_args!("\t{}: {ty},\n", key(item.name)));
    }
    if let Some(others) = class.others {
        let index = if class.name == "Store" { "number" } else { "any" };
        add(&mut fields, format_args!("\t[{index}]: {},\n", types::given(others)));
    }
    fields.push('}');
    if generic {
        add(text, format_args!("export type {name}Of<Spec, Status> = {fields}\n"));
        let map = types::given(Ty::Map);
        add(text, format_args!("export type {name} = {name}Of<{map}, {map}>\n"));
    } else if class.name == "Stopped" {
        let callable = "{} :: { __call: (self: any) -> boolean }";
        let callable = format!("typeof(setmetatable({{}} :: {fields}, {callable}))");
        add(text, format_args!("export type {name} = {callable}\n"));
    } else {
        add(text, format_args!("export type {name} = {fields}\n"));
    }
    if is_ctx(class) {
        let handler = types::handler_name(class.name);
        let function = format!("((ctx: {name}) -> ...any) | KopfFunction");
        add(text, format_args!("export type {handler} = {function}\n"));
    }
}

fn key(name: &str) -> String {
    if RESERVED.contains(&name) { format!("[\"{name}\"]") } else { name.to_owned() }
}

fn table(path: &str, items: &[Item], indent: &str) -> String {
    let inner = format!("{indent}\t");
    let mut text = String::from("{\n");
    for item in items.iter().filter(|it| it.spoken.in_language(Language::Lua)) {
        comment(&mut text, &inner, item.doc);
        let ty = match &item.shape {
            Shape::Value(ty) => types::given(*ty),
            Shape::Table(items) => table(&format!("{path}.{}", item.name), items, &inner),
            Shape::Function(signature) | Shape::Method(signature) => match signature.handler {
                Some(Ty::Handler(kind)) => calls::declaring(signature, kind),
                Some(_) | None => calls::function(path, item, signature, None),
            },
        };
        add(&mut text, format_args!("{inner}{}: {ty},\n", key(item.name)));
    }
    text + indent + "}"
}

/// The options of a function have a type of their own: they are long, and several places of the call may have them.
fn options_class(text: &mut String, path: &str, item: &Item) {
    let Some(signature) = item.signature() else { return };
    let name = match signature.handler {
        // `register` is `subhandler` by another name.
        Some(Ty::Handler(kind)) if item.name != kind.declared_by() => return,
        Some(Ty::Handler(kind)) => types::options_name(&["kopf", kind.declared_by()]),
        Some(_) | None if signature.options.is_empty() => return,
        Some(_) | None => types::options_name(&[path, item.name]),
    };
    add(text, format_args!("\n--- The options of {path}.{}.\n", item.name));
    add(text, format_args!("export type {name} = {{\n"));
    for Parameter { name, ty, required, doc } in &signature.options {
        comment(text, "\t", doc);
        let optional = if *required { "" } else { "?" };
        add(text, format_args!("\t{}: {}{optional},\n", key(name), types::option(*ty)));
    }
    // Without it, a misspelled option would be one more field, which tables may have.
    text.push_str("\t[string]: nil,\n}\n");
}
