//! The surface as a definition file of Luau, which luau-lsp and luau-analyze understand.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use super::{
    Callback, CustomKind, Item, Language, Parameter, Section, Shape, Signature, Surface, Ty,
    ctx_class,
};
use crate::logic::handler::Kind;

const HEADER: &str = "\
-- What Lua scripts of kopf can use, for the type checker of Luau: made by `kopf stubs luau`, not to be edited.
--
-- luau-lsp: --definitions=kopf.d.luau, or luau-lsp.types.definitionFiles in the settings of the editor.

-- Seconds, or a text with a unit: 500ms, 1.5s, 10m, 2h, 1d.
export type KopfDuration = number | string
-- A Kubernetes object, as in YAML.
export type KopfObject = { [string]: any }
export type KopfSelector = string | KopfMarker | ((resource: KopfResource) -> any)
";

/// What scripts have besides the built-ins of Luau.
const REST: &str = "\n-- Loads a module beside the script, or of the standard library.\ndeclare function require(name: string): any\n";

/// The words that are no names.
const RESERVED: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The definitions, with the types of these kinds.
pub fn stubs(surface: &Surface, kinds: &[CustomKind]) -> String {
    let classes: BTreeMap<&str, &Section> =
        surface.classes.iter().map(|it| (it.name, it)).collect();
    let mut text = HEADER.to_owned();
    for class in &surface.classes {
        of_class(&mut text, class, &classes);
    }
    for kind in kinds {
        text.push_str(&kind.luau());
    }
    for item in surface.globals.iter().flat_map(|it| &it.items) {
        options_class(&mut text, item);
    }
    for global in &surface.globals {
        text.push('\n');
        comment(&mut text, "", global.doc);
        add(&mut text, format_args!("declare {}: {}\n", global.name, table(&global.items, "")));
    }
    text + REST
}

/// `KopfLogger`, `KopfSettingsPosting`
pub(super) fn class_name(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if first.is_ascii_lowercase() => {
            format!("KopfSettings{}{}", first.to_ascii_uppercase(), letters.as_str())
        }
        Some(_) | None => format!("Kopf{name}"),
    }
}

fn add(text: &mut String, more: fmt::Arguments<'_>) {
    // Memory takes every text.
    let _fits = text.write_fmt(more);
}

fn comment(text: &mut String, indent: &str, doc: &str) {
    for line in doc.lines() {
        add(text, format_args!("{indent}-- {line}\n"));
    }
}

/// The items of a class and of those it is made of.
fn members<'a>(class: &'a Section, classes: &BTreeMap<&str, &'a Section>) -> Vec<&'a Item> {
    let parent = class.parent.and_then(|it| classes.get(it));
    let mut items = parent.map_or_else(Vec::new, |it| members(it, classes));
    items.extend(&class.items);
    items
}

fn of_class(text: &mut String, class: &Section, classes: &BTreeMap<&str, &Section>) {
    text.push('\n');
    comment(text, "", class.doc);
    let name = class_name(class.name);
    add(text, format_args!("export type {name} = {{\n"));
    for item in members(class, classes) {
        if !item.spoken.in_language(Language::Lua) {
            continue;
        }
        comment(text, "\t", item.doc);
        let ty = match &item.shape {
            Shape::Value(ty) => of(*ty),
            Shape::Function(signature) => overloads(signature, None),
            Shape::Method(signature) => overloads(signature, Some(&name)),
            Shape::Table(items) => table(items, "\t"),
        };
        add(text, format_args!("\t{}: {ty},\n", key(item.name)));
    }
    if let Some(others) = class.others {
        let index = if class.name == "Store" { "number" } else { "any" };
        add(text, format_args!("\t[{index}]: {},\n", of(others)));
    }
    let call = if class.name == "Stopped" { " & (() -> boolean)" } else { "" };
    add(text, format_args!("}}{call}\n"));
}

fn key(name: &str) -> String {
    if RESERVED.contains(&name) { format!("[\"{name}\"]") } else { name.to_owned() }
}

fn table(items: &[Item], indent: &str) -> String {
    let inner = format!("{indent}\t");
    let mut text = String::from("{\n");
    for item in items.iter().filter(|it| it.spoken.in_language(Language::Lua)) {
        comment(&mut text, &inner, item.doc);
        let ty = match &item.shape {
            Shape::Value(ty) => of(*ty),
            Shape::Table(items) => table(items, &inner),
            Shape::Function(signature) | Shape::Method(signature) => match signature.handler {
                Some(Ty::Handler(kind)) => declaring(signature, kind),
                Some(_) | None => overloads(signature, None),
            },
        };
        add(&mut text, format_args!("{inner}{}: {ty},\n", key(item.name)));
    }
    text + indent + "}"
}

/// The options of a declaring function have a type of their own, as they are long and in all forms of it.
fn options_class(text: &mut String, item: &Item) {
    let Some((signature, Ty::Handler(kind))) =
        item.signature().and_then(|it| Some((it, it.handler?)))
    else {
        return;
    };
    // `register` is `subhandler` by another name.
    if item.name != kind.declared_by() {
        return;
    }
    add(text, format_args!("\n-- The options of kopf.{}.\n", item.name));
    add(text, format_args!("export type {} = {{\n", options_name(kind)));
    for it in &signature.options {
        comment(text, "\t", it.doc);
        let optional = if it.required || it.ty == Ty::Any { "" } else { "?" };
        add(text, format_args!("\t{}: {}{optional},\n", key(it.name), grouped(it.ty)));
    }
    text.push_str("}\n");
}

/// `KopfOnCreateOptions`
fn options_name(kind: Kind) -> String {
    let words = kind.declared_by().split('_').map(|word| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|it| it.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    });
    format!("Kopf{}Options", words.collect::<String>())
}

fn options(all: &[Parameter]) -> String {
    let field = |it: &Parameter| {
        let optional = if it.required { "" } else { "?" };
        format!("{}: {}{optional}", key(it.name), grouped(it.ty))
    };
    format!("{{ {} }}", all.iter().map(field).collect::<Vec<_>>().join(", "))
}

fn parameter(it: &Parameter) -> String {
    let optional = if it.required || it.ty == Ty::Any { "" } else { "?" };
    let name = if RESERVED.contains(&it.name) { format!("{}_", it.name) } else { it.name.into() };
    format!("{name}: {}{optional}", grouped(it.ty))
}

/// All forms of a call, as the intersection of their types.
fn overloads(signature: &Signature, receiver: Option<&str>) -> String {
    let returns = signature.returns.map_or_else(|| "()".to_owned(), of);
    let required = signature.parameters.iter().filter(|it| it.required).count();
    let least = if signature.options.is_empty() { signature.parameters.len() } else { required };
    let mut forms = Vec::new();
    for count in (least..=signature.parameters.len()).rev() {
        let mut parameters: Vec<String> =
            receiver.map(|it| format!("self: {it}")).into_iter().collect();
        parameters.extend(signature.parameters.iter().take(count).map(parameter));
        if !signature.options.is_empty() {
            parameters.push(format!("options: {}?", options(&signature.options)));
        }
        parameters.extend(signature.rest.iter().map(|it| format!("...{}", grouped(it.ty))));
        forms.push(format!("({}) -> {returns}", parameters.join(", ")));
    }
    join(&forms)
}

fn join(forms: &[String]) -> String {
    match forms {
        [one] => one.clone(),
        many => many.iter().map(|it| format!("({it})")).collect::<Vec<_>>().join(" & "),
    }
}

fn declaring(signature: &Signature, kind: Kind) -> String {
    let handler = format!("handler: (ctx: {}) -> any", class_name(ctx_class(kind.category())));
    let options = format!("options: {}", options_name(kind));
    let placed: Vec<_> = signature.parameters.iter().map(parameter).collect();
    let placed: Vec<_> = placed.iter().map(String::as_str).collect();
    let selectors: &[&[&str]] = if signature.selects {
        &[
            &["selector: KopfSelector"],
            &["group: string", "resource: string"],
            &["group: string", "version: string", "resource: string"],
        ]
    } else {
        &[&placed]
    };
    let mut forms = Vec::new();
    for selectors in selectors {
        for options in [None, Some(options.as_str())] {
            let all: Vec<&str> =
                selectors.iter().copied().chain(options).chain([handler.as_str()]).collect();
            forms.push(format!("({}) -> ()", all.join(", ")));
        }
    }
    if signature.selects {
        forms.push(format!("({options}, {handler}) -> ()"));
    }
    join(&forms)
}

/// A type that can stand before a question mark.
fn grouped(ty: Ty) -> String {
    match ty {
        Ty::Words(_)
        | Ty::Either(_)
        | Ty::Maybe(_)
        | Ty::Function(_)
        | Ty::Handler(_)
        | Ty::Iterator => {
            format!("({})", of(ty))
        }
        Ty::Any
        | Ty::Nothing
        | Ty::Boolean
        | Ty::Text
        | Ty::Integer
        | Ty::Number
        | Ty::Duration
        | Ty::Map
        | Ty::List
        | Ty::ListOf(_)
        | Ty::Object
        | Ty::Class(_) => of(ty),
    }
}

/// A type in the words of Luau.
fn of(ty: Ty) -> String {
    match ty {
        Ty::Any | Ty::Maybe(Ty::Any) => "any".into(),
        Ty::Nothing => "nil".into(),
        Ty::Boolean => "boolean".into(),
        Ty::Text => "string".into(),
        Ty::Words(words) => {
            words.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(" | ")
        }
        Ty::Integer | Ty::Number => "number".into(),
        Ty::Duration => "KopfDuration".into(),
        Ty::Map => "{ [string]: any }".into(),
        Ty::List => "{ any }".into(),
        Ty::ListOf(item) => format!("{{ {} }}", of(*item)),
        Ty::Object => "KopfObject".into(),
        Ty::Class(name) => class_name(name),
        Ty::Iterator => "() -> any".into(),
        Ty::Maybe(inner) => format!("{}?", grouped(*inner)),
        Ty::Either(all) => all.iter().map(|it| grouped(*it)).collect::<Vec<_>>().join(" | "),
        Ty::Function(callback) => function(callback),
        Ty::Handler(kind) => format!("(ctx: {}) -> any", class_name(ctx_class(kind.category()))),
    }
}

fn function(callback: &Callback) -> String {
    let parameters = callback.parameters.iter().map(|(name, ty)| format!("{name}: {}", of(*ty)));
    let parameters: Vec<_> = parameters.collect();
    let returns = if callback.returns == Ty::Nothing { "()".into() } else { of(callback.returns) };
    format!("({}) -> {returns}", parameters.join(", "))
}
