//! The surface: every name that a script can use, in one place, with its types and its documentation.
//!
//! The reference, `kopf docs` and the stubs of editors are made of it. It repeats nothing: declarations, options, settings,
//! helpers and libraries have tables of their own, which the engines are built on too; what has none is listed here. A test
//! walks the names that both engines really have and compares.

mod classes;
mod crd;
mod find;
mod kopf;
mod kwargs;
mod libraries;
mod lua;
mod luau;
mod markdown;
mod rhai;
mod settings;
#[cfg(test)]
mod tests;
mod types;

pub use self::{
    crd::CustomKind,
    find::Found,
    lua::stubs as lua_stubs,
    luau::stubs as luau_stubs,
    markdown::{Page, entry, pages, section as section_page},
    rhai::stubs as rhai_stubs,
    types::{Callback, Ty, ctx_class},
};
pub(crate) use self::{kopf::OTHERS, kwargs::KWARGS};

/// All there is.
#[derive(Debug)]
pub struct Surface {
    /// The globals of scripts: `kopf` and the libraries.
    pub globals: Vec<Section>,
    /// The values that functions and handlers get and give.
    pub classes: Vec<Section>,
}

/// A global, a table inside of it, or a class of values.
#[derive(Clone, Debug)]
pub struct Section {
    /// As scripts write it (`kopf`, `kopf.on`), or the name of a class (`Logger`).
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What is in it.
    pub items: Vec<Item>,
    /// The type of what is under any other key, if there may be others.
    pub others: Option<Ty>,
    /// The class that has its members too.
    pub parent: Option<&'static str>,
}

/// One name in a section.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name itself.
    pub name: &'static str,
    /// What it is or does; the first sentence is the summary.
    pub doc: &'static str,
    /// What kind of thing it is.
    pub shape: Shape,
    /// Which languages have it.
    pub spoken: Spoken,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A value.
    Value(Ty),
    /// A function below a global.
    Function(Signature),
    /// A function of a value: `value:name(…)` in Lua, `value.name(…)` in Rhai.
    Method(Signature),
    /// A table with names of its own.
    Table(Vec<Item>),
}

/// How something is called.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// What is passed by place.
    pub parameters: Vec<Parameter>,
    /// What may be passed after them, any number of times.
    pub rest: Option<Parameter>,
    /// What is passed by name, in a map after them.
    pub options: Vec<Parameter>,
    /// Whether selectors of resources come first: one to three texts, a marker or a function.
    pub selects: bool,
    /// The function of a handler, which comes last.
    pub handler: Option<Ty>,
    /// What it gives; `None` is nothing.
    pub returns: Option<Ty>,
}

/// A parameter, or an option.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What fits.
    pub ty: Ty,
    /// Whether it must be given.
    pub required: bool,
    /// What it is.
    pub doc: &'static str,
}

/// Which languages have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spoken {
    /// All of them.
    #[default]
    Both,
    /// Only Lua.
    Lua,
    /// Only Rhai.
    Rhai,
    /// None: it has a name, and calling it is an error that says so.
    Later,
}

/// A language of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `.lua`
    Lua,
    /// `.rhai`
    Rhai,
}

impl Spoken {
    /// Whether this language has it.
    pub fn in_language(self, language: Language) -> bool {
        match self {
            Spoken::Both => true,
            Spoken::Lua => language == Language::Lua,
            Spoken::Rhai => language == Language::Rhai,
            Spoken::Later => false,
        }
    }
}

impl Surface {
    /// Puts the tables together.
    pub fn new() -> Self {
        let mut globals = vec![kopf::section()];
        globals.extend(libraries::sections());
        let mut classes = kwargs::sections();
        classes.extend(classes::sections());
        classes.extend(settings::sections());
        Surface { globals, classes }
    }

    /// All sections, those of globals first.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.globals.iter().chain(&self.classes)
    }
}

impl Default for Surface {
    fn default() -> Self {
        Self::new()
    }
}

impl Section {
    /// A section of a table.
    fn of(name: &'static str, doc: &'static str, entries: &[Entry]) -> Self {
        let items = entries.iter().map(Item::of).collect();
        Section { name, doc, items, others: None, parent: None }
    }
}

impl Item {
    fn of(entry: &Entry) -> Self {
        let shape = match entry.form {
            Form::Value(ty) => Shape::Value(ty),
            Form::Function(call) => Shape::Function(Signature::of(&call)),
            Form::Method(call) => Shape::Method(Signature::of(&call)),
        };
        Item { name: entry.name, doc: entry.doc, shape, spoken: entry.spoken }
    }

    /// How it is called, if it is.
    pub fn signature(&self) -> Option<&Signature> {
        match &self.shape {
            Shape::Function(signature) | Shape::Method(signature) => Some(signature),
            Shape::Value(_) | Shape::Table(_) => None,
        }
    }
}

impl Signature {
    fn of(call: &Calling) -> Self {
        Signature {
            parameters: call.parameters.to_vec(),
            rest: call.rest,
            options: call.options.to_vec(),
            selects: false,
            handler: None,
            returns: call.returns,
        }
    }

    /// `(objects, [owner], [options])`
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
    /// How a declaration looks in a script, in Lua and in Rhai; nothing for other names.
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

/// A name of a table of this module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// As scripts write it.
    pub(crate) name: &'static str,
    doc: &'static str,
    form: Form,
    spoken: Spoken,
}

/// What a name of a table stands for.
#[derive(Clone, Copy, Debug)]
enum Form {
    Value(Ty),
    Function(Calling),
    Method(Calling),
}

/// How a function of a table is called.
#[derive(Clone, Copy, Debug)]
struct Calling {
    parameters: &'static [Parameter],
    rest: Option<Parameter>,
    options: &'static [Parameter],
    returns: Option<Ty>,
}

const fn value(name: &'static str, ty: Ty, doc: &'static str) -> Entry {
    Entry { name, doc, form: Form::Value(ty), spoken: Spoken::Both }
}

const fn function(name: &'static str, call: Calling, doc: &'static str) -> Entry {
    Entry { name, doc, form: Form::Function(call), spoken: Spoken::Both }
}

const fn method(name: &'static str, call: Calling, doc: &'static str) -> Entry {
    Entry { name, doc, form: Form::Method(call), spoken: Spoken::Both }
}

/// Of these parameters, without a result.
const fn taking(parameters: &'static [Parameter]) -> Calling {
    Calling { parameters, rest: None, options: &[], returns: None }
}

impl Entry {
    const fn only(self, spoken: Spoken) -> Self {
        Entry { spoken, ..self }
    }
}

impl Calling {
    const fn giving(self, ty: Ty) -> Self {
        Calling { returns: Some(ty), ..self }
    }

    const fn then(self, rest: Parameter) -> Self {
        Calling { rest: Some(rest), ..self }
    }

    const fn with(self, options: &'static [Parameter]) -> Self {
        Calling { options, ..self }
    }
}

/// A parameter that must be given.
const fn required(name: &'static str, ty: Ty, doc: &'static str) -> Parameter {
    Parameter { name, ty, required: true, doc }
}

/// A parameter that may be left out.
const fn optional(name: &'static str, ty: Ty, doc: &'static str) -> Parameter {
    Parameter { name, ty, required: false, doc }
}

/// The first sentence of a documentation text.
pub fn summary(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}
