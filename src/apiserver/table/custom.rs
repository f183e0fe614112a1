//! The cells of custom resources: values at JSON paths, formatted by the type of their column.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, go, jsonpath::JsonPath};
use crate::resource::kind::Column;

/// A printer column with its parsed path.
#[derive(Clone, Debug)]
pub(super) struct CustomColumn {
    column: Column,
    /// `None` if the path is invalid: its cells are empty.
    path: Option<JsonPath>,
}

/// Returns the columns after the name. If there are none, the age is shown.
pub(super) fn columns(columns: &[Column]) -> Vec<CustomColumn> {
    let age = [Column {
        name: "Age".into(),
        kind: "date".into(),
        description: "How long ago the object was created.".into(),
        json_path: ".metadata.creationTimestamp".into(),
        ..Column::default()
    }];
    let columns = if columns.is_empty() { &age } else { columns };
    let parsed =
        |it: &Column| CustomColumn { path: JsonPath::parse(&it.json_path), column: it.clone() };
    columns.iter().map(parsed).collect()
}

impl CustomColumn {
    /// Returns the entry in `columnDefinitions`.
    pub(super) fn definition(&self) -> Value {
        let Column { name, kind, format, description, priority, json_path } = &self.column;
        let description = match description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {json_path}"),
            text => text.into(),
        };
        json!({
            "name": name,
            "type": kind,
            "format": format,
            "description": description,
            "priority": priority,
        })
    }

    /// Returns the cell of an object; null if there is no value of the column's type.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|it| it.find(object)).unwrap_or_default();
        // Only the first value of a path is shown.
        let Some(value) = found.first() else { return Value::Null };
        match self.column.kind.as_str() {
            "string" => go::text(value).into(),
            "integer" => integer(value),
            "number" if value.is_number() => (*value).clone(),
            "boolean" if value.is_boolean() => (*value).clone(),
            "date" => match value.as_str() {
                Some(then) => age::since(then, now).unwrap_or_else(|| "<invalid>".into()).into(),
                None => Value::Null,
            },
            _ => Value::Null,
        }
    }
}

/// Removes the fraction of a number. Values out of range become what Go makes of them.
#[expect(clippy::cast_possible_truncation, reason = "numbers out of range are sorted out before")]
fn integer(value: &Value) -> Value {
    if let Some(whole) = value.as_i64() {
        return whole.into();
    }
    let Some(number) = value.as_f64() else { return Value::Null };
    if number.abs() < 9.2e18 { (number as i64).into() } else { i64::MIN.into() }
}
