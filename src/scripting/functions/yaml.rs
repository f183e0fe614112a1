//! `yaml`: the dialect of Kubernetes, with a limit on the expansion of aliases.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::DeserializeSeed as _,
    ser::{Error as _, SerializeMap as _, SerializeSeq as _},
};
use serde_json::Value;

use super::{
    Call,
    bounds::ITEMS_MAX,
    pace,
    tree::{self, CountingReader},
};
use crate::logic::text::size;
use crate::scripting::functions::{
    outcome::{Failure, Outcome},
    types::{Library, Type, immediate, required},
};

/// Maximum nesting of lists and maps: the parser's own limit, because it recurses with large frames.
const DEPTH_MAX: usize = 64;
/// Maximum number of parser events: starts and ends count in addition to the items.
const EVENTS_MAX: usize = 4 * ITEMS_MAX;
/// Maximum bytes of a source: a long scalar is read in one step.
const TEXT_MAX: usize = 4 << 20;
/// Maximum number of documents of one source.
const DOCUMENTS_MAX: usize = 10_000;

pub(super) const LIBRARY: Library = Library {
    name: "yaml",
    doc: "Encodes and decodes YAML.",
    functions: &[
        immediate(
            "encode",
            "Encodes a value as one YAML document.",
            &[required("value", Type::Any, "Any data.")],
            Type::Text,
            |call| Ok(Value::from(write(call.value("value"))?).into()),
        ),
        immediate(
            "encode_all",
            "Encodes several values as YAML documents, separated by `---`.",
            &[required("list", Type::List, "One value for each document.")],
            Type::Text,
            |call| {
                let documents: Result<Vec<_>, _> = call.list("list").iter().map(write).collect();
                Ok(Value::from(documents?.join("---\n")).into())
            },
        ),
        immediate(
            "decode",
            "Decodes a YAML string with at most one document; an empty string is nil.",
            &[required(
                "text",
                Type::Text,
                "The string, at most 4 MiB and 64 levels deep; more is an error.",
            )],
            Type::Any,
            |call| Ok(read(text(call)?)?.into()),
        ),
        immediate(
            "decode_all",
            "Decodes all documents of a YAML string, such as a bundle of manifests; empty documents are ignored.",
            &[required(
                "text",
                Type::Text,
                "At most 10000 documents, separated by `---`, of at most 4 MiB; more are an error.",
            )],
            Type::List,
            decode_all,
        ),
    ],
};

/// Returns the source to read.
fn text(call: &Call) -> Result<&str, Failure> {
    let text = call.text("text");
    if text.len() > TEXT_MAX {
        return Err(format!("`text`: longer than {}", size::shown(TEXT_MAX)).into());
    }
    Ok(text)
}

/// A value that is written with checks of the time.
struct Paced<'a>(&'a Value);

impl Serialize for Paced<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let step =
            |place| pace::short_step(place).map_err(|it| S::Error::custom(it.into_message()));
        match self.0 {
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for (place, item) in items.iter().enumerate() {
                    step(place)?;
                    list.serialize_element(&Paced(item))?;
                }
                list.end()
            }
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (place, (key, field)) in fields.iter().enumerate() {
                    step(place)?;
                    map.serialize_entry(key, &Paced(field))?;
                }
                map.end()
            }
            it @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                it.serialize(serializer)
            }
        }
    }
}

/// Returns a value as a document.
pub(super) fn write(value: &Value) -> Result<String, String> {
    // Long lines are not split: some readers join them differently.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let written = serde_saphyr::to_string_with_options(&Paced(value), options);
    let mut text = written.map_err(|it| format!("cannot be written as YAML: {it}"))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// A document of a source; all documents together have at most as many items as one value may have.
struct YamlDocument(Value);

impl<'de> Deserialize<'de> for YamlDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let left = tree::room();
        CountingReader::within(&left).deserialize(deserializer).map(YamlDocument)
    }
}

/// Returns the only document of a source; null if there is none.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut documents = read_all(text)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.remove(0)),
        many => Err(format!("there are {many} documents; use yaml.decode_all")),
    }
}

pub(super) fn read_all(text: &str) -> Result<Vec<Value>, String> {
    if text.trim().is_empty() && !text.contains('\t') {
        return Ok(Vec::new());
    }
    let documents: Result<Vec<YamlDocument>, _> =
        serde_saphyr::from_str_multiple_with_options(text, options());
    let documents = documents.map_err(|it| {
        let message = it.without_snippet().to_string();
        format!("invalid YAML: {}", message.lines().next().unwrap_or_default())
    })?;
    Ok(documents.into_iter().map(|YamlDocument(it)| it).collect())
}

fn decode_all(call: &Call) -> Outcome {
    let documents = read_all(text(call)?)?;
    Ok(documents.into_iter().filter(|it| !it.is_null()).collect::<Value>().into())
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: EVENTS_MAX,
        },
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_events: EVENTS_MAX,
            max_nodes: EVENTS_MAX,
            max_documents: DOCUMENTS_MAX,
        },
    }
}
