//! The parts of libraries that are written in the languages of scripts: `stdlib/NAME.lua` and `stdlib/NAME.rhai`.
//!
//! In Lua, the file is a chunk that returns a table of functions. In Rhai, the functions are called `NAME__FUNCTION`: Rhai
//! finds functions by who runs, so that a function `map` here would take the place of a script's own in its callbacks.

use super::{LIBRARIES, Library};

/// One library in both languages.
struct Text {
    name: &'static str,
    lua: &'static str,
    rhai: &'static str,
}

const TEXTS: &[Text] = &[Text {
    name: "lists",
    lua: include_str!("../../../stdlib/lists.lua"),
    rhai: include_str!("../../../stdlib/lists.rhai"),
}];

/// The file of a library, as messages call it, and its text.
pub(crate) fn lua(library: &Library) -> Option<(String, &'static str)> {
    let text = TEXTS.iter().find(|it| it.name == library.name)?;
    Some((format!("stdlib/{}.lua", text.name), text.lua))
}

/// All files in Rhai, with their names in messages.
pub(crate) fn rhai() -> impl Iterator<Item = (&'static Library, String, &'static str)> {
    let library = |name| LIBRARIES.iter().find(|it| it.name == name);
    TEXTS.iter().filter_map(move |it| {
        Some((library(it.name)?, format!("stdlib/{}.rhai", it.name), it.rhai))
    })
}

/// What a function is called in Rhai.
pub(crate) fn rhai_name(library: &str, function: &str) -> String {
    format!("{library}__{function}")
}
