//! Renders the surface as Markdown: the pages of the reference.

use std::fmt::Write as _;

use super::{Item, ItemShape, Parameter, Section, Spoken, Surface, Ty, summary};

/// A page of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePage {
    /// The name of its file, such as `kopf.md`.
    pub file: String,
    /// Its content in Markdown.
    pub text: String,
}

const MADE: &str = "<!-- Made from src/scripting/surface by the test `scripting::surface::the_reference_is_that_of_the_table`. -->\n";

/// Returns the reference: a page for each global, one for `ctx`, one for the other values, and an index.
pub fn pages(surface: &Surface) -> Vec<ReferencePage> {
    let mut pages = vec![index(surface)];
    for global in &surface.globals {
        let mut text = format!("# {}\n\n{MADE}\n{}\n", global.name, global.doc);
        overview(&mut text, &global.items);
        for it in &global.items {
            put_item(&mut text, global.name, it, 2);
        }
        pages.push(ReferencePage { file: format!("{}.md", global.name), text });
    }
    let is_settings = |it: &&Section| is_settings(it);
    let is_ctx = |it: &&Section| it.name.ends_with("Ctx");
    let mut text = format!(
        "# ctx\n\n{MADE}\nHandlers have one argument, `ctx`. Its fields depend on the kind of the handler.\n"
    );
    for class in surface.classes.iter().filter(is_ctx) {
        put_class(&mut text, class);
    }
    pages.push(ReferencePage { file: "ctx.md".into(), text });
    let mut text = format!(
        "# Values\n\n{MADE}\nValues that handlers and functions take and return. Methods are called `value:name(…)` in Lua and `value.name(…)` in Rhai. [Settings](../settings.md) have a separate page.\n"
    );
    for class in surface.classes.iter().filter(|it| !is_ctx(it) && !is_settings(it)) {
        put_class(&mut text, class);
    }
    pages.push(ReferencePage { file: "values.md".into(), text });
    pages
}

/// Returns whether a class belongs to the settings, which have a separate reference.
fn is_settings(class: &Section) -> bool {
    class.name == "Settings" || class.name.starts_with(|it: char| it.is_ascii_lowercase())
}

fn index(surface: &Surface) -> ReferencePage {
    let mut text = format!(
        "# Reference\n\n{MADE}\nEverything that scripts can use. In a terminal: `kopf docs`, `kopf docs kopf.on_create`; in an editor: `kopf stubs`.\n\n| page | content |\n|---|---|\n"
    );
    let mut row = |file: &str, name: &str, doc: &str| {
        // Writing to a string cannot fail.
        let _fits = writeln!(text, "| [{name}]({file}) | {} |", cell(doc));
    };
    row("ctx.md", "`ctx`", "The argument of handlers.");
    row(
        "values.md",
        "values",
        "The values in `ctx`, and results of functions: patches, loggers, indexes.",
    );
    row("../settings.md", "settings", "Every setting, and where to change it.");
    for global in &surface.globals {
        row(&format!("{}.md", global.name), &format!("`{}`", global.name), global.doc);
    }
    ReferencePage { file: "README.md".into(), text }
}

/// Renders one entry, for `kopf docs NAME`.
pub fn entry(path: &str, item: &Item) -> String {
    let mut text = String::new();
    let table = path.rsplit_once('.').map_or("", |(table, _)| table);
    put_item(&mut text, table, item, 1);
    text.trim_start().to_owned()
}

/// Renders one section, for `kopf docs NAME`.
pub fn section(section: &Section) -> String {
    let mut text = format!("# {}\n\n{}\n", section.name, section.doc);
    overview(&mut text, &section.items);
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn overview(text: &mut String, items: &[Item]) {
    text.push_str("\n| name | summary |\n|---|---|\n");
    for it in items {
        let call = it.signature().map(super::Signature::told).unwrap_or_default();
        // Writing to a string cannot fail.
        let _fits = writeln!(text, "| `{}{call}` | {} |", it.name, cell(summary(it.doc)));
    }
}

fn put_class(text: &mut String, class: &Section) {
    // Writing to a string cannot fail.
    let _fits = write!(text, "\n## {}\n\n{}\n", class.name, class.doc);
    if let Some(parent) = class.parent {
        let _fits = write!(text, "\nAlso all of `{parent}`.\n");
    }
    if class.items.is_empty() {
        return;
    }
    text.push_str("\n| name | type | description |\n|---|---|---|\n");
    for it in &class.items {
        let what = match &it.shape {
            ItemShape::Value(ty) => ty.told(),
            ItemShape::Function(signature) | ItemShape::Method(signature) => {
                signature.returns.map_or_else(String::new, |it| format!("returns {}", it.told()))
            }
            ItemShape::Table(_) => String::new(),
        };
        let call = it.signature().map(super::Signature::told).unwrap_or_default();
        let doc = format!("{} {}", it.doc, it.spoken.note());
        let _fits =
            writeln!(text, "| `{}{call}` | {} | {} |", it.name, cell(&what), cell(doc.trim_end()));
    }
}

fn put_item(text: &mut String, table: &str, item: &Item, level: usize) {
    let path =
        if table.is_empty() { item.name.to_owned() } else { format!("{table}.{}", item.name) };
    let head = "#".repeat(level);
    // Writing to a string cannot fail.
    let _fits = write!(text, "\n{head} {path}\n");
    match &item.shape {
        ItemShape::Value(ty) => {
            let _fits = write!(text, "\n{}\n\nType: {}.\n", item.doc, ty.told());
        }
        ItemShape::Table(items) => {
            let _fits = write!(text, "\n{}\n", item.doc);
            overview(text, items);
        }
        ItemShape::Function(signature) | ItemShape::Method(signature) => {
            let _fits = write!(text, "\n`{path}{}`\n\n{}\n", signature.told(), item.doc);
            for (language, example) in item.examples(&path).into_iter().flatten() {
                let _fits = write!(text, "\n- {language}: `{example}`");
            }
            if signature.handler.is_some() {
                text.push('\n');
            }
            parameters(text, "argument", &signature.parameters);
            parameters(text, "option", &signature.options);
            if let Some(returns) = signature.returns {
                let _fits = write!(text, "\nReturns {}.\n", returns.told());
            }
        }
    }
    if let note @ Spoken::Only(..) = item.spoken {
        let _fits = write!(text, "\n{}\n", note.note());
    }
}

fn parameters(text: &mut String, what: &str, all: &[Parameter]) {
    if all.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _fits = write!(text, "\n| {what} | takes | description |\n|---|---|---|\n");
    for it in all {
        let name = if it.required { format!("`{}`", it.name) } else { format!("[`{}`]", it.name) };
        let takes = if let Ty::Maybe(inner) = it.ty { inner.told() } else { it.ty.told() };
        let _fits = writeln!(text, "| {name} | {} | {} |", cell(&takes), cell(it.doc));
    }
}
