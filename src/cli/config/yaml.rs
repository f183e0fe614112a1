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
pub(super) struct YamlNode {
    /// Its first line, from 1.
    pub(super) line: u64,
    pub(super) content: YamlContent,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlContent {
    Map(Vec<YamlEntry>),
    List(Vec<YamlNode>),
    Scalar(Value),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlEntry {
    /// The line of the key.
    pub(super) line: u64,
    pub(super) key: String,
    pub(super) value: YamlNode,
}

/// Parses a file; a file without content is an empty map. The error contains the line and the reason.
pub(super) fn parse(text: &str) -> Result<YamlNode, (u64, String)> {
    let parsed: Result<Spanned<YamlContent>, _> = serde_saphyr::from_str(text);
    match parsed {
        Ok(root) => Ok(YamlNode { line: root.referenced.line(), content: root.value }),
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

impl YamlNode {
    /// Returns the value without lines.
    pub(super) fn plain(&self) -> Value {
        match &self.content {
            YamlContent::Map(entries) => {
                Value::Object(entries.iter().map(|it| (it.key.clone(), it.value.plain())).collect())
            }
            YamlContent::List(items) => items.iter().map(YamlNode::plain).collect(),
            YamlContent::Scalar(value) => value.clone(),
        }
    }
}

impl From<Spanned<YamlContent>> for YamlNode {
    fn from(spanned: Spanned<YamlContent>) -> YamlNode {
        YamlNode { line: spanned.referenced.line(), content: spanned.value }
    }
}

impl<'de> Deserialize<'de> for YamlContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = YamlContent;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlContent, D::Error> {
        YamlContent::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlContent, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<YamlContent>>()? {
            list.push(item.into());
        }
        Ok(YamlContent::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<YamlContent, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = fields.next_key::<Spanned<String>>()? {
            let value = fields.next_value::<Spanned<YamlContent>>()?;
            let line = key.referenced.line();
            entries.push(YamlEntry { line, key: key.value, value: value.into() });
        }
        Ok(YamlContent::Map(entries))
    }
}
