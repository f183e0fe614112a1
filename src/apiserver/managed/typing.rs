//! The type of a value for field management: whether it is atomic, or granular with separately managed fields or items.
//!
//! Without a schema, the type is deduced from the value, as on the real server: maps are granular, lists are atomic.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{collect::is_empty_value, element::Element};
use crate::{
    native::{self, OBJECT_META},
    schema::{ListType, Schema, SchemaShape},
};

/// Limit of the depth; deeper values are atomic. Decoded bodies are not as deep.
const DEPTH_MAX: usize = 256;

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema::parse(&json!({ "type": "string" })));

/// The type of the values of one field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldType<'a> {
    pub(super) node: TypeSource<'a>,
    /// The object keeps unknown fields, so these have deduced types.
    open: bool,
    /// Compiled into Kubernetes: empty fields are left out.
    pub(super) native: bool,
    depth: usize,
}

/// The source of the type.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeSource<'a> {
    /// A complete object; `None` without a schema.
    Object(Option<&'a Schema>),
    Metadata,
    Known(&'a Schema),
    /// Deduced from the value.
    Deduced,
    /// Atomic in any case.
    Untyped,
}

/// The form in which a value is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManagedForm<'a> {
    /// Managed as a single field.
    Leaf,
    /// Managed by its fields.
    Map,
    /// Managed by its items.
    List(Order<'a>),
}

/// The way in which the items of a list are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order<'a> {
    /// Distinguished by their values.
    Set,
    /// Distinguished by these fields.
    Keys(&'a [String]),
}

/// The declaration of a field in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldDeclaration {
    /// By name. Such a field is managed only through its content.
    Named,
    /// Under any name, as an additional property.
    Allowed,
    Unknown,
}

impl<'a> FieldType<'a> {
    /// Returns the type of complete objects.
    pub(super) fn object(schema: Option<&'a Schema>, native: bool) -> Self {
        let open =
            schema.is_none_or(|it| it.preserves_unknown || matches!(it.shape, SchemaShape::Any));
        Self { node: TypeSource::Object(schema), open, native, depth: 0 }
    }

    fn child(self, node: TypeSource<'a>) -> Self {
        let node = if self.depth < DEPTH_MAX { node } else { TypeSource::Untyped };
        Self { node, depth: self.depth.saturating_add(1), ..self }
    }

    /// Returns the type of fields that the schema does not declare.
    fn unsaid(self) -> TypeSource<'a> {
        if self.open { TypeSource::Deduced } else { TypeSource::Untyped }
    }

    pub(super) fn schema(self) -> Option<&'a Schema> {
        match self.node {
            TypeSource::Object(schema) => schema,
            TypeSource::Metadata => native::definition(OBJECT_META),
            TypeSource::Known(schema) => Some(schema),
            TypeSource::Deduced | TypeSource::Untyped => None,
        }
    }

    /// Returns the form in which a value of this type is managed. A value that does not match the schema is a single field.
    pub(super) fn form(self, value: &Value) -> ManagedForm<'a> {
        let map =
            if value.is_object() || value.is_null() { ManagedForm::Map } else { ManagedForm::Leaf };
        match self.node {
            TypeSource::Object(_) | TypeSource::Metadata | TypeSource::Deduced => map,
            TypeSource::Untyped => ManagedForm::Leaf,
            TypeSource::Known(schema) => match &schema.shape {
                SchemaShape::Any if self.open => map,
                SchemaShape::Any
                | SchemaShape::Scalar(_)
                | SchemaShape::Map { atomic: true, .. } => ManagedForm::Leaf,
                // A map without declared fields in a native kind is kept as it is: the data of a ControllerRevision.
                SchemaShape::Map { fields, rest: None, .. }
                    if self.native && fields.is_empty() && !is_empty_value(value) =>
                {
                    ManagedForm::Leaf
                }
                SchemaShape::Map { atomic: false, .. } => map,
                SchemaShape::List { .. } => match order(schema) {
                    Some(order) if value.is_array() || value.is_null() => ManagedForm::List(order),
                    _ => ManagedForm::Leaf,
                },
            },
        }
    }

    /// Returns whether the schema declares maps or lists of this type as atomic.
    pub(super) fn is_atomic(self) -> bool {
        let TypeSource::Known(schema) = self.node else { return false };
        match schema.shape {
            SchemaShape::Map { atomic, .. } => atomic,
            SchemaShape::List { .. } => order(schema).is_none(),
            SchemaShape::Any | SchemaShape::Scalar(_) => false,
        }
    }

    /// Returns the type of a field, and how the schema declares it.
    pub(super) fn field(self, name: &str) -> (Self, FieldDeclaration) {
        let schema = match self.node {
            TypeSource::Object(_) if name == "metadata" => {
                return (self.child(TypeSource::Metadata), FieldDeclaration::Named);
            }
            TypeSource::Object(_) if name == "apiVersion" || name == "kind" => {
                return (self.child(TypeSource::Known(&TEXT)), FieldDeclaration::Named);
            }
            TypeSource::Object(None) | TypeSource::Deduced => {
                return (self.child(TypeSource::Deduced), FieldDeclaration::Allowed);
            }
            TypeSource::Untyped => {
                return (self.child(TypeSource::Untyped), FieldDeclaration::Allowed);
            }
            TypeSource::Metadata => match native::definition(OBJECT_META) {
                Some(schema) => schema,
                None => return (self.child(TypeSource::Deduced), FieldDeclaration::Allowed),
            },
            TypeSource::Object(Some(schema)) | TypeSource::Known(schema) => schema,
        };
        if schema.embedded && matches!(self.node, TypeSource::Known(_)) && name == "metadata" {
            return (self.child(TypeSource::Metadata), FieldDeclaration::Named);
        }
        if schema.embedded && (name == "apiVersion" || name == "kind") {
            return (self.child(TypeSource::Known(&TEXT)), FieldDeclaration::Named);
        }
        let SchemaShape::Map { fields, rest, .. } = &schema.shape else {
            return (self.child(self.unsaid()), FieldDeclaration::Allowed);
        };
        let linked = |link: &'a crate::schema::SchemaOrRef| {
            link.schema().map_or_else(|| self.unsaid(), TypeSource::Known)
        };
        if let Some(link) = fields.get(name) {
            return (self.child(linked(link)), FieldDeclaration::Named);
        }
        let nameless =
            fields.is_empty() && !schema.embedded && matches!(self.node, TypeSource::Known(_));
        match rest {
            Some(link) => (self.child(linked(link)), FieldDeclaration::Allowed),
            // For a map without declared fields, the real server has no types of its values.
            None if nameless => (self.child(self.unsaid()), FieldDeclaration::Allowed),
            None if schema.preserves_unknown || self.open => {
                (self.child(TypeSource::Deduced), FieldDeclaration::Allowed)
            }
            None => (self.child(self.unsaid()), FieldDeclaration::Unknown),
        }
    }

    /// Returns the type of the items of a list.
    pub(super) fn items(self) -> Self {
        let items = self.schema().and_then(Schema::items);
        self.child(items.map_or_else(|| self.unsaid(), TypeSource::Known))
    }

    /// Returns the type of the part at a path element.
    pub(super) fn part(self, element: &Element) -> (Self, FieldDeclaration) {
        match element {
            Element::Field(name) => self.field(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => {
                (self.items(), FieldDeclaration::Allowed)
            }
        }
    }

    /// Returns the path element of an item of a list of this type. The error is the reason why there is none.
    pub(super) fn element(self, order: Order<'a>, item: &Value) -> Result<Element, String> {
        let refuse = |text: &str| Err(text.to_owned());
        match (order, item) {
            (Order::Set, Value::Object(_)) => {
                refuse("associative list without keys has an element that's a map type")
            }
            (Order::Set, Value::Array(_)) => {
                refuse("not supported: associative list with lists as elements")
            }
            (Order::Set, Value::Null) => {
                refuse("associative list without keys has an element that's an explicit null")
            }
            (Order::Set, value) => Ok(Element::Value(super::element::Atom(value.clone()))),
            (Order::Keys(_), Value::Null) => {
                refuse("associative list with keys may not have a null element")
            }
            (Order::Keys(keys), Value::Object(fields)) => {
                let key = |name: &String| {
                    let value = fields.get(name).cloned().or_else(|| self.default_of(name));
                    let missing = || {
                        format!(
                            "associative list with keys has an element that omits key field {name:?} \
                         (and doesn't have default value)"
                        )
                    };
                    Ok((name.clone(), value.ok_or_else(missing)?))
                };
                Ok(Element::key(keys.iter().map(key).collect::<Result<_, String>>()?))
            }
            (Order::Keys(_), _) => {
                refuse("associative list with keys may not have non-map elements")
            }
        }
    }

    /// Returns the default of a missing key of an item.
    fn default_of(self, key: &str) -> Option<Value> {
        let field = self.schema().and_then(Schema::items)?.field(key)?;
        if let Some(default) = &field.default {
            return Some(default.clone());
        }
        // Missing required fields of native kinds have the zero value of their type in the real server; they are validated later.
        match &field.shape {
            SchemaShape::Scalar(_) if !self.native => None,
            SchemaShape::Scalar(_) if key == "protocol" => Some("TCP".into()),
            SchemaShape::Scalar(crate::schema::Scalar::Text) => Some("".into()),
            SchemaShape::Scalar(_) => Some(0.into()),
            SchemaShape::Any | SchemaShape::Map { .. } | SchemaShape::List { .. } => None,
        }
    }
}

/// Returns the way in which items are distinguished; `None` for an atomic list. Native kinds mostly declare it for patches only.
fn order(schema: &Schema) -> Option<Order<'_>> {
    match schema.list_type() {
        ListType::Set => Some(Order::Set),
        ListType::Map(keys) => Some(Order::Keys(keys)),
        ListType::Atomic => None,
    }
}
