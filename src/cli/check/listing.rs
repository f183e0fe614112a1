//! The answer for people.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::findings::{Findings, Script};
use crate::logic::{description::describe, grants::Permission};

/// What the scripts declare.
pub(super) fn text(findings: &Findings) -> String {
    let mut text = String::new();
    for script in &findings.scripts {
        of_script(&mut text, script);
    }
    let handlers: usize =
        findings.scripts.iter().map(|it| it.handlers.as_ref().map_or(0, Vec::len)).sum();
    let counts = [
        (findings.scripts.len(), "script", "scripts"),
        (handlers, "handler", "handlers"),
        (findings.errors.len(), "error", "errors"),
        (findings.warnings.len(), "warning", "warnings"),
    ];
    let counts =
        counts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    text + counts.join(", ").as_str() + "\n"
}

/// What is wrong with them.
pub(super) fn problems(findings: &Findings) -> String {
    let mut text = String::new();
    for warning in &findings.warnings {
        // Memory takes every text.
        let _fits = writeln!(text, "warning: {warning}");
    }
    for error in &findings.errors {
        let told = error.to_string();
        // A problem that is in no file.
        let _fits = writeln!(text, "{}", told.replacen("error: : ", "error: ", 1));
    }
    text
}

fn of_script(text: &mut String, script: &Script) {
    let _fits = match &script.handlers {
        None => writeln!(text, "{}: cannot be used", script.name),
        Some(handlers) if handlers.is_empty() => writeln!(text, "{}: no handlers", script.name),
        Some(_) => writeln!(text, "{}", script.name),
    };
    for what in Permission::ALL {
        let granted = script.access.granted(what);
        if !granted.is_empty() {
            let _fits = writeln!(text, "  may use --{}={}", what.option(), granted.join(","));
        }
    }
    let rows: Vec<_> = script.handlers.iter().flatten().map(|it| Row::of(&describe(it))).collect();
    let width = |cell: fn(&Row) -> &str| rows.iter().map(|it| cell(it).chars().count()).max();
    let declaration = width(|it| &it.declaration).unwrap_or_default();
    let resource = width(|it| &it.resource).unwrap_or_default();
    let id = width(|it| &it.id).unwrap_or_default();
    for row in &rows {
        let Row { declaration: first, resource: second, id: third, location, details } = row;
        let line = format!("  {first:declaration$}  {second:resource$}  {third:id$}  {location}");
        let _fits = writeln!(text, "{}", line.trim_end());
        for detail in details {
            let _fits = writeln!(text, "  {:declaration$}    {detail}", "");
        }
    }
}

/// One handler.
struct Row {
    declaration: String,
    resource: String,
    id: String,
    location: String,
    details: Vec<String>,
}

impl Row {
    fn of(handler: &Map<String, Value>) -> Self {
        let cell =
            |key: &str| handler.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let details = ["filters", "options"].into_iter().filter_map(|key| {
            let parts = handler.get(key)?.as_object()?;
            let parts: Vec<_> = parts.iter().map(|(key, it)| format!("{key} = {it}")).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        });
        Row {
            declaration: cell("declaration"),
            resource: cell("resource"),
            id: cell("id"),
            location: cell("location"),
            details: details.collect(),
        }
    }
}
