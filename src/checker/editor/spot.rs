//! The information about one position of a script.

use std::collections::BTreeMap;

use super::messages::{CURSOR, Completion, CompletionKind};
use crate::checker::{
    infer::{
        Exports, Program, SourceText,
        spot::{Spot, SpotKind, offset},
    },
    known,
    schemas::SchemaPart,
    types::Type,
};
use crate::scripting::{
    Language,
    surface::{Documented, Item, ItemShape, Section, Surface, entry, section_page},
};

/// All sources of a script.
pub(super) struct Context<'c, 'a> {
    pub(super) texts: &'c [(SourceText<'a>, Vec<&'a str>)],
    pub(super) program: &'c Program<'a>,
}

impl<'a> Context<'_, 'a> {
    fn language(&self) -> Language {
        self.texts.first().map_or(Language::Lua, |(text, _)| text.language)
    }

    /// Returns the source that contains a name, and its offset there.
    fn place(&self, name: &'a str) -> Option<(String, usize)> {
        self.texts
            .iter()
            .find_map(|(text, _)| Some((text.file.clone(), offset(text.content, name)?)))
    }
}

/// Returns the names that fit at a position.
pub(super) fn completions(spot: &Spot<'_>, context: &Context<'_, '_>) -> Vec<Completion> {
    let mut all = BTreeMap::new();
    let mut add = |it: Completion| {
        all.entry(it.label.clone()).or_insert(it);
    };
    match &spot.kind {
        SpotKind::Member(holder) => members(holder, context, &mut add),
        SpotKind::Name(_, visible, _) => {
            for name in visible.iter().filter(|it| **it != CURSOR && **it != spot.name) {
                add(plain(name, CompletionKind::Variable));
            }
            for name in known::sections() {
                let doc = known::section(name).map_or("", |it| it.doc);
                let it = plain(name, CompletionKind::Module);
                add(Completion { doc: doc.to_owned(), ..it });
            }
            if context.language() == Language::Lua {
                for (name, _) in known::lua::FUNCTIONS {
                    add(plain(name, CompletionKind::Function));
                }
                for (name, _) in known::lua::LIBRARIES {
                    add(plain(name, CompletionKind::Module));
                }
            } else {
                for (name, _) in known::rhai::FUNCTIONS {
                    add(plain(name, CompletionKind::Function));
                }
            }
        }
        SpotKind::Option(signature) => {
            for it in &signature.options {
                let option = plain(it.name, CompletionKind::Field);
                add(Completion { detail: it.ty.told(), doc: it.doc.to_owned(), ..option });
            }
        }
        SpotKind::Selector => {
            for kind in context.program.knowledge.kinds.iter() {
                let Some(name) = kind.names.first() else { continue };
                let group = if kind.group.is_empty() { "" } else { "/" };
                let detail = format!("{}{group}{}", kind.group, kind.version);
                let it = plain(name, CompletionKind::Resource);
                add(Completion { detail, ..it });
            }
        }
    }
    all.into_values().collect()
}

fn plain(label: &str, kind: CompletionKind) -> Completion {
    Completion { label: label.to_owned(), kind, detail: String::new(), doc: String::new() }
}

fn of_item(item: &Item) -> Completion {
    let (kind, detail) = match &item.shape {
        ItemShape::Value(ty) => (CompletionKind::Field, ty.told()),
        ItemShape::Function(signature) | ItemShape::Method(signature) => {
            (CompletionKind::Function, signature.told())
        }
        ItemShape::Table(_) => (CompletionKind::Module, String::new()),
    };
    let doc = item.doc.to_owned();
    Completion { label: item.name.to_owned(), kind, detail, doc }
}

fn members(holder: &Type, context: &Context<'_, '_>, add: &mut dyn FnMut(Completion)) {
    let language = context.language();
    let mut items = |all: &mut dyn Iterator<Item = &'static Item>| {
        for item in all.filter(|it| it.spoken.in_language(language)) {
            add(of_item(item));
        }
    };
    match holder {
        Type::Section(section) => items(&mut section.items.iter()),
        Type::Names(_, all) => items(&mut all.iter()),
        Type::Class(section) => items(&mut known::items(section).into_iter()),
        Type::Ctx(ctx) => {
            items(&mut known::fields_of_ctx(*ctx));
            for index in context.program.knowledge.indexes.iter().flat_map(|it| it.iter()) {
                add(plain(index, CompletionKind::Field));
            }
        }
        Type::Std(_, all) => {
            for (name, arguments) in *all {
                let kind = if arguments.is_some() {
                    CompletionKind::Function
                } else {
                    CompletionKind::Field
                };
                add(plain(name, kind));
            }
        }
        Type::Text if language == Language::Lua => {
            let strings = known::lua::LIBRARIES.iter().find(|(name, _)| *name == "string");
            for (name, _) in strings.map_or(&[][..], |(_, it)| *it) {
                add(plain(name, CompletionKind::Function));
            }
        }
        Type::Object(schema, writes) => {
            for (name, detail, doc) in schema.fields() {
                add(Completion { label: name, kind: CompletionKind::Field, detail, doc });
            }
            if *writes
                && schema.is_root()
                && let Some(patch) = known::class_section("Patch")
            {
                for item in known::items(patch) {
                    add(of_item(item));
                }
            }
        }
        Type::Module(module) => {
            let exports = context.program.exports.get(*module);
            for name in exports.into_iter().flat_map(Exports::names) {
                add(plain(name, CompletionKind::Function));
            }
        }
        Type::Any
        | Type::Text
        | Type::Number
        | Type::Function(_)
        | Type::ListOf(_)
        | Type::Callable(..)
        | Type::StdFunction(..)
        | Type::Whole
        | Type::Place(_)
        | Type::View
        | Type::Own(_) => {}
    }
}

/// Returns the documentation of a position, with its span.
pub(super) fn documentation(
    spot: &Spot<'_>,
    context: &Context<'_, '_>,
) -> Option<(String, usize, usize)> {
    let text = match &spot.kind {
        SpotKind::Member(holder) => of_member(holder, spot.name, context)?,
        SpotKind::Name(Type::Section(section) | Type::Class(section), ..) => section_page(section),
        SpotKind::Name(Type::Ctx(_), ..) => of_name("ctx")?,
        SpotKind::Name(Type::Callable(path, item), ..) => entry(path, item),
        SpotKind::Name(Type::StdFunction(path, (least, most)), ..) => {
            of_language(path, *least, *most)
        }
        SpotKind::Name(..) | SpotKind::Selector => return None,
        SpotKind::Option(signature) => {
            let all = signature.options.iter().chain(&signature.parameters);
            let option = all.into_iter().find(|it| it.name == spot.name)?;
            format!("**{}**: {}\n\n{}", option.name, option.ty.told(), option.doc)
        }
    };
    Some((text, spot.span.at, spot.span.len))
}

fn of_language(path: &str, least: usize, most: usize) -> String {
    let count = match most {
        usize::MAX => format!("at least {least}"),
        _ if least == most => least.to_string(),
        _ => format!("{least} to {most}"),
    };
    format!("**{path}**: a function of Luau; arguments: {count}")
}

fn of_name(name: &str) -> Option<String> {
    let surface = Surface::new();
    let found = surface.find(name);
    let first = found.first()?;
    Some(match first {
        Documented::Section(it) => section_page(it),
        Documented::Item(path, it) => entry(path, it),
    })
}

fn of_member(holder: &Type, name: &str, context: &Context<'_, '_>) -> Option<String> {
    let item = |all: Vec<&'static Item>| all.into_iter().find(|it| it.name == name);
    let spoken = |section: &Section| section.name.to_lowercase();
    match holder {
        Type::Section(section) => {
            let it = item(section.items.iter().collect())?;
            Some(entry(&format!("{}.{name}", section.name), it))
        }
        Type::Names(path, all) => {
            Some(entry(&format!("{path}.{name}"), item(all.iter().collect())?))
        }
        Type::Class(section) => {
            Some(entry(&format!("{}.{name}", spoken(section)), item(known::items(section))?))
        }
        Type::Ctx(ctx) => {
            Some(entry(&format!("ctx.{name}"), item(known::fields_of_ctx(*ctx).collect())?))
        }
        Type::Std(library, all) => match all.iter().find(|(it, _)| *it == name)? {
            (_, Some((least, most))) => {
                Some(of_language(&format!("{library}.{name}"), *least, *most))
            }
            (_, None) => None,
        },
        Type::Object(schema, _) => of_field(schema, name),
        Type::Text if context.language() == Language::Lua => {
            let strings = known::lua::LIBRARIES.iter().find(|(it, _)| *it == "string")?.1;
            let (_, arguments) = strings.iter().find(|(it, _)| *it == name)?;
            let (least, most) = (*arguments)?;
            Some(of_language(&format!("string.{name}"), least, most))
        }
        Type::Any
        | Type::Text
        | Type::Number
        | Type::Function(_)
        | Type::ListOf(_)
        | Type::Callable(..)
        | Type::StdFunction(..)
        | Type::Whole
        | Type::Place(_)
        | Type::View
        | Type::Own(_)
        | Type::Module(_) => None,
    }
}

fn of_field(schema: &SchemaPart, name: &str) -> Option<String> {
    let (name, detail, doc) = schema.fields().into_iter().find(|(it, ..)| it == name)?;
    Some(format!("**{name}**: {detail}\n\n{doc}").trim_end().to_owned())
}

/// Returns the file and the offset where the name at a position is defined.
pub(super) fn definition<'a>(
    spot: &Spot<'a>,
    context: &Context<'_, 'a>,
) -> Option<(String, usize)> {
    let known = |names: &std::collections::BTreeSet<&'a str>| names.get(spot.name).copied();
    match &spot.kind {
        SpotKind::Name(Type::Module(module), ..) => {
            Some((context.program.files.get(*module)?.clone(), 0))
        }
        SpotKind::Name(_, _, Some(at)) => Some((String::new(), *at)),
        SpotKind::Name(..) => known(&context.program.globals).and_then(|it| context.place(it)),
        SpotKind::Member(Type::Module(module)) => {
            let (text, _) = context.texts.get(*module)?;
            let name = context.program.exports.get(*module)?.find(spot.name)?;
            Some((text.file.clone(), offset(text.content, name)?))
        }
        SpotKind::Member(Type::Any | Type::Own(_)) => {
            known(&context.program.fields).and_then(|it| context.place(it))
        }
        SpotKind::Member(_) | SpotKind::Option(_) | SpotKind::Selector => None,
    }
}
