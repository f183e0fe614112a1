//! Tables of `kubectl get`: objects as rows and columns; and partial objects with only their metadata.
//!
//! The `Accept` header requests a table, see `request/accept/`. The same printer makes tables of lists, single objects and watch events,
//! but never of a `Status`.

mod age;
mod custom;
mod go;
mod jsonpath;
mod native;
mod reply;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::custom::CustomColumn;
pub(crate) use self::reply::Presenter;
use crate::{
    object,
    refusal::Refusal,
    request::accept::{MetaVersion, ResponseShape},
    resource::kind::Kind,
};

/// The part of the object in each row: `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    #[default]
    Metadata,
    Object,
}

impl Include {
    /// Parses the parameter of a request.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Refusal> {
        match text {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Refusal::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// Prints the objects of one kind.
#[derive(Debug)]
pub(crate) struct Printer {
    columns: Columns,
    version: MetaVersion,
    include: Include,
}

#[derive(Debug)]
enum Columns {
    Native(&'static native::Layout),
    Custom(Vec<CustomColumn>),
}

impl Printer {
    /// Creates a printer for a kind in one of its versions.
    pub(crate) fn new(kind: &Kind, version: &str, meta: MetaVersion, include: Include) -> Self {
        let columns = if kind.def.native {
            Columns::Native(native::layout(&kind.def.group, &kind.def.plural))
        } else {
            let columns = kind.versions.get(version).map(|it| it.columns.as_slice());
            Columns::Custom(custom::columns(columns.unwrap_or_default()))
        };
        Self { columns, version: meta, include }
    }

    /// Prints a list, or a page of one, with the metadata of the list.
    pub(crate) fn list<'a>(
        &self,
        metadata: &Value,
        items: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
    ) -> Value {
        let rows: Vec<Value> = items.into_iter().map(|it| self.row(it, now)).collect();
        let is_plain = matches!(self.columns, Columns::Native(it) if it.is_plain());
        // The same as on the real server for kinds without columns.
        let rows = if rows.is_empty() && is_plain { Value::Null } else { rows.into() };
        self.table(metadata.clone(), self.definitions(), rows)
    }

    /// Prints one object as a table with one row.
    pub(crate) fn object(&self, object: &Value, now: Timestamp) -> Value {
        self.table(own_metadata(object), self.definitions(), vec![self.row(object, now)].into())
    }

    /// Prints the object of a watch event. Only the first event of a watch has column definitions.
    pub(crate) fn event(&self, object: &Value, first: bool, now: Timestamp) -> Value {
        let columns = if first { self.definitions() } else { Value::Null };
        self.table(own_metadata(object), columns, vec![self.row(object, now)].into())
    }

    /// Prints the scale of an object, which has another kind. Scales of custom objects have no special columns.
    pub(crate) fn scale(&self, scale: Value, shape: ResponseShape, now: Timestamp) -> Value {
        match shape {
            ResponseShape::Table(_) => {
                let columns = Columns::Native(&native::SCALES);
                Self { columns, ..*self }.object(&scale, now)
            }
            ResponseShape::Partial(version) => partial(&scale, version),
            ResponseShape::Whole | ResponseShape::PartialList(_) | ResponseShape::Groups => scale,
        }
    }

    fn table(&self, metadata: Value, columns: Value, rows: Value) -> Value {
        // Moved, not cloned, because the rows may be many and large.
        let fields = [
            ("kind", "Table".into()),
            ("apiVersion", self.version.api_version().into()),
            ("metadata", metadata),
            ("columnDefinitions", columns),
            ("rows", rows),
        ];
        fields.into_iter().collect()
    }

    fn definitions(&self) -> Value {
        match &self.columns {
            Columns::Native(layout) => layout.definitions().collect(),
            Columns::Custom(columns) => {
                let name = native::Column::NAME.definition();
                std::iter::once(name).chain(columns.iter().map(CustomColumn::definition)).collect()
            }
        }
    }

    fn row(&self, object: &Value, now: Timestamp) -> Value {
        let mut conditions = Value::Null;
        let cells: Vec<Value> = match &self.columns {
            Columns::Native(layout) => {
                conditions = layout.conditions(object);
                layout.cells(object, now)
            }
            Columns::Custom(columns) => {
                let name = Value::from(object::meta(object, "name"));
                let cells = columns.iter().map(|it| it.cell(object, now));
                std::iter::once(name).chain(cells).collect()
            }
        };
        let shown = match self.include {
            Include::Nothing => Value::Null,
            Include::Metadata => partial(object, self.version),
            Include::Object => object.clone(),
        };
        if conditions.is_null() {
            json!({ "cells": cells, "object": shown })
        } else {
            json!({ "cells": cells, "conditions": conditions, "object": shown })
        }
    }
}

/// Returns the metadata of a table with one object: its version.
fn own_metadata(object: &Value) -> Value {
    match object::meta(object, "resourceVersion") {
        "" => json!({}),
        version => json!({ "resourceVersion": version }),
    }
}

/// Converts an object to a `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Converts a list to a `PartialObjectMetadataList`, with the metadata of the list.
pub(crate) fn partial_list<'a>(
    metadata: &Value,
    items: impl IntoIterator<Item = &'a Value>,
    version: MetaVersion,
) -> Value {
    let items: Vec<Value> = items.into_iter().map(|it| partial(it, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": metadata,
        "items": items,
    })
}
