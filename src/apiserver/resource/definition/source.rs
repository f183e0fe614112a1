//! Versions of a CRD as Go source: messages of the real server show them in this form.
//!
//! Known difference: values behind a pointer are shown as `nil` or `0x0`; the real server shows memory addresses.

use serde_json::Value;

use super::structure::{flag, text};
use crate::refusal::go;

/// Formats the list of all versions.
pub(super) fn versions(all: Option<&Value>) -> String {
    let name = "[]apiextensions.CustomResourceDefinitionVersion";
    match all.and_then(Value::as_array) {
        None => format!("{name}(nil)"),
        Some(all) => {
            format!("{name}{{{}}}", all.iter().map(version).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats one version as a Go struct.
pub(super) fn version(version: &Value) -> String {
    let pointer = |field: &str| match version.get(field) {
        None | Some(Value::Null) => "nil",
        Some(_) => "0x0",
    };
    let columns = "[]apiextensions.CustomResourceColumnDefinition";
    let columns = match version.get("additionalPrinterColumns").and_then(Value::as_array) {
        None => format!("{columns}(nil)"),
        Some(all) => {
            format!("{columns}{{{}}}", all.iter().map(column).collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "apiextensions.CustomResourceDefinitionVersion{{Name:{}, Served:{}, Storage:{}, Deprecated:{}, \
         DeprecationWarning:(*string)({}), Schema:(*apiextensions.CustomResourceValidation)({}), \
         Subresources:(*apiextensions.CustomResourceSubresources)({}), AdditionalPrinterColumns:{columns}}}",
        go::quote(text(version, "name")),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        pointer("deprecationWarning"),
        pointer("schema"),
        pointer("subresources"),
    )
}

fn column(column: &Value) -> String {
    let text = |field: &str| go::quote(text(column, field));
    format!(
        "apiextensions.CustomResourceColumnDefinition{{Name:{}, Type:{}, Format:{}, Description:{}, Priority:{}, JSONPath:{}}}",
        text("name"),
        text("type"),
        text("format"),
        text("description"),
        column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        text("JSONPath"),
    )
}
