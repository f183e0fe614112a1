//! The plan, for people and for programs.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};

use super::changes::{ChangeAction, ObjectChange, PlannedChanges};
use crate::logic::{
    object::diff::{DiffItem, DiffOperation},
    text::printable::printable,
};
use crate::telemetry::{FailureCounts, HandlerLabels};

/// Maximum number of fields of one object in text.
const FIELDS_MAX: usize = 60;
/// Maximum number of characters of one value in text.
const VALUE_CHARS_MAX: usize = 120;

/// The numbers of objects that fail, by handler.
pub(super) type Failures = BTreeMap<HandlerLabels, FailureCounts>;

impl ChangeAction {
    fn sign(self) -> char {
        match self {
            ChangeAction::Create => '+',
            ChangeAction::Update => '~',
            ChangeAction::Delete => '-',
        }
    }

    fn name(self) -> &'static str {
        match self {
            ChangeAction::Create => "create",
            ChangeAction::Update => "update",
            ChangeAction::Delete => "delete",
        }
    }
}

/// Returns the plan as text.
pub(super) fn text(changes: &PlannedChanges, failures: &Failures) -> String {
    let mut text = String::new();
    for change in &changes.objects {
        write_change(&mut text, change);
    }
    // Writing to a string cannot fail.
    let [create, update, delete] =
        [ChangeAction::Create, ChangeAction::Update, ChangeAction::Delete]
            .map(|it| changes.count(it));
    let _fits = if changes.objects.is_empty() {
        writeln!(text, "No changes.")
    } else {
        writeln!(text, "\nPlan: {create} to create, {update} to update, {delete} to delete.")
    };
    if changes.only_state > 0 {
        let count = counted(changes.only_state, "object");
        let _fits = writeln!(text, "{count} would only get the annotations of the operator.");
    }
    if changes.events > 0 {
        let _fits = writeln!(text, "{} would be posted.", counted(changes.events, "event"));
    }
    for (handler, count) in failures {
        let count = counted(failing(*count), "object");
        let _fits = writeln!(text, "The handler '{}' fails for {count}.", handler.handler);
    }
    printable(text)
}

/// Returns the plan as JSON.
pub(super) fn json(changes: &PlannedChanges, failures: &Failures) -> Value {
    let objects = changes.objects.iter().map(|it| {
        let (resource, namespace, name) = &it.key;
        let fields = it.fields.iter().map(|it| {
            json!({ "op": it.operation.as_str(), "field": it.field, "old": it.old, "new": it.new })
        });
        json!({
            "action": it.action.name(),
            "resource": resource,
            "namespace": Some(namespace).filter(|it| !it.is_empty()),
            "name": name,
            "fields": fields.collect::<Value>(),
        })
    });
    let failures = failures.iter().map(|(handler, count)| {
        let HandlerLabels { handler, resource, script } = handler;
        let objects = failing(*count);
        json!({ "handler": handler, "resource": resource, "script": script, "objects": objects })
    });
    json!({
        "changes": objects.collect::<Value>(),
        "failures": failures.collect::<Value>(),
        "events": changes.events,
        "only_state": changes.only_state,
    })
}

fn failing(count: FailureCounts) -> usize {
    usize::try_from(count.retrying.saturating_add(count.failed)).unwrap_or_default()
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

fn write_change(text: &mut String, ObjectChange { action, key, fields }: &ObjectChange) {
    let (resource, namespace, name) = key;
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    let _fits = writeln!(text, "{} {} {resource}/{name}{place}", action.sign(), action.name());
    for item in fields.iter().take(FIELDS_MAX) {
        let _fits = writeln!(text, "    {}", field(item));
    }
    if let Some(more) = fields.len().checked_sub(FIELDS_MAX).filter(|it| *it > 0) {
        let _fits = writeln!(text, "    … and {}; all: -o json", counted(more, "field"));
    }
}

fn field(item: &DiffItem) -> String {
    let mut path = String::new();
    for name in &item.field {
        if !path.is_empty() && !name.starts_with('[') {
            path.push('.');
        }
        path.push_str(name);
    }
    match item.operation {
        DiffOperation::Add => format!("{path}: {}", shown(&item.new)),
        DiffOperation::Change => format!("{path}: {} -> {}", shown(&item.old), shown(&item.new)),
        DiffOperation::Remove => format!("{path}: {} -> (removed)", shown(&item.old)),
    }
}

/// Returns a value in one line, in full if it is short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_CHARS_MAX {
        return text;
    }
    text.chars().take(VALUE_CHARS_MAX).chain(['…']).collect()
}
