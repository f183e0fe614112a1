//! Entries of the reference as plain text, in lines that fit a terminal.

use std::fmt::Write as _;

use crate::scripting::surface::{
    Item, ItemShape, Parameter, Section, Signature, Spoken, Surface, summary,
};

/// Maximum length of a line.
const WIDTH: usize = 100;
/// A longer name gets its own line.
const NAME_MAX: usize = 34;

/// Returns the overview of all names.
pub(super) fn overview(surface: &Surface) -> String {
    let mut text = String::from(
        "Reference of scripts. For details: kopf docs NAME, such as kopf docs on_create\n",
    );
    for global in &surface.globals {
        head(&mut text, global.name, global.doc);
        items(&mut text, &global.items);
    }
    text.push_str("\nctx and other values\n");
    for class in
        surface.classes.iter().filter(|it| it.name.starts_with(|it: char| it.is_ascii_uppercase()))
    {
        row(&mut text, class.name, summary(class.doc));
    }
    text
}

/// Returns a global, or a class of values.
pub(super) fn section(section: &Section) -> String {
    let mut text = String::new();
    head(&mut text, section.name, section.doc);
    if let Some(parent) = section.parent {
        // Writing to a string cannot fail.
        let _fits = writeln!(text, "Also all of {parent}.");
    }
    if !section.items.is_empty() {
        text.push('\n');
    }
    items(&mut text, &section.items);
    text.trim_start_matches('\n').to_owned()
}

/// Returns the documentation of one name.
pub(super) fn item(path: &str, item: &Item) -> String {
    let call = item.signature().map(Signature::told).unwrap_or_default();
    let mut text = format!("{path}{call}\n\n{}\n", wrapped(&plain(item.doc), 0));
    match &item.shape {
        ItemShape::Value(ty) => {
            let _fits =
                write!(text, "\n{}\n", wrapped(&plain(&format!("It is {}.", ty.told())), 0));
        }
        ItemShape::Table(inner) => {
            text.push('\n');
            items(&mut text, inner);
        }
        ItemShape::Function(signature) | ItemShape::Method(signature) => {
            let examples = item.examples(path);
            if examples.is_some() {
                text.push('\n');
            }
            for (language, example) in examples.into_iter().flatten() {
                // Writing to a string cannot fail.
                let _fits = writeln!(text, "  {language:<6}{example}");
            }
            parameters(&mut text, "Arguments", &signature.parameters);
            parameters(&mut text, "Options", &signature.options);
            if let Some(returns) = signature.returns {
                // Writing to a string cannot fail.
                let _fits = write!(text, "\nReturns {}.\n", plain(&returns.told()));
            }
        }
    }
    if let note @ Spoken::Only(..) = item.spoken {
        let _fits = write!(text, "\n{}\n", plain(&note.note()));
    }
    text
}

fn head(text: &mut String, name: &str, doc: &str) {
    // Writing to a string cannot fail.
    let _fits = write!(text, "\n{name}\n{}\n", wrapped(&plain(doc), 0));
}

fn items(text: &mut String, items: &[Item]) {
    for it in items {
        row(text, it.name, summary(it.doc));
    }
}

fn parameters(text: &mut String, title: &str, all: &[Parameter]) {
    if all.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _fits = write!(text, "\n{title}:\n");
    for it in all {
        let name = if it.required { it.name.to_owned() } else { format!("[{}]", it.name) };
        let told = format!("{} Takes {}.", it.doc, it.ty.told());
        row(text, &name, &told);
    }
}

fn row(text: &mut String, name: &str, told: &str) {
    let told = wrapped(&plain(told), NAME_MAX);
    let told = told.trim_start();
    // Writing to a string cannot fail.
    let _fits = if name.len() + 4 > NAME_MAX {
        writeln!(text, "  {name}\n{}{told}", " ".repeat(NAME_MAX))
    } else {
        writeln!(text, "  {name:<width$}{told}", width = NAME_MAX - 2)
    };
}

/// Returns the text without Markdown marks.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Wraps a text into lines indented by this many spaces.
fn wrapped(text: &str, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    let mut lines = vec![blanks.clone()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        let is_fresh = line.len() == indent;
        if !is_fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{blanks}{word}"));
            continue;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n")
}
