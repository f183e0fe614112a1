//! `kopf stubs`: the API of scripts as type definitions for editors.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::cli::{
    args::{StubsArgs, StubsLanguage},
    dev::documents,
    report::{Exit, Report},
};
use crate::scripting::surface::{CustomKind, Surface, lua_stubs, luau_stubs, rhai_stubs};

/// Prints the definitions, or writes them to a file in a directory.
pub(super) fn run(args: &StubsArgs) -> Result<Exit, Report> {
    let kinds = kinds(&args.from_crd)?;
    let text = text(args.language, &kinds);
    match &args.output {
        None => {
            // A closed stdout is ignored.
            let _closed = std::io::stdout().write_all(text.as_bytes());
        }
        Some(directory) => {
            let path = write(directory, args.language, &text)?;
            // Reports the file on stderr: stdout is for the definitions themselves.
            let _closed = writeln!(std::io::stderr(), "wrote {}", path.display());
        }
    }
    Ok(Exit::Success)
}

/// Returns the definitions in one language.
pub(super) fn text(language: StubsLanguage, kinds: &[CustomKind]) -> String {
    let surface = Surface::new();
    match language {
        StubsLanguage::Lua => lua_stubs(&surface, kinds),
        StubsLanguage::Luau => luau_stubs(&surface, kinds),
        // Objects are maps in Rhai, and maps have no types.
        StubsLanguage::Rhai => rhai_stubs(&surface),
    }
}

/// Writes the definitions to a directory, which is created if needed.
pub(super) fn write(
    directory: &Path,
    language: StubsLanguage,
    text: &str,
) -> Result<PathBuf, Report> {
    let path = directory.join(language.file());
    let failed =
        |it: std::io::Error| Report::failure(format!("cannot write '{}': {it}", path.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path)
}

/// Returns the kinds that the CRDs in these files define.
pub(super) fn kinds(paths: &[PathBuf]) -> Result<Vec<CustomKind>, Report> {
    let mut kinds = Vec::new();
    for path in paths {
        for document in documents::of(path)? {
            let kind = documents::text(&document.object, "/kind");
            if kind != documents::DEFINITION {
                let problem = format!(
                    "{}: expected a {}, got a {kind}",
                    document.place,
                    documents::DEFINITION
                );
                return Err(Report::failure(problem));
            }
            let read = CustomKind::read(&document.object);
            kinds.push(read.map_err(|it| Report::failure(format!("{}: {it}", document.place)))?);
        }
    }
    Ok(kinds)
}

impl StubsLanguage {
    /// Returns the file name of the definitions.
    pub(super) fn file(self) -> &'static str {
        match self {
            StubsLanguage::Lua => "kopf.lua",
            StubsLanguage::Luau => "kopf.d.luau",
            StubsLanguage::Rhai => "kopf.d.rhai",
        }
    }
}
