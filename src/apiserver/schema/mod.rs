//! The schema of a kind: types, defaults, and the merge rules of lists and maps.
//!
//! It has one form for the structural schemas of CRDs and for native kinds. Patches, managed fields, pruning and defaulting use
//! this tree; `validate.rs` validates values with the JSON schema itself.

mod checks;
mod defaults;
mod embedded;
pub(crate) mod expressions;
mod formats;
mod lists;
pub(crate) mod metadata;
pub(crate) mod pattern;
mod prune;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
mod validate;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub(crate) use self::{
    defaults::default,
    prune::{prune, prune_part},
    rules::Rules,
};
use crate::native;
use crate::sorted::CollectSorted as _;

/// One node of a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) shape: SchemaShape,
    /// `null` is a valid value.
    pub(crate) nullable: bool,
    /// The value of a missing field.
    pub(crate) default: Option<Value>,
    /// Unknown fields are not pruned: `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserves_unknown: bool,
    /// A complete object with a kind and metadata: `x-kubernetes-embedded-resource`.
    pub(crate) embedded: bool,
    /// The rule of the field in strategic merge patches.
    pub(crate) patch: PatchRule,
}

/// The structure of values.
#[derive(Clone, Debug, Default)]
pub(crate) enum SchemaShape {
    /// The schema does not restrict it.
    #[default]
    Any,
    /// A value without fields and items.
    Scalar(Scalar),
    /// An object: its properties, and the schema of additional properties, if they are allowed.
    Map { fields: BTreeMap<String, SchemaOrRef>, rest: Option<SchemaOrRef>, atomic: bool },
    /// A list whose items have one schema.
    List { items: Option<SchemaOrRef>, order: ListType },
}

/// The types of scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text,
    Integer,
    Number,
    Boolean,
    /// An integer or a string, such as ports and percentages.
    IntOrText,
}

/// The merge rule of a list: `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// It is replaced as a whole.
    #[default]
    Atomic,
    /// Its items are merged by value.
    Set,
    /// Its items are merged by these fields.
    Map(Vec<String>),
}

/// The rule of a field in strategic merge patches: `x-kubernetes-patch-strategy` and `-merge-key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchRule {
    /// The list or map is merged, not replaced.
    pub(crate) merge: bool,
    /// The merge key of the items; without one, they are merged by value.
    pub(crate) key: Option<String>,
    /// `retainKeys`: fields that a patch does not list are removed.
    pub(crate) retain_keys: bool,
}

/// A child: either inline, or one of the shared definitions of the native kinds.
#[derive(Clone, Debug)]
pub(crate) enum SchemaOrRef {
    Own(Arc<Schema>),
    Named(String),
}

impl SchemaOrRef {
    /// Returns the schema of the child; `None` for an unknown name.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Own(schema) => Some(schema),
            Self::Named(name) => native::definition(name),
        }
    }
}

impl Schema {
    /// Parses a JSON schema with the `x-kubernetes-` extensions: `openAPIV3Schema` of a CRD, or a definition of OpenAPI v2.
    pub(crate) fn parse(schema: &Value) -> Self {
        // `additionalProperties: true` or `false`: the values can be anything here. The validation refuses them if necessary.
        if schema.is_boolean() {
            return Self { nullable: true, ..Self::default() };
        }
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let strategy = text("x-kubernetes-patch-strategy");
        Self {
            shape: shape(schema),
            nullable: flag("nullable"),
            default: schema.get("default").cloned(),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            patch: PatchRule {
                merge: strategy.split(',').any(|it| it == "merge"),
                retain_keys: strategy.split(',').any(|it| it == "retainKeys"),
                key: Some(text("x-kubernetes-patch-merge-key"))
                    .filter(|it| !it.is_empty())
                    .map(String::from),
            },
        }
    }

    /// Returns the schema of a named field. `None` means that it is unknown, which is not the same as forbidden.
    pub(crate) fn field(&self, name: &str) -> Option<&Schema> {
        let SchemaShape::Map { fields, rest, .. } = &self.shape else { return None };
        fields.get(name).or(rest.as_ref())?.schema()
    }

    /// Returns the schema of the items of a list.
    pub(crate) fn items(&self) -> Option<&Schema> {
        let SchemaShape::List { items, .. } = &self.shape else { return None };
        items.as_ref()?.schema()
    }

    /// Returns the merge rule of a list. A value that is not known to be a list is atomic.
    pub(crate) fn list_type(&self) -> &ListType {
        match &self.shape {
            SchemaShape::List { order, .. } => order,
            SchemaShape::Any | SchemaShape::Scalar(_) | SchemaShape::Map { .. } => {
                &ListType::Atomic
            }
        }
    }
}

fn shape(schema: &Value) -> SchemaShape {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
        || text("format") == "int-or-string"
    {
        return SchemaShape::Scalar(Scalar::IntOrText);
    }
    match text("type") {
        "string" => SchemaShape::Scalar(Scalar::Text),
        "integer" => SchemaShape::Scalar(Scalar::Integer),
        "number" => SchemaShape::Scalar(Scalar::Number),
        "boolean" => SchemaShape::Scalar(Scalar::Boolean),
        "array" => {
            SchemaShape::List { items: schema.get("items").map(link), order: list_type(schema) }
        }
        "object" => map(schema),
        _ if schema.get("properties").is_some() => map(schema),
        _ => SchemaShape::Any,
    }
}

fn map(schema: &Value) -> SchemaShape {
    let fields = schema.get("properties").and_then(Value::as_object);
    SchemaShape::Map {
        fields: fields
            .into_iter()
            .flatten()
            .map(|(name, it)| (name.clone(), link(it)))
            .collect_map(),
        rest: schema.get("additionalProperties").map(link),
        atomic: schema.get("x-kubernetes-map-type").is_some_and(|it| it == "atomic"),
    }
}

fn list_type(schema: &Value) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            ListType::Map(keys.map(String::from).collect())
        }
        Some(_) => ListType::Atomic,
        None => merged_by_patches(schema),
    }
}

/// Returns the type of a list of a native kind that has only a patch strategy.
fn merged_by_patches(schema: &Value) -> ListType {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let merged = text("x-kubernetes-patch-strategy").split(',').any(|it| it == "merge");
    match text("x-kubernetes-patch-merge-key") {
        _ if !merged => ListType::Atomic,
        "" => ListType::Set,
        key => ListType::Map(vec![key.into()]),
    }
}

fn link(schema: &Value) -> SchemaOrRef {
    match schema.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        Some(name) => SchemaOrRef::Named(name.into()),
        None => SchemaOrRef::Own(Arc::new(Schema::parse(schema))),
    }
}
