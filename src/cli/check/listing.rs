//! The findings as text.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};

use super::findings::{CheckFindings, CheckedScript, described};
use crate::logic::{access::grants::Permission, text::size};
use crate::settings::{Sandbox, Settings};

/// Returns the declarations of the scripts.
pub(super) fn text(findings: &CheckFindings) -> String {
    let mut text = String::new();
    for script in &findings.scripts {
        of_script(&mut text, script);
    }
    of_access(&mut text, &findings.scripts);
    if !findings.scripts.is_empty() {
        // Writing to a string cannot fail.
        let _fits = writeln!(text, "limits of a script: {}", limits(&findings.settings));
    }
    let handlers: usize =
        findings.scripts.iter().map(|it| it.handlers.as_ref().map_or(0, Vec::len)).sum();
    let counts = [
        (findings.scripts.len(), "script", "scripts"),
        (handlers, "handler", "handlers"),
        (findings.errors.len(), "error", "errors"),
        (findings.warnings.len() + findings.lesser().count(), "warning", "warnings"),
    ];
    let counts =
        counts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    text + counts.join(", ").as_str() + "\n"
}

/// Returns the permissions that the scripts need and do not have.
pub(super) fn suggested(findings: &CheckFindings) -> String {
    let grants = findings.suggested_grants();
    if grants.is_empty() {
        return "no permission is missing for the hosts, variables and files that are literals in the scripts\n"
            .to_owned();
    }
    let mut text = String::from("missing permissions, as options:\n");
    for (option, values) in &grants {
        for value in values {
            // Writing to a string cannot fail.
            let _fits = writeln!(text, "  --{option}={value}");
        }
    }
    text.push_str("in kopf.yaml:\n");
    for (option, values) in &grants {
        let values: Vec<Value> = values.iter().map(|it| (*it).into()).collect();
        let _fits = writeln!(text, "  {option}: {}", Value::from(values));
    }
    text
}

/// Returns the warnings and errors.
pub(super) fn problems(findings: &CheckFindings) -> String {
    let mut text = String::new();
    for warning in &findings.warnings {
        // Writing to a string cannot fail.
        let _fits = writeln!(text, "warning: {warning}");
    }
    for mistake in findings.lesser() {
        let told = mistake.error.to_string();
        let _fits = writeln!(text, "warning: {}", told.strip_prefix("error: ").unwrap_or(&told));
    }
    for error in &findings.errors {
        let told = error.to_string();
        // An error without a file.
        let _fits = writeln!(text, "{}", told.replacen("error: : ", "error: ", 1));
    }
    text
}

/// Adds colors for a terminal.
pub(super) fn colored(text: &str) -> String {
    const TITLES: [(&str, AnsiColor); 3] =
        [("error:", AnsiColor::Red), ("warning:", AnsiColor::Yellow), ("hint:", AnsiColor::Cyan)];
    let mut colored = String::new();
    let mut color = AnsiColor::Red;
    for line in text.lines() {
        let title = TITLES.iter().find(|(title, _)| line.starts_with(title));
        let marks = line.find('^').filter(|at| line.get(..*at).is_some_and(is_gutter));
        let (start, end) = if let Some((title, its)) = title {
            color = *its;
            (0, title.len())
        } else {
            (marks.unwrap_or(line.len()), line.len())
        };
        let part = |from: usize, to: usize| line.get(from..to).unwrap_or_default();
        let style = if start == end { Style::new() } else { color.on_default().bold() };
        let (before, inside, after) = (part(0, start), part(start, end), part(end, line.len()));
        // Writing to a string cannot fail.
        let _fits = writeln!(colored, "{before}{style}{inside}{style:#}{after}");
    }
    colored
}

/// Returns whether this precedes the `^` marks of a source excerpt.
fn is_gutter(text: &str) -> bool {
    text.trim_end().trim_start() == "|"
}

/// Adds the permissions of the scripts, only once if they are the same for all.
fn of_access(text: &mut String, scripts: &[CheckedScript]) {
    let is_alike =
        scripts.iter().all(|it| scripts.first().is_some_and(|first| first.access == it.access));
    for script in scripts.iter().take(if is_alike { 1 } else { scripts.len() }) {
        let options = Permission::ALL.into_iter().map(|it| (it, script.access.granted(it)));
        let options = options.filter(|(_, granted)| !granted.is_empty());
        let options: Vec<_> = options
            .map(|(what, granted)| format!("--{}={}", what.option(), granted.join(",")))
            .collect();
        if !options.is_empty() {
            let who = if is_alike { "all scripts" } else { &script.name };
            let _fits = writeln!(text, "granted to {who}: {}", options.join(" "));
        }
    }
}

fn limits(settings: &Settings) -> String {
    let Sandbox { memory_limit, call_depth, string_size, coroutines, result_size, scratch_size: _ } =
        settings.sandbox;
    let seconds = settings.execution.cpu_limit.as_secs_f64();
    let [memory, string, result] = [memory_limit, string_size, result_size].map(size::shown);
    format!(
        "{seconds} s of CPU time per call, {memory} of memory, {call_depth} nested calls, {string} per string, \
         {coroutines} coroutines, {result} per result"
    )
}

fn of_script(text: &mut String, script: &CheckedScript) {
    let _fits = match &script.handlers {
        None => writeln!(text, "{}: invalid", script.name),
        Some(handlers) if handlers.is_empty() => writeln!(text, "{}: no handlers", script.name),
        Some(_) => writeln!(text, "{}", script.name),
    };
    let rows: Vec<_> =
        script.handlers.iter().flatten().map(|it| HandlerRow::of(&described(it))).collect();
    let width =
        |cell: fn(&HandlerRow) -> &str| rows.iter().map(|it| cell(it).chars().count()).max();
    let declaration = width(|it| &it.declaration).unwrap_or_default();
    let resource = width(|it| &it.resource).unwrap_or_default();
    let id = width(|it| &it.id).unwrap_or_default();
    for row in &rows {
        let HandlerRow { declaration: first, resource: second, id: third, location, details } = row;
        let line = format!("  {first:declaration$}  {second:resource$}  {third:id$}  {location}");
        let _fits = writeln!(text, "{}", line.trim_end());
        for detail in details {
            let _fits = writeln!(text, "  {:declaration$}    {detail}", "");
        }
    }
}

/// The row of one handler.
struct HandlerRow {
    declaration: String,
    resource: String,
    id: String,
    location: String,
    details: Vec<String>,
}

impl HandlerRow {
    fn of(handler: &Map<String, Value>) -> Self {
        let cell =
            |key: &str| handler.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let webhook = handler.get("webhook").map(webhook);
        let details = ["filters", "options"].into_iter().filter_map(|key| {
            let parts = handler.get(key)?.as_object()?;
            let parts: Vec<_> = parts.iter().map(|(key, it)| detail(key, it)).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        });
        HandlerRow {
            declaration: cell("declaration"),
            resource: cell("resource"),
            id: cell("id"),
            location: cell("location"),
            details: details.chain(webhook).collect(),
        }
    }
}

/// Returns a webhook: `webhook check: CREATE, UPDATE of pods; Fail; 30 s`.
fn webhook(webhook: &Value) -> String {
    let text = |key: &str| webhook.get(key).and_then(Value::as_str).unwrap_or_default();
    let texts = |key: &str| {
        let all = webhook.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or_default();
    let (operations, resources) = (texts("operations"), texts("resources"));
    format!(
        "webhook {}: {operations} of {resources}; failurePolicy {}; timeout {seconds} s",
        text("name"),
        text("failurePolicy"),
    )
}

/// Returns one filter or option: `retries 3`, `labels app="x" tier present`, `field spec.x`.
fn detail(key: &str, value: &Value) -> String {
    let value = match (key, value) {
        ("param", value) => value.to_string(),
        ("labels" | "annotations", Value::Object(criteria)) => {
            let criteria = criteria.iter().map(|(name, it)| match criterion(it) {
                Some(text) => format!("{name} {text}"),
                None => format!("{name}={}", it.get("equals").unwrap_or(it)),
            });
            criteria.collect::<Vec<_>>().join(", ")
        }
        ("field", Value::Array(keys)) => {
            keys.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(".")
        }
        (_, Value::Bool(true)) => return key.to_owned(),
        (_, Value::String(text)) => text.clone(),
        (_, value) => {
            criterion(value).unwrap_or_else(|| value.get("equals").unwrap_or(value).to_string())
        }
    };
    format!("{key} {value}")
}

/// Returns the text of a filter that is not a plain value.
fn criterion(value: &Value) -> Option<String> {
    if let Some(function) = value.get("function").and_then(Value::as_str) {
        return Some(format!("as {function} decides"));
    }
    let present = value.get("present").and_then(Value::as_bool)?;
    Some(if present { "present" } else { "absent" }.into())
}

#[cfg(test)]
mod tests {
    use super::colored;

    #[test]
    fn titles_and_marks_are_colored() {
        let text = "error: a.lua:1:3: no\n  |\n1 | x ^ y\n  |   ^\nhint: b\n";
        let expected = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m a.lua:1:3: no\n  |\n1 | x ^ y\n  |   \u{1b}[1m\u{1b}[31m^\u{1b}[0m\n\u{1b}[1m\u{1b}[36mhint:\u{1b}[0m b\n";
        assert_eq!(colored(text), expected);
    }
}
