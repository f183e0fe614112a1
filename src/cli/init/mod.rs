//! `kopf init`: writes a starter operator, ready to run.

mod sample;
mod templates;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::cli::{
    args::{InitArgs, StubsLanguage},
    dev::documents,
    report::{Exit, Report},
    stubs,
};
use templates::Starter;

/// Writes the files, and prints what to do next.
pub(super) fn run(args: &InitArgs) -> Result<Exit, Report> {
    let (definition, kind) = match &args.from_crd {
        None => (templates::CRD.to_owned(), None),
        Some(path) => {
            let mut kinds = stubs::kinds(std::slice::from_ref(path))?;
            if kinds.len() > 1 {
                let problem = format!("'{}' defines {} kinds", path.display(), kinds.len());
                return Err(Report::failure(problem).with_hint("pass a file that defines one kind"));
            }
            (documents::read(path)?, kinds.pop())
        }
    };
    let starter = Starter::new(kind.map_or_else(templates::greeting, Ok)?, args.from_crd.is_none());
    let files = files(args, &starter, definition);
    let existing: Vec<_> = files.iter().map(|(path, _)| path).filter(|it| it.exists()).collect();
    if let (Some(first), false) = (existing.first(), args.force) {
        let exist = match existing.len() - 1 {
            0 => "exists".to_owned(),
            1 => "and 1 more file exist".to_owned(),
            more => format!("and {more} more files exist"),
        };
        let problem = format!("'{}' {exist} already; no file was written", first.display());
        return Err(
            Report::failure(problem).with_hint("use --force to overwrite, or another directory")
        );
    }
    let mut output = String::new();
    for (path, text) in &files {
        let word = if path.exists() { "overwrote" } else { "wrote" };
        write(path, text)?;
        output.extend([word, " ", &path.display().to_string(), "\n"]);
    }
    output.push_str(&next(&args.directory, args.rhai));
    // A closed stdout is ignored.
    let _closed = std::io::stdout().write_all(output.as_bytes());
    Ok(Exit::Success)
}

/// Returns every file with its content.
fn files(args: &InitArgs, starter: &Starter, definition: String) -> Vec<(PathBuf, String)> {
    let at = |name: &str| args.directory.join(name);
    let kinds = std::slice::from_ref(&starter.kind);
    let mut files = vec![
        (at("crd.yaml"), definition),
        (at("object.yaml"), starter.object()),
        (at("README.md"), starter.readme(args.rhai)),
        (at("ci.sh"), templates::CI.to_owned()),
    ];
    if args.rhai {
        files.push((at("handlers.rhai"), starter.rhai()));
        files.push((at("tests").join("handlers_test.rhai"), starter.rhai_test()));
        let stub = stubs::text(StubsLanguage::Rhai, kinds);
        files.push((at(".kopf").join(StubsLanguage::Rhai.file()), stub));
    } else {
        files.push((at("handlers.lua"), starter.lua()));
        files.push((at("tests").join("handlers_test.lua"), starter.lua_test()));
        files.push((at(".luarc.json"), templates::LUARC.to_owned()));
        files.push((at(".luaurc"), templates::LUAURC.to_owned()));
        files.push((at(".vscode").join("settings.json"), templates::VSCODE.to_owned()));
        for language in [StubsLanguage::Lua, StubsLanguage::Luau] {
            files.push((at(".kopf").join(language.file()), stubs::text(language, kinds)));
        }
    }
    files
}

fn write(path: &Path, text: &str) -> Result<(), Report> {
    let failed =
        |it: std::io::Error| Report::failure(format!("cannot write '{}': {it}", path.display()));
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

fn next(directory: &Path, rhai: bool) -> String {
    let script = if rhai { "handlers.rhai" } else { "handlers.lua" };
    let at = |name: &str| directory.join(name).display().to_string();
    let directory = directory.display();
    let (script, crd, object) = (at(script), at("crd.yaml"), at("object.yaml"));
    format!(
        "\nNext, without a cluster:\n  kopf check {script}\n  kopf test {directory}\n  kopf dev {script} --crd {crd} --apply {object}\n\nEdit {script} or {object} while it runs: changes take effect immediately.\n"
    )
}
