//! Renders the classes of a custom resource in the syntax of `LuaCATS` and of Luau.

use std::fmt::Write as _;

use super::{CrdType, CustomKind, Field, FieldClass};
use crate::scripting::surface::{lua, luau};

/// The arguments of handlers of objects.
const CTX: &[&str] = &["ObjectCtx", "ChangeCtx", "EventCtx", "BackgroundCtx", "IndexCtx"];

impl CustomKind {
    /// Returns the class of `ctx` in handlers of this kind, in `LuaCATS`.
    pub(in crate::scripting::surface) fn ctx(&self, class: &str) -> String {
        format!("{}.{class}", self.kind)
    }

    /// Returns its classes in `LuaCATS`.
    pub(in crate::scripting::surface) fn lua(&self) -> String {
        let (spec, status, classes) = self.classes();
        let mut text = String::new();
        for class in &classes {
            self.lua_class(&mut text, class);
        }
        let (spec, status) = (self.lua_type(&spec), self.lua_type(&status));
        let (kind, version) = (&self.kind, self.api_version());
        // Writing to a string cannot fail.
        let _fits = write!(
            text,
            "\n---A {kind} of {version}.\n---@class {kind}: kopf.Object\n---@field spec {spec}\n---@field status? {status}\n"
        );
        for class in CTX {
            let (own, parent) = (self.ctx(class), lua::class_name(class));
            let _fits = write!(
                text,
                "\n---@class {own}: {parent}\n---@field body {kind}\n---@field spec {spec}\n---@field status {status}\n"
            );
        }
        text
    }

    fn lua_class(&self, text: &mut String, class: &FieldClass) {
        let doc = if class.doc.is_empty() { String::new() } else { format!("---{}\n", class.doc) };
        // Writing to a string cannot fail.
        let _fits = write!(text, "\n{doc}---@class {}.{}\n", self.kind, class.name);
        for Field { name, takes, certain, doc } in &class.fields {
            let optional = if *certain { "" } else { "?" };
            let name = if is_name(name) { name.clone() } else { format!("[{name:?}]") };
            let line = format!("---@field {name}{optional} {} {doc}", self.lua_type(takes));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if class.open {
            text.push_str("---@field [string] any\n");
        }
    }

    fn lua_type(&self, takes: &CrdType) -> String {
        match takes {
            CrdType::Any => "any".into(),
            CrdType::Text => "string".into(),
            CrdType::Integer => "integer".into(),
            CrdType::Number => "number".into(),
            CrdType::Boolean => "boolean".into(),
            CrdType::IntegerOrText => "integer|string".into(),
            CrdType::Words(words) => quoted(words).join("|"),
            CrdType::Class(name) => format!("{}.{name}", self.kind),
            CrdType::ListOf(item) => {
                let item = self.lua_type(item);
                if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
            }
            CrdType::MapOf(value) => format!("table<string, {}>", self.lua_type(value)),
        }
    }

    /// Returns its types in Luau, which handlers name: `function(ctx: KopfExampleChangeCtx)`.
    pub(in crate::scripting::surface) fn luau(&self) -> String {
        let (spec, status, classes) = self.classes();
        let mut text = String::new();
        for class in &classes {
            self.luau_class(&mut text, class);
        }
        let (spec, status) = (self.luau_type(&spec), self.luau_type(&status));
        let kind = &self.kind;
        for class in CTX {
            let parent = luau::class_name(class);
            // Writing to a string cannot fail.
            let _fits =
                write!(text, "\nexport type {kind}{class} = {parent}Of<{spec}, {status}>\n");
        }
        text
    }

    fn luau_class(&self, text: &mut String, class: &FieldClass) {
        // Writing to a string cannot fail.
        let _fits = write!(text, "\nexport type {} = {{\n", self.luau_name(&class.name));
        for Field { name, takes, certain, doc } in &class.fields {
            if !doc.is_empty() {
                let _fits = writeln!(text, "\t-- {doc}");
            }
            let name = if is_name(name) { name.clone() } else { format!("[{name:?}]") };
            let takes = self.luau_type(takes);
            let takes = if *certain { takes } else { format!("({takes})?") };
            let _fits = writeln!(text, "\t{name}: {takes},");
        }
        if class.open {
            text.push_str("\t[string]: any,\n");
        }
        text.push_str("}\n");
    }

    fn luau_name(&self, class: &str) -> String {
        format!("{}{}", self.kind, class.replace('.', ""))
    }

    fn luau_type(&self, takes: &CrdType) -> String {
        match takes {
            CrdType::Any => "any".into(),
            CrdType::Text => "string".into(),
            CrdType::Integer | CrdType::Number => "number".into(),
            CrdType::Boolean => "boolean".into(),
            CrdType::IntegerOrText => "number | string".into(),
            CrdType::Words(words) => quoted(words).join(" | "),
            CrdType::Class(name) => self.luau_name(name),
            CrdType::ListOf(item) => format!("{{ {} }}", self.luau_type(item)),
            CrdType::MapOf(value) => format!("{{ [string]: {} }}", self.luau_type(value)),
        }
    }
}

fn quoted(words: &[String]) -> Vec<String> {
    words.iter().map(|it| format!("{it:?}")).collect()
}

/// Returns whether a field can be written without brackets.
fn is_name(field: &str) -> bool {
    !field.is_empty()
        && !lua::RESERVED.contains(&field)
        && !field.starts_with(|it: char| it.is_ascii_digit())
        && field.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}
