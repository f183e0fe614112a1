//! The parts of libraries that are written in the languages of scripts: `stdlib/NAME.lua` and `stdlib/NAME.rhai`.
//!
//! In Lua, the file is a chunk that receives the parts of the host and returns a table of functions. In Rhai, the functions are
//! called `NAME__FUNCTION`: Rhai resolves names in the running script, so a function `map` here would replace a script's own `map`
//! in its callbacks.

use super::{LIBRARIES, kube, template};
use crate::scripting::functions::types::{Function, Library};

/// The source of one library in both languages.
struct EmbeddedLibrary {
    name: &'static str,
    lua: &'static str,
    rhai: &'static str,
    parts: &'static [EmbeddedFunction],
}

/// A function of the host that only the source of a library can call: it returns a stream, or a value at once.
pub(crate) struct EmbeddedFunction {
    /// The function, with its name in Lua.
    pub(crate) function: Function,
    /// Its name in Rhai.
    pub(crate) rhai: &'static str,
}

const TEXTS: &[EmbeddedLibrary] = &[
    EmbeddedLibrary {
        name: "kube",
        lua: include_str!("../../../stdlib/kube.lua"),
        rhai: include_str!("../../../stdlib/kube.rhai"),
        parts: &[EmbeddedFunction { function: kube::STATES, rhai: "kube__host_wait" }],
    },
    EmbeddedLibrary {
        name: "lists",
        lua: include_str!("../../../stdlib/lists.lua"),
        rhai: include_str!("../../../stdlib/lists.rhai"),
        parts: &[],
    },
    EmbeddedLibrary {
        name: "template",
        lua: include_str!("../../../stdlib/template.lua"),
        rhai: include_str!("../../../stdlib/template.rhai"),
        parts: &[
            EmbeddedFunction { function: template::RENDERING, rhai: "template__host_render" },
            EmbeddedFunction { function: template::NAMING, rhai: "template__host_name" },
        ],
    },
];

/// Returns the file of a library, as messages call it, and its source.
pub(crate) fn lua(library: &Library) -> Option<(String, &'static str)> {
    let text = TEXTS.iter().find(|it| it.name == library.name)?;
    Some((format!("stdlib/{}.lua", text.name), text.lua))
}

/// Returns all files in Rhai, with their names in messages.
pub(crate) fn rhai() -> impl Iterator<Item = (&'static Library, String, &'static str)> {
    let library = |name| LIBRARIES.iter().find(|it| it.name == name);
    TEXTS.iter().filter_map(move |it| {
        Some((library(it.name)?, format!("stdlib/{}.rhai", it.name), it.rhai))
    })
}

/// Returns the functions of the host that only the source of a library can call.
pub(crate) fn parts(library: &Library) -> &'static [EmbeddedFunction] {
    TEXTS.iter().find(|it| it.name == library.name).map_or(&[], |it| it.parts)
}

/// Returns the name of a function in Rhai.
pub(crate) fn rhai_name(library: &str, function: &str) -> String {
    format!("{library}__{function}")
}
