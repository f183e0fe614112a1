//! The errors of calling methods that handles do not have: the same in both languages.

use crate::scripting::{
    surface::{Signature, Surface},
    terms::Language,
    values::text::did_you_mean,
};

/// The host values with methods: their types in the languages, an example of how scripts write them, and their class.
const HANDLES: [(&str, &str, &str); 5] = [
    ("logger", "ctx.logger", "Logger"),
    ("conditions", "ctx.conditions", "Conditions"),
    ("stopped", "ctx.stopped", "Stopped"),
    ("patch.fns", "ctx.patch.fns", "PatchFunctions"),
    ("warnings", "ctx.warnings", "Warnings"),
];

/// Returns the error of an unknown method of a host value; `None` if `of` is not the type of one.
pub(crate) fn unknown_method(of: &str, method: &str, language: Language) -> Option<String> {
    let (_, shown, class) = HANDLES.iter().find(|(it, ..)| *it == of)?;
    let surface = Surface::new();
    let section = surface.classes.iter().find(|it| it.name == *class)?;
    let mut known = section.items.iter().filter(|it| it.spoken.in_language(language));
    let sign = if language == Language::Lua { ":" } else { "." };
    let Some(item) = known.clone().find(|it| it.name == method) else {
        let near =
            did_you_mean(method, known.by_ref().map(|it| it.name), &format!("{shown}{sign}"));
        return Some(format!("there is no {shown}{sign}{method}{near}"));
    };
    if *class == "Logger" && language == Language::Rhai {
        return Some(format!(
            "{shown}.{method} takes a message and a map of fields: put other values into the message, as in `x ${{value}}`"
        ));
    }
    let expected = item.signature().map(Signature::told).unwrap_or_default();
    Some(format!(
        "{shown}{sign}{method}: wrong arguments: expected {shown}{sign}{method}{expected}"
    ))
}
