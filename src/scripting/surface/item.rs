//! The vocabulary of the surface: sections, items, signatures, languages.

use std::ops::RangeInclusive;

use super::types::Ty;
use crate::scripting::{functions::kopf::Body, terms::Language};

/// A global, a table in it, or a class of values.
#[derive(Clone, Debug)]
pub struct Section {
    /// The name in scripts (`kopf`, `kopf.on`), or the name of a class (`Logger`).
    pub name: &'static str,
    /// The documentation, in Markdown.
    pub doc: &'static str,
    /// The items, in the order of the reference.
    pub items: Vec<Item>,
    /// The type of values under any other key, if other keys are possible.
    pub others: Option<Ty>,
    /// A class whose members this class also has.
    pub parent: Option<&'static str>,
}

/// One name in a section.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name without its path.
    pub name: &'static str,
    /// The documentation; its first sentence is the summary.
    pub doc: &'static str,
    /// A value, a function, a method or a table.
    pub shape: ItemShape,
    /// The languages that have it.
    pub spoken: Spoken,
}

/// The kind of an item.
#[derive(Clone, Debug)]
pub enum ItemShape {
    /// A value of this type.
    Value(Ty),
    /// A function below a global.
    Function(Signature),
    /// A method of a value: `value:name(…)` in Lua, `value.name(…)` in Rhai.
    Method(Signature),
    /// A table with further names.
    Table(Vec<Item>),
}

/// The signature of a function or a method.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The positional parameters, in order.
    pub parameters: Vec<Parameter>,
    /// A parameter that can follow them, any number of times.
    pub rest: Option<Parameter>,
    /// The options, in a map after the parameters.
    pub options: Vec<Parameter>,
    /// Whether resource selectors come first: one to three strings, a marker or a function.
    pub selects: bool,
    /// The type of the handler function, which comes last.
    pub handler: Option<Ty>,
    /// The type of the result; `None` if there is no result.
    pub returns: Option<Ty>,
}

/// A parameter, or an option.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name, which options have in scripts, too.
    pub name: &'static str,
    /// The type that is accepted.
    pub ty: Ty,
    /// Whether it is required.
    pub required: bool,
    /// The documentation, in one line.
    pub doc: &'static str,
}

/// The languages that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spoken {
    /// Both languages have it.
    #[default]
    Both,
    /// Only this one; a part of the language stands for the name in the other one.
    Only(Language, &'static str),
    /// No language yet: the name exists, and calling it is an error that says so.
    Later,
}

impl Spoken {
    /// Returns whether this language has the name.
    pub fn in_language(self, language: Language) -> bool {
        match self {
            Spoken::Both => true,
            Spoken::Only(only, _) => language == only,
            Spoken::Later => false,
        }
    }

    /// Returns what the documentation says about it; empty for a name of both languages.
    pub fn note(self) -> String {
        match self {
            Spoken::Both => String::new(),
            Spoken::Only(Language::Lua, instead) => format!("Only in Lua; in Rhai: {instead}."),
            Spoken::Only(Language::Rhai, instead) => format!("Only in Rhai; in Lua: {instead}."),
            Spoken::Later => "Not available yet.".to_owned(),
        }
    }
}

impl Section {
    /// Returns a section of entries.
    pub(super) fn of(name: &'static str, doc: &'static str, entries: &[Entry]) -> Self {
        let items = entries.iter().map(Item::of).collect();
        Section { name, doc, items, others: None, parent: None }
    }
}

impl Item {
    pub(super) fn of(entry: &Entry) -> Self {
        let shape = match entry.form {
            EntryForm::Value(ty) => ItemShape::Value(ty),
            EntryForm::Function(call) => ItemShape::Function(Signature::of(&call)),
            EntryForm::Method(call) => ItemShape::Method(Signature::of(&call)),
        };
        Item { name: entry.name, doc: entry.doc, shape, spoken: entry.spoken }
    }

    /// Returns the signature of a function or a method.
    pub fn signature(&self) -> Option<&Signature> {
        match &self.shape {
            ItemShape::Function(signature) | ItemShape::Method(signature) => Some(signature),
            ItemShape::Value(_) | ItemShape::Table(_) => None,
        }
    }
}

impl Signature {
    pub(super) fn of(call: &CallSignature) -> Self {
        Signature {
            parameters: call.parameters.to_vec(),
            rest: call.rest,
            options: call.options.to_vec(),
            selects: false,
            handler: None,
            returns: call.returns,
        }
    }

    /// Renders the parameters: `(objects, [owner], [options])`.
    pub fn told(&self) -> String {
        let mut told = Vec::new();
        if self.selects {
            told.push("selector…".to_owned());
        }
        let bracket =
            |name: &str, required| if required { name.to_owned() } else { format!("[{name}]") };
        told.extend(self.parameters.iter().map(|it| bracket(it.name, it.required)));
        told.extend(self.rest.iter().map(|it| format!("[{}…]", it.name)));
        if !self.options.is_empty() {
            told.push(bracket("options", self.options.iter().any(|it| it.required)));
        }
        if self.handler.is_some() {
            told.push("function".to_owned());
        }
        format!("({})", told.join(", "))
    }
}

impl Item {
    /// Returns an example of a declaration in Lua and in Rhai; `None` for other names.
    pub fn examples(&self, path: &str) -> Option<[(&'static str, String); 2]> {
        let signature = self.signature()?;
        signature.handler?;
        let scoped = path.replace('.', "::");
        let selector = match signature.parameters.is_empty() {
            false => "\"it answers\", ",
            true if signature.selects => "\"kopfexamples\", ",
            true => "",
        };
        let option = signature.options.iter().find_map(|it| match it.name {
            "field" if self.name.ends_with("field") => Some(("field", "\"spec.field\"")),
            "interval" => Some(("interval", "\"10m\"")),
            "cancellation_timeout" => Some(("cancellation_timeout", "10")),
            "retries" if !matches!(self.name, "on_field" | "field" | "timer") => {
                Some(("retries", "3"))
            }
            _ => None,
        });
        let (mut lua, mut rhai) = (String::new(), String::new());
        if let Some((name, value)) = option {
            lua = format!("{{ {name} = {value} }}, ");
            rhai = format!("#{{ {name}: {value} }}, ");
        }
        Some([
            ("Lua", format!("{path}({selector}{lua}function(ctx) … end)")),
            ("Rhai", format!("{scoped}({selector}{rhai}|ctx| {{ … }})")),
        ])
    }
}

/// An entry of a table of this module.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The name in scripts.
    pub(crate) name: &'static str,
    doc: &'static str,
    form: EntryForm,
    spoken: Spoken,
    /// The implementation of a function of `kopf`.
    pub(crate) body: Option<Body>,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryForm {
    Value(Ty),
    Function(CallSignature),
    Method(CallSignature),
}

/// The signature of a function of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSignature {
    parameters: &'static [Parameter],
    rest: Option<Parameter>,
    options: &'static [Parameter],
    returns: Option<Ty>,
}

pub(super) const fn value(name: &'static str, ty: Ty, doc: &'static str) -> Entry {
    Entry { name, doc, form: EntryForm::Value(ty), spoken: Spoken::Both, body: None }
}

pub(super) const fn function(name: &'static str, call: CallSignature, doc: &'static str) -> Entry {
    Entry { name, doc, form: EntryForm::Function(call), spoken: Spoken::Both, body: None }
}

pub(super) const fn method(name: &'static str, call: CallSignature, doc: &'static str) -> Entry {
    Entry { name, doc, form: EntryForm::Method(call), spoken: Spoken::Both, body: None }
}

/// Returns a signature with these parameters, without a result.
pub(super) const fn taking(parameters: &'static [Parameter]) -> CallSignature {
    CallSignature { parameters, rest: None, options: &[], returns: None }
}

impl Entry {
    /// Restricts the name to this language; `instead` is what the other one has.
    pub(super) const fn only(self, language: Language, instead: &'static str) -> Self {
        Entry { spoken: Spoken::Only(language, instead), ..self }
    }

    pub(super) const fn does(self, body: Body) -> Self {
        Entry { body: Some(body), ..self }
    }

    /// Returns how many arguments the function takes.
    pub(crate) fn arguments(&self) -> RangeInclusive<usize> {
        let (EntryForm::Function(call) | EntryForm::Method(call)) = self.form else { return 0..=0 };
        let least = call.parameters.iter().filter(|it| it.required).count();
        let most = call.parameters.len() + usize::from(!call.options.is_empty());
        least..=if call.rest.is_some() { usize::MAX } else { most }
    }
}

impl CallSignature {
    pub(super) const fn giving(self, ty: Ty) -> Self {
        CallSignature { returns: Some(ty), ..self }
    }

    pub(super) const fn then(self, rest: Parameter) -> Self {
        CallSignature { rest: Some(rest), ..self }
    }

    pub(super) const fn with(self, options: &'static [Parameter]) -> Self {
        CallSignature { options, ..self }
    }
}

/// Returns a required parameter, for tables.
pub(super) const fn required(name: &'static str, ty: Ty, doc: &'static str) -> Parameter {
    Parameter { name, ty, required: true, doc }
}

/// Returns an optional parameter, for tables.
pub(super) const fn optional(name: &'static str, ty: Ty, doc: &'static str) -> Parameter {
    Parameter { name, ty, required: false, doc }
}

/// Returns the first sentence of a documentation text.
pub fn summary(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}
