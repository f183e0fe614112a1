//! What the schema says about a value, in the terms of field management: what is one field, and what has fields of its own.
//!
//! Where nothing is said, the real server deduces from the value: maps have fields, lists are one field.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{collect::is_nothing, element::Element};
use crate::{
    native::{self, OBJECT_META},
    schema::{ListType, Schema, Shape},
};

/// Deeper values are one field. Bodies are not decoded as deep as this.
const DEPTH_MAX: usize = 256;

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema::parse(&json!({ "type": "string" })));

/// What is known of the values at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type<'a> {
    pub(super) node: Node<'a>,
    /// The whole object keeps unknown fields, so that they have fields of their own.
    open: bool,
    /// Compiled into Kubernetes: unset fields are left out rather than empty.
    pub(super) native: bool,
    depth: usize,
}

/// The source of the knowledge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// A whole object; `None` if it may be anything.
    Object(Option<&'a Schema>),
    Metadata,
    Known(&'a Schema),
    /// By the value.
    Deduced,
    /// One field, whatever it is.
    Untyped,
}

/// How a value is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    /// As one field.
    Leaf,
    /// By its fields.
    Map,
    /// By its items.
    List(Order<'a>),
}

/// What distinguishes the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order<'a> {
    /// They themselves.
    Set,
    /// These fields of them.
    Keys(&'a [String]),
}

/// What is known of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declared {
    /// The schema names it. Such a field is not managed for its own sake, only for its content.
    Named,
    /// It may be there, under any name.
    Allowed,
    Unknown,
}

impl<'a> Type<'a> {
    /// The type of whole objects.
    pub(super) fn object(schema: Option<&'a Schema>, native: bool) -> Self {
        let open = schema.is_none_or(|it| it.preserves_unknown || matches!(it.shape, Shape::Any));
        Self { node: Node::Object(schema), open, native, depth: 0 }
    }

    fn child(self, node: Node<'a>) -> Self {
        let node = if self.depth < DEPTH_MAX { node } else { Node::Untyped };
        Self { node, depth: self.depth.saturating_add(1), ..self }
    }

    /// Where nothing is said.
    fn unsaid(self) -> Node<'a> {
        if self.open { Node::Deduced } else { Node::Untyped }
    }

    pub(super) fn schema(self) -> Option<&'a Schema> {
        match self.node {
            Node::Object(schema) => schema,
            Node::Metadata => native::definition(OBJECT_META),
            Node::Known(schema) => Some(schema),
            Node::Deduced | Node::Untyped => None,
        }
    }

    /// How a value of this type is managed. A value that does not fit the schema is one field.
    pub(super) fn form(self, value: &Value) -> Form<'a> {
        let map = if value.is_object() || value.is_null() { Form::Map } else { Form::Leaf };
        match self.node {
            Node::Object(_) | Node::Metadata | Node::Deduced => map,
            Node::Untyped => Form::Leaf,
            Node::Known(schema) => match &schema.shape {
                Shape::Any if self.open => map,
                Shape::Any | Shape::Scalar(_) | Shape::Map { atomic: true, .. } => Form::Leaf,
                // Kept as it comes, in kinds that are otherwise known to the last field: the data of a ControllerRevision.
                Shape::Map { fields, rest: None, .. }
                    if self.native && fields.is_empty() && !is_nothing(value) =>
                {
                    Form::Leaf
                }
                Shape::Map { atomic: false, .. } => map,
                Shape::List { .. } => match order(schema) {
                    Some(order) if value.is_array() || value.is_null() => Form::List(order),
                    _ => Form::Leaf,
                },
            },
        }
    }

    /// Whether the schema says that maps or lists of this type are one field.
    pub(super) fn is_atomic(self) -> bool {
        let Node::Known(schema) = self.node else { return false };
        match schema.shape {
            Shape::Map { atomic, .. } => atomic,
            Shape::List { .. } => order(schema).is_none(),
            Shape::Any | Shape::Scalar(_) => false,
        }
    }

    /// The type of a field, and what the schema says of it.
    pub(super) fn field(self, name: &str) -> (Self, Declared) {
        let schema = match self.node {
            Node::Object(_) if name == "metadata" => {
                return (self.child(Node::Metadata), Declared::Named);
            }
            Node::Object(_) if name == "apiVersion" || name == "kind" => {
                return (self.child(Node::Known(&TEXT)), Declared::Named);
            }
            Node::Object(None) | Node::Deduced => {
                return (self.child(Node::Deduced), Declared::Allowed);
            }
            Node::Untyped => return (self.child(Node::Untyped), Declared::Allowed),
            Node::Metadata => match native::definition(OBJECT_META) {
                Some(schema) => schema,
                None => return (self.child(Node::Deduced), Declared::Allowed),
            },
            Node::Object(Some(schema)) | Node::Known(schema) => schema,
        };
        if schema.embedded && matches!(self.node, Node::Known(_)) && name == "metadata" {
            return (self.child(Node::Metadata), Declared::Named);
        }
        if schema.embedded && (name == "apiVersion" || name == "kind") {
            return (self.child(Node::Known(&TEXT)), Declared::Named);
        }
        let Shape::Map { fields, rest, .. } = &schema.shape else {
            return (self.child(self.unsaid()), Declared::Allowed);
        };
        let linked = |link: &'a crate::schema::Link| {
            link.schema().map_or_else(|| self.unsaid(), Node::Known)
        };
        if let Some(link) = fields.get(name) {
            return (self.child(linked(link)), Declared::Named);
        }
        let nameless = fields.is_empty() && !schema.embedded && matches!(self.node, Node::Known(_));
        match rest {
            Some(link) => (self.child(linked(link)), Declared::Allowed),
            // The real server does not look into a map of which nothing else is said than that it is one.
            None if nameless => (self.child(self.unsaid()), Declared::Allowed),
            None if schema.preserves_unknown || self.open => {
                (self.child(Node::Deduced), Declared::Allowed)
            }
            None => (self.child(self.unsaid()), Declared::Unknown),
        }
    }

    /// The type of the items of a list.
    pub(super) fn items(self) -> Self {
        let items = self.schema().and_then(Schema::items);
        self.child(items.map_or_else(|| self.unsaid(), Node::Known))
    }

    /// The type of the part of a value that an element of a path leads to.
    pub(super) fn part(self, element: &Element) -> (Self, Declared) {
        match element {
            Element::Field(name) => self.field(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => {
                (self.items(), Declared::Allowed)
            }
        }
    }

    /// What distinguishes an item of a list of this type from the others; or why nothing does.
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

    /// What a missing key of an item stands for.
    fn default_of(self, key: &str) -> Option<Value> {
        let field = self.schema().and_then(Schema::items)?.field(key)?;
        if let Some(default) = &field.default {
            return Some(default.clone());
        }
        // Required fields of native kinds have the zero value of their type in the real server, and are checked later.
        match &field.shape {
            Shape::Scalar(_) if !self.native => None,
            Shape::Scalar(_) if key == "protocol" => Some("TCP".into()),
            Shape::Scalar(crate::schema::Scalar::Text) => Some("".into()),
            Shape::Scalar(_) => Some(0.into()),
            Shape::Any | Shape::Map { .. } | Shape::List { .. } => None,
        }
    }
}

/// What distinguishes the items; nothing if the list is one field. Native kinds mostly say it for patches only.
fn order(schema: &Schema) -> Option<Order<'_>> {
    match schema.list_type() {
        ListType::Set => Some(Order::Set),
        ListType::Map(keys) => Some(Order::Keys(keys)),
        ListType::Atomic => None,
    }
}
