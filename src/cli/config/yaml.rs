//! Reads YAML with the line of each value, so that errors have a location.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its first line, from 1.
    pub(super) line: u64,
    pub(super) content: Content,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Map(Vec<Entry>),
    List(Vec<Node>),
    Scalar(Value),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The line of the key.
    pub(super) line: u64,
    pub(super) key: String,
    pub(super) value: Node,
}

/// Parses a file; a file without content is an empty map. The error contains the line and the reason.
pub(super) fn parse(text: &str) -> Result<Node, (u64, String)> {
    let parsed: Result<Spanned<Content>, _> = serde_saphyr::from_str(text);
    match parsed {
        Ok(root) => Ok(Node { line: root.referenced.line(), content: root.value }),
        Err(problem) => {
            let line = problem.location().map_or(1, |it| it.line());
            let text = problem.without_snippet().to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.split(" at line ").next().unwrap_or_default();
            // The rest is advice for programmers.
            let text = text.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
            Err((line, text.strip_prefix("error: ").unwrap_or(text).to_owned()))
        }
    }
}

impl Node {
    /// Returns the value without lines.
    pub(super) fn plain(&self) -> Value {
        match &self.content {
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|it| (it.key.clone(), it.value.plain())).collect())
            }
            Content::List(items) => items.iter().map(Node::plain).collect(),
            Content::Scalar(value) => value.clone(),
        }
    }
}

impl From<Spanned<Content>> for Node {
    fn from(spanned: Spanned<Content>) -> Node {
        Node { line: spanned.referenced.line(), content: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Content>>()? {
            list.push(item.into());
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = fields.next_key::<Spanned<String>>()? {
            let value = fields.next_value::<Spanned<Content>>()?;
            let line = key.referenced.line();
            entries.push(Entry { line, key: key.value, value: value.into() });
        }
        Ok(Content::Map(entries))
    }
}
