//! The names that scripts use for modules, and the files that they mean.

use std::path::{Component, Path, PathBuf};

use super::ModuleProblem;
use crate::scripting::{functions, values::text::did_you_mean};

/// Maximum length of a name; longer than any meaningful one.
const NAME_BYTES_MAX: usize = 255;
/// The first part of the names of built-in libraries.
const LIBRARIES: &str = "kopf";

/// Returns the file of a module below the directory of its script: `lib/naming` is `lib/naming.lua`, with or without the extension.
pub(crate) fn file_of(name: &str, extension: &str) -> Result<PathBuf, ModuleProblem> {
    let refused = |why: &str| Err(ModuleProblem::Refused(why.into()));
    if name.is_empty() {
        return refused("the name is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return refused("the name is too long");
    }
    if name.starts_with('/') || name.contains(['\\', '\0']) {
        return refused("modules are named relative to the script's directory");
    }
    let path = Path::new(name);
    let mut parts = path.components().filter(|it| *it != Component::CurDir).peekable();
    if parts.peek().is_some_and(|it| it.as_os_str() == LIBRARIES) {
        return Err(of_library(name));
    }
    let mut file = PathBuf::new();
    for part in parts {
        match part {
            Component::Normal(part) if part.as_encoded_bytes().starts_with(b".") => {
                return refused(
                    "scripts cannot load files or directories whose names begin with a dot",
                );
            }
            Component::Normal(part) => file.push(part),
            Component::ParentDir => {
                return refused("modules outside of the script's directory cannot be loaded");
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {
                return refused("modules are named relative to the script's directory");
            }
        }
    }
    if file.as_os_str().is_empty() || name.ends_with('/') {
        return refused("the name is that of a directory, not of a file");
    }
    if path.extension().is_none_or(|it| it != extension) {
        file.as_mut_os_string().push(format!(".{extension}"));
    }
    Ok(file)
}

/// Returns the library that `kopf/json` means; a name without `kopf/` may also mean a file of the script.
pub(crate) fn library_of(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix(LIBRARIES)?.strip_prefix('/')?;
    functions::find(name).map(|it| it.name)
}

fn of_library(name: &str) -> ModuleProblem {
    if name == LIBRARIES {
        return ModuleProblem::Refused("`kopf` is built in and need not be loaded".into());
    }
    let wanted = name.trim_start_matches("./").strip_prefix("kopf/").unwrap_or(name);
    let known = functions::LIBRARIES.iter().map(|it| it.name);
    let near = did_you_mean(wanted, known, "kopf/");
    ModuleProblem::Missing(format!(
        "kopf/ is reserved for built-in libraries, and there is no {wanted}{near}"
    ))
}
