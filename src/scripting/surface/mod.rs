//! The surface: every name that a script can use, with its types and its documentation.
//!
//! The source of the reference, `kopf docs` and the editor stubs. It repeats nothing: declarations, options, settings, helpers and
//! libraries have separate tables, which the engines use, too; all other names are listed here. A test compares the surface with
//! the names that both engines actually have.

mod classes;
mod crd;
mod find;
mod item;
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

pub(crate) use self::item::Entry;
use self::item::{function, method, optional, required, taking, value};
pub use self::{
    crd::CustomKind,
    find::Documented,
    item::{Item, ItemShape, Parameter, Section, Signature, Spoken, summary},
    lua::stubs as lua_stubs,
    luau::stubs as luau_stubs,
    markdown::{ReferencePage, entry, pages, section as section_page},
    rhai::stubs as rhai_stubs,
    types::{Callback, Ty, ctx_class},
};
pub(crate) use self::{kopf::OTHERS, kwargs::KWARGS};
pub use crate::scripting::terms::Language;

/// All names, grouped in sections.
#[derive(Debug)]
pub struct Surface {
    /// The globals of scripts: `kopf` and the libraries.
    pub globals: Vec<Section>,
    /// The classes of values that functions and handlers take and return.
    pub classes: Vec<Section>,
}

impl Surface {
    /// Combines the tables of all sections.
    pub fn new() -> Self {
        let mut globals = vec![kopf::section()];
        globals.extend(libraries::sections());
        let mut classes = kwargs::sections();
        classes.extend(classes::sections());
        classes.extend(settings::sections());
        Surface { globals, classes }
    }

    /// Returns all sections, those of globals first.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.globals.iter().chain(&self.classes)
    }
}

impl Default for Surface {
    fn default() -> Self {
        Self::new()
    }
}
