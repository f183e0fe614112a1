//! The log line about a change that no handler handles, for users who try out an operator.

use serde_json::Value;

use crate::logic::{
    handlers::handler::{Handler, Kind},
    object::{
        diff::{Diff, DiffItem},
        reason::Reason,
    },
    text::listed::listed,
};

/// Maximum number of fields in the line.
const FIELDS_MAX: usize = 3;
/// Maximum number of characters of a value or a path.
const CHARACTERS_MAX: usize = 40;

/// Returns the line: `spec.duration: 1m → 2m; no handler for updates`. `None` if that is nothing to wonder about.
pub fn line<'a>(
    reason: Reason,
    diff: &Diff,
    handlers: impl Iterator<Item = &'a Handler>,
) -> Option<String> {
    let (what, kinds, name): (_, &[Kind], _) = match reason {
        Reason::Update => (changes(diff)?, &[Kind::Update, Kind::Field], "updates"),
        Reason::Delete | Reason::Gone => ("deleted".to_owned(), &[Kind::Delete], "deletions"),
        Reason::Create | Reason::Resume | Reason::Noop | Reason::Free => return None,
    };
    let mut handlers = handlers.peekable();
    // Without any, the kind is watched for something else than its changes.
    handlers.peek()?;
    let is_any = handlers.any(|it| kinds.contains(&it.kind));
    if is_any && reason == Reason::Gone {
        return None;
    }
    let missing = if is_any { "no handler with filters that match" } else { "no handler" };
    Some(format!("{what}; {missing} for {name}"))
}

/// Returns the changed fields; `None` if there are none.
fn changes(diff: &Diff) -> Option<String> {
    let change = |DiffItem { field, old, new, .. }: &DiffItem| {
        let path = if field.is_empty() { "the object".to_owned() } else { short(&field.join(".")) };
        format!("{path}: {} → {}", shown(old), shown(new))
    };
    (!diff.is_empty()).then(|| listed(diff.iter().map(change), FIELDS_MAX))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => short(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{} items]", items.len()),
        Value::Object(map) => format!("{{{} fields}}", map.len()),
    }
}

/// Returns a string on one line, truncated if it is too long.
fn short(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(CHARACTERS_MAX).collect();
    let rest = if characters.next().is_some() { "…" } else { "" };
    format!("{}{rest}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::{Reason, changes, line, short};
    use crate::logic::object::diff::diff;
    use serde_json::json;

    #[test]
    fn changes_are_told_in_one_short_line() {
        let told = |old, new| changes(&diff(&old, &new)).unwrap_or_default();
        assert_eq!(
            told(json!({"spec": {"duration": "1m"}}), json!({"spec": {"duration": "2m"}})),
            "spec.duration: 1m → 2m"
        );
        assert_eq!(
            told(json!({"a": 1}), json!({"b": [1, 2]})),
            "b: (none) → [2 items], a: 1 → (none)"
        );
        let many = (0..9).map(|it| (it.to_string(), json!(it))).collect::<serde_json::Map<_, _>>();
        assert!(told(json!({}), many.into()).ends_with("2: (none) → 2, and 6 more"));
        let forged = told(json!({"a": ""}), json!({"a": "x\n[ERROR] \u{1b}[2K"}));
        assert_eq!(forged, "a:  → x\\n[ERROR] \\u{1b}[2K");
        assert_eq!(short(&"ü".repeat(50)).chars().count(), 41);
    }

    #[test]
    fn kinds_without_handlers_of_changes_are_no_surprise() {
        assert_eq!(line(Reason::Delete, &Vec::new(), std::iter::empty()), None);
    }
}
