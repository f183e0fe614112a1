//! `kopf docs`: the reference of everything that scripts can use, in the terminal.

mod text;

use std::io::Write as _;

use crate::cli::{
    args::DocsArgs,
    report::{Exit, Report},
};
use crate::scripting::surface::{Documented, Surface, entry, pages, section_page};

/// Prints the requested part of the reference.
pub(super) fn run(args: &DocsArgs) -> Result<Exit, Report> {
    let surface = Surface::new();
    let shown = match &args.name {
        None if args.markdown => {
            pages(&surface).into_iter().map(|it| it.text).collect::<Vec<_>>().join("\n")
        }
        None => text::overview(&surface),
        Some(name) => {
            let found = surface.find(name);
            if found.is_empty() {
                return Err(unknown(&surface, name));
            }
            let shown = found.iter().map(|it| one(it, args.markdown));
            shown.collect::<Vec<_>>().join("\n")
        }
    };
    // A closed stdout is ignored.
    let _closed = std::io::stdout().write_all(shown.as_bytes());
    Ok(Exit::Success)
}

fn one(found: &Documented<'_>, markdown: bool) -> String {
    match (found, markdown) {
        (Documented::Section(it), true) => section_page(it),
        (Documented::Section(it), false) => text::section(it),
        (Documented::Item(path, it), true) => entry(path, it),
        (Documented::Item(path, it), false) => text::item(path, it),
    }
}

fn unknown(surface: &Surface, name: &str) -> Report {
    let report = Report::failure(format!("'{name}' not found in the reference"));
    match surface.nearest(name) {
        Some(near) => report.with_hint(format!("did you mean '{near}'?")),
        None => report.with_hint("`kopf docs` lists everything"),
    }
}
