//! The refusal of an apply that would change what others manage.

use serde_json::{Value, json};

use super::{entries::Id, set::FieldSet};
use crate::refusal::Refusal;

/// Says who manages which of the fields.
pub(super) fn refusal(conflicts: &[(&Id, FieldSet)]) -> Refusal {
    let found: Vec<(String, Vec<String>)> =
        conflicts.iter().map(|(id, set)| (holder(id), set.paths())).collect();
    let count: usize = found.iter().map(|(_, paths)| paths.len()).sum();
    let text = match found.as_slice() {
        [(holder, paths)] if count == 1 => {
            format!("1 conflict: conflict with {holder}: {}", paths.concat())
        }
        several => {
            let lines = several.iter().map(|(holder, paths)| {
                format!("conflicts with {holder}:\n- {}", paths.join("\n- "))
            });
            format!("{count} conflicts: {}", lines.collect::<Vec<_>>().join("\n"))
        }
    };
    let causes = found.iter().flat_map(|(holder, paths)| {
        paths.iter().map(move |path| {
            let message = format!("conflict with {holder}");
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

/// A manager in words.
fn holder(id: &Id) -> String {
    let mut text = format!("{:?}", id.manager);
    if !id.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", id.subresource);
    }
    match id.version() {
        Some(version) => format!("{text} using {version}"),
        None => text,
    }
}
