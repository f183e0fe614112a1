//! The fields of a value, and sets of fields seen through a schema.

use serde_json::Value;

use super::{
    element::Element,
    set::{FieldSet, Node},
    typing::{Declared, Form, Type},
};

/// All fields that a value sets.
pub(super) fn fields_of(kind: Type<'_>, value: &Value) -> FieldSet {
    collect(kind, value, false).below
}

/// All fields that are there: also those that are empty, and those above others.
pub(super) fn present(kind: Type<'_>, value: &Value) -> FieldSet {
    with_named(kind, &collect(kind, value, true).below)
}

fn collect(kind: Type<'_>, value: &Value, empties: bool) -> Node {
    let leaf = Node { member: true, below: FieldSet::default() };
    let mut below = FieldSet::default();
    match (kind.form(value), value) {
        (Form::Leaf, _) => return leaf,
        (Form::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let (kind, declared) = kind.field(name);
                let mut node = collect(kind, value, empties);
                node.member |= declared != Declared::Named || (empties && is_nothing(value));
                below.put(Element::Field(name.clone()), node);
            }
        }
        (Form::List(order), Value::Array(items)) => {
            for item in items {
                // Items that cannot be told apart make the list one field.
                let Ok(element) = kind.element(order, item) else { return leaf };
                below.put(element, Node { member: true, ..collect(kind.items(), item, empties) });
            }
        }
        (Form::Map | Form::List(_), _) => {}
    }
    Node { member: false, below }
}

/// Whether a value is null or has nothing in it.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The set with the named fields above its fields, so that they go when all below them goes.
pub(super) fn with_named(kind: Type<'_>, set: &FieldSet) -> FieldSet {
    set.combine(|element, node| {
        let (kind, declared) = kind.part(element);
        let above = declared == Declared::Named && !node.below.is_empty();
        Node { member: node.member || above, below: with_named(kind, &node.below) }
    })
}

/// The set after the schema has made one field of what had fields of its own.
pub(super) fn reconciled(kind: Type<'_>, set: &FieldSet) -> FieldSet {
    set.combine(|element, node| {
        let (kind, _) = kind.part(element);
        if kind.is_atomic() {
            return Node { member: true, below: FieldSet::default() };
        }
        Node { member: node.member, below: reconciled(kind, &node.below) }
    })
}
