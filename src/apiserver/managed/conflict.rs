//! The refusal of an apply with conflicts.

use serde_json::{Value, json};

use super::{entries::Id, set::FieldSet};
use crate::refusal::Refusal;

/// Makes the refusal, with the managers of the conflicting fields.
pub(super) fn refusal(conflicts: &[(&Id, FieldSet)]) -> Refusal {
    let found: Vec<(String, Vec<String>)> =
        conflicts.iter().map(|(id, set)| (manager_text(id), set.paths())).collect();
    let count: usize = found.iter().map(|(_, paths)| paths.len()).sum();
    let text = match found.as_slice() {
        [(manager_text, paths)] if count == 1 => {
            format!("1 conflict: conflict with {manager_text}: {}", paths.concat())
        }
        several => {
            let lines = several.iter().map(|(manager_text, paths)| {
                format!("conflicts with {manager_text}:\n- {}", paths.join("\n- "))
            });
            format!("{count} conflicts: {}", lines.collect::<Vec<_>>().join("\n"))
        }
    };
    let causes = found.iter().flat_map(|(manager_text, paths)| {
        paths.iter().map(move |path| {
            let message = format!("conflict with {manager_text}");
            json!({ "reason": "FieldManagerConflict", "message": message, "field": path })
        })
    });
    let causes: Vec<Value> = causes.collect();
    Refusal {
        code: 409,
        reason: "Conflict".into(),
        message: format!("Apply failed with {text}"),
        details: Some(json!({ "causes": causes }).into()),
    }
}

/// Formats a manager for messages.
fn manager_text(id: &Id) -> String {
    let mut text = format!("{:?}", id.manager);
    if !id.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", id.subresource);
    }
    match id.version() {
        Some(version) => format!("{text} using {version}"),
        None => text,
    }
}
