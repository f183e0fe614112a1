//! Names of field managers, and validation of entries that clients write.

use serde_json::Value;

use crate::refusal::ValidationProblem;

/// Limit of the name of a manager, in bytes.
const MANAGER_MAX: usize = 128;

/// Returns the field manager of a request: the parameter, or the first part of its `User-Agent`.
pub(crate) fn manager_of(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.into();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for letter in program.chars().filter(|it| is_printable(*it)) {
        if manager.len().saturating_add(letter.len_utf8()) > MANAGER_MAX {
            break;
        }
        manager.push(letter);
    }
    manager
}

/// Validates the entries of an object before it is stored.
pub(crate) fn check_entries(object: &Value) -> Vec<ValidationProblem> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let operations = entries.into_iter().flatten().map(|it| it.get("operation").cloned());
    let operations = operations.map(|it| it.unwrap_or_else(|| "".into()));
    let wrong = operations.filter(|it| it != "Apply" && it != "Update");
    let field = "metadata.managedFields.operation";
    wrong.map(|it| ValidationProblem::invalid(field, it, "must be `Apply` or `Update`")).collect()
}

/// Returns whether Go considers a character printable: letters, marks, numbers, punctuation, symbols, and the plain space.
fn is_printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}
