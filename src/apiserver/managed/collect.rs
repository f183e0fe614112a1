//! Sets of fields: those of a value, and sets adapted to a schema.

use serde_json::Value;

use super::{
    element::Element,
    set::{FieldSet, FieldSetNode},
    typing::{FieldDeclaration, FieldType, ManagedForm},
};

/// Returns all fields that a value sets.
pub(super) fn fields_of(kind: FieldType<'_>, value: &Value) -> FieldSet {
    collect(kind, value, false).below
}

/// Returns all existing fields, including empty ones and the parents of others.
pub(super) fn present(kind: FieldType<'_>, value: &Value) -> FieldSet {
    with_named(kind, &collect(kind, value, true).below)
}

fn collect(kind: FieldType<'_>, value: &Value, empties: bool) -> FieldSetNode {
    let leaf = FieldSetNode { member: true, below: FieldSet::default() };
    let mut below = FieldSet::default();
    match (kind.form(value), value) {
        (ManagedForm::Leaf, _) => return leaf,
        (ManagedForm::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let (kind, declared) = kind.field(name);
                let mut node = collect(kind, value, empties);
                node.member |=
                    declared != FieldDeclaration::Named || (empties && is_empty_value(value));
                below.put(Element::Field(name.clone()), node);
            }
        }
        (ManagedForm::List(order), Value::Array(items)) => {
            for item in items {
                // Items that cannot be distinguished make the list a single field.
                let Ok(element) = kind.element(order, item) else { return leaf };
                below.put(
                    element,
                    FieldSetNode { member: true, ..collect(kind.items(), item, empties) },
                );
            }
        }
        (ManagedForm::Map | ManagedForm::List(_), _) => {}
    }
    FieldSetNode { member: false, below }
}

/// Returns whether a value is null or an empty list or map.
pub(super) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Adds the declared parents of the fields in a set, so that they are removed with their last field.
pub(super) fn with_named(kind: FieldType<'_>, set: &FieldSet) -> FieldSet {
    set.combine(|element, node| {
        let (kind, declared) = kind.part(element);
        let above = declared == FieldDeclaration::Named && !node.below.is_empty();
        FieldSetNode { member: node.member || above, below: with_named(kind, &node.below) }
    })
}

/// Adapts a set to a schema in which a granular field has become atomic.
pub(super) fn reconciled(kind: FieldType<'_>, set: &FieldSet) -> FieldSet {
    set.combine(|element, node| {
        let (kind, _) = kind.part(element);
        if kind.is_atomic() {
            return FieldSetNode { member: true, below: FieldSet::default() };
        }
        FieldSetNode { member: node.member, below: reconciled(kind, &node.below) }
    })
}
