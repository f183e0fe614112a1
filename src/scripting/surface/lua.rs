//! The surface as `LuaCATS` definitions, which `lua-language-server` and `EmmyLua` understand.

use std::fmt::Write as _;

use super::{
    Callback, CustomKind, Item, Language, Parameter, Section, Shape, Signature, Surface, Ty,
    ctx_class,
};
use crate::logic::handler::Kind;

/// What stands before the definitions.
const HEADER: &str = "\
---@meta _
-- What Lua scripts of kopf can use, for editors: made by `kopf stubs lua`, not to be edited.
--
-- A handler that is declared with a name needs its type: `---@param ctx kopf.ChangeCtx`. Indexes are fields of `ctx` that only
-- your script knows; say so in it:
--
--     ---@class kopf.Ctx
--     ---@field my_index kopf.Index

---Seconds, or a text with a unit: `500ms`, `1.5s`, `10m`, `2h`, `1d`.
---@alias kopf.Duration number|string

---A Kubernetes object, as in YAML.
---@class kopf.Object
---@field apiVersion? string
---@field kind? string
---@field metadata? any
---@field [string] any

---A resource: `\"kopfexamples\"`, `\"kopfexamples.kopf.dev\"`, a kind, a short name, `kopf.EVERYTHING`, or a function of the resource.
---@alias kopf.Selector string|kopf.Marker|fun(resource: kopf.Resource): any
";

/// What Luau has beyond Lua 5.1.
const BUILTINS: &str = include_str!("luau_builtins.lua");

/// The words that are no names.
pub(super) const RESERVED: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The definitions, with the types of these kinds.
pub fn stubs(surface: &Surface, kinds: &[CustomKind]) -> String {
    let mut text = HEADER.to_owned();
    for class in &surface.classes {
        of_class(&mut text, class);
    }
    for kind in kinds {
        text.push_str(&kind.lua());
    }
    for global in &surface.globals {
        of_table(&mut text, global.name, global.doc, &global.items, kinds);
    }
    text.push('\n');
    text + BUILTINS
}

/// `kopf.Logger`, `kopf.Settings.posting`
pub(super) fn class_name(name: &str) -> String {
    if name.starts_with(|it: char| it.is_ascii_lowercase()) {
        format!("kopf.Settings.{name}")
    } else {
        format!("kopf.{name}")
    }
}

fn put(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn comment(text: &mut String, doc: &str) {
    for line in doc.lines() {
        put(text, &format!("---{line}"));
    }
}

fn of_class(text: &mut String, class: &Section) {
    text.push('\n');
    comment(text, class.doc);
    let name = class_name(class.name);
    let parent = class.parent.map(|it| format!(": {}", class_name(it))).unwrap_or_default();
    put(text, &format!("---@class {name}{parent}"));
    for item in class.items.iter().filter(|it| it.spoken.in_language(Language::Lua)) {
        if let Shape::Value(ty) = item.shape {
            let (optional, ty) = if let Ty::Maybe(inner) = ty { ("?", *inner) } else { ("", ty) };
            put(text, &format!("---@field {}{optional} {} {}", item.name, of(ty), item.doc));
        }
    }
    if let Some(others) = class.others {
        let key = if class.name == "Store" { "integer" } else { "any" };
        put(text, &format!("---@field [{key}] {}", of(others)));
    }
    if class.name == "Stopped" {
        put(text, "---@overload fun(): boolean");
    }
    put(text, &format!("local {} = {{}}", class.name));
    for item in class.items.iter().filter(|it| it.spoken.in_language(Language::Lua)) {
        if let Shape::Method(signature) = &item.shape {
            of_function(text, item, signature, &format!("function {}:{}", class.name, item.name));
        }
    }
}

fn of_table(text: &mut String, path: &str, doc: &str, items: &[Item], kinds: &[CustomKind]) {
    text.push('\n');
    comment(text, doc);
    if !path.contains('.') {
        put(text, &format!("---@class {path}"));
    }
    put(text, &format!("{path} = {{}}"));
    for item in items.iter().filter(|it| it.spoken.in_language(Language::Lua)) {
        let path = format!("{path}.{}", item.name);
        match &item.shape {
            Shape::Value(ty) => {
                text.push('\n');
                comment(text, item.doc);
                put(text, &format!("---@type {}", of(*ty)));
                put(text, &format!("{path} = nil"));
            }
            Shape::Table(items) => of_table(text, &path, item.doc, items, kinds),
            Shape::Function(signature) | Shape::Method(signature) => match signature.handler {
                Some(Ty::Handler(kind)) => declaring(text, (&path, item), (signature, kind), kinds),
                Some(_) | None => of_function(text, item, signature, &spelled(&path)),
            },
        }
    }
}

/// How the definition of a function begins.
fn spelled(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((table, name)) if RESERVED.contains(&name) => {
            format!("{table}[\"{name}\"] = function")
        }
        Some(_) | None => format!("function {path}"),
    }
}

/// The name of a parameter.
fn named(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

fn of_function(text: &mut String, item: &Item, signature: &Signature, spelled: &str) {
    let path = spelled.trim_start_matches("function ").replace(':', ".");
    let options_class = options(text, &path, &signature.options);
    text.push('\n');
    comment(text, item.doc);
    let mut names = Vec::new();
    for it in &signature.parameters {
        put(text, &parameter(it));
        names.push(named(it.name));
    }
    if let Some(class) = &options_class {
        let optional = if signature.options.iter().any(|it| it.required) { "" } else { "?" };
        put(text, &format!("---@param options{optional} {class}"));
        names.push("options".to_owned());
    }
    if let Some(rest) = signature.rest {
        put(text, &format!("---@param ... {} {}", of(rest.ty), rest.doc));
        names.push("...".to_owned());
    }
    if let Some(returns) = signature.returns {
        put(text, &format!("---@return {}", of(returns)));
    }
    overloads(text, signature, options_class.as_deref());
    put(text, &format!("{spelled}({}) end", names.join(", ")));
}

/// Parameters that may be left out come before the options: then the options take their place.
fn overloads(text: &mut String, signature: &Signature, class: Option<&str>) {
    let Some(class) = class else { return };
    let returns = signature.returns.map(|it| format!(": {}", of(it))).unwrap_or_default();
    let kept = |count: usize| -> Vec<String> {
        let kept = signature.parameters.iter().take(count);
        kept.map(|it| format!("{}: {}", named(it.name), accepted(it.ty))).collect()
    };
    let required = signature.parameters.iter().filter(|it| it.required).count();
    for count in required..signature.parameters.len() {
        let mut parameters = kept(count);
        parameters.push(format!("options: {class}"));
        put(text, &format!("---@overload fun({}){returns}", parameters.join(", ")));
    }
}

fn parameter(it: &Parameter) -> String {
    let optional = if it.required { "" } else { "?" };
    format!("---@param {}{optional} {} {}", named(it.name), accepted(it.ty), it.doc)
}

/// The type of a parameter: a plain table that a function gave may be an object.
fn accepted(ty: Ty) -> String {
    of(ty).replace("kopf.Object", "kopf.Object|table<string, any>")
}

/// The class of the options of a function, if it has any.
fn options(text: &mut String, path: &str, options: &[Parameter]) -> Option<String> {
    if options.is_empty() {
        return None;
    }
    let (table, name) = path.rsplit_once('.').unwrap_or(("kopf", path));
    let class = format!("{table}.options.{name}");
    text.push('\n');
    put(text, &format!("---The options of `{path}`."));
    put(text, &format!("---@class {class}"));
    for it in options {
        let optional = if it.required { "" } else { "?" };
        put(text, &format!("---@field {}{optional} {} {}", it.name, of(it.ty), it.doc));
    }
    Some(class)
}

/// A declaring function: every form of the selector, with options and without.
fn declaring(
    text: &mut String,
    (path, item): (&str, &Item),
    (signature, kind): (&Signature, Kind),
    kinds: &[CustomKind],
) {
    // `kopf.on.create` has the options of `kopf.on_create`.
    let own = format!("kopf.{}", kind.declared_by());
    let class = if path == own {
        options(text, path, &signature.options).unwrap_or_default()
    } else {
        format!("kopf.options.{}", kind.declared_by())
    };
    text.push('\n');
    comment(text, item.doc);
    let handler = of(Ty::Handler(kind));
    let handler = |ctx: &str| handler.replace(&class_name(ctx_class(kind.category())), ctx);
    let usual = class_name(ctx_class(kind.category()));
    let placed = signature.parameters.iter().map(|it| format!("{}: {}", it.name, of(it.ty)));
    let placed: Vec<_> = placed.collect();
    let mut forms = Vec::new();
    let mut form = |selectors: &[String], ctx: &str| {
        for options in [None, Some(format!("options: {class}"))] {
            let parameters = selectors.iter().cloned().chain(options);
            let handler = format!("handler: {}", handler(ctx));
            forms.push(parameters.chain([handler]).collect::<Vec<_>>().join(", "));
        }
    };
    if signature.selects {
        for custom in kinds {
            for selectors in custom.selectors() {
                form(&selectors, &custom.ctx(ctx_class(kind.category())));
            }
        }
        form(&["selector: kopf.Selector".into()], &usual);
        form(&["group: string".into(), "resource: string".into()], &usual);
        form(
            &["group: string".into(), "version: string".into(), "resource: string".into()],
            &usual,
        );
        forms.push(format!("options: {class}, handler: {}", handler(&usual)));
    } else {
        form(&placed, &usual);
    }
    for form in &forms {
        put(text, &format!("---@overload fun({form})"));
    }
    // The longest form for one selector is the one that is shown first.
    let mut first = if signature.selects { "selector, ".to_owned() } else { String::new() };
    if signature.selects {
        put(text, "---@param selector kopf.Selector");
    }
    for parameter in &signature.parameters {
        put(text, &format!("---@param {} {}", parameter.name, of(parameter.ty)));
        first.extend([parameter.name, ", "]);
    }
    put(text, &format!("---@param options {class}"));
    put(text, &format!("---@param handler {}", handler(&usual)));
    put(text, &format!("function {path}({first}options, handler) end"));
}

/// A type in the words of `LuaCATS`.
pub(super) fn of(ty: Ty) -> String {
    match ty {
        Ty::Any | Ty::Maybe(Ty::Any) => "any".into(),
        Ty::Nothing => "nil".into(),
        Ty::Boolean => "boolean".into(),
        Ty::Text => "string".into(),
        Ty::Words(words) => {
            words.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join("|")
        }
        Ty::Integer => "integer".into(),
        Ty::Number => "number".into(),
        Ty::Duration => "kopf.Duration".into(),
        Ty::Map => "table<string, any>".into(),
        Ty::List => "any[]".into(),
        Ty::ListOf(item) => {
            let is_long =
                matches!(item, Ty::Words(_) | Ty::Either(_) | Ty::Maybe(_) | Ty::Function(_));
            if is_long { format!("({})[]", of(*item)) } else { format!("{}[]", of(*item)) }
        }
        Ty::Object => "kopf.Object".into(),
        Ty::Class(name) => class_name(name),
        Ty::Iterator => "fun(): any".into(),
        Ty::Maybe(inner) => format!("{}|nil", of(*inner)),
        Ty::Either(all) => all.iter().map(|it| of(*it)).collect::<Vec<_>>().join("|"),
        Ty::Function(callback) => function(callback),
        Ty::Handler(kind) => format!("fun(ctx: {}): any", class_name(ctx_class(kind.category()))),
    }
}

fn function(callback: &Callback) -> String {
    let mut text = String::from("(fun(");
    for (index, (name, ty)) in callback.parameters.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Memory takes every text.
        let _fits = write!(text, "{comma}{name}: {}", of(*ty));
    }
    if callback.returns == Ty::Nothing {
        text + "))"
    } else {
        format!("{text}): {})", of(callback.returns))
    }
}
