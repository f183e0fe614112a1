//! Responses of API servers: objects in the form that scripts get (trees without managed fields and without nulls, each built in one pass),
//! and lists whose objects stay texts.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use super::{depth, tree};

/// The suffix of the kind of a list, as in `PodList`.
pub const LIST_SUFFIX: &str = "List";

/// One page of a list.
#[derive(Debug, Default, PartialEq)]
pub struct ListPart {
    /// The objects, with their kind and version.
    pub objects: Vec<Value>,
    /// The token of the next page; `None` at the end.
    pub token: Option<String>,
}

/// One page of a list whose objects stay JSON texts.
#[derive(Debug, Default)]
pub struct ListOfTexts<'a> {
    /// `apiVersion` of objects that have none; may be empty.
    pub api_version: Cow<'a, str>,
    /// `kind` of the list.
    pub kind: Cow<'a, str>,
    /// `metadata.resourceVersion`
    pub version: Option<Cow<'a, str>>,
    /// The token of the next page; `None` at the end.
    pub token: Option<Cow<'a, str>>,
    /// The objects.
    pub items: Vec<&'a str>,
}

/// Reads an object.
///
/// # Errors
/// Fails if the response is not JSON, or not an object.
pub fn read_object(raw: &[u8]) -> Result<Value, serde_json::Error> {
    depth::read(raw, |it| Plain::deserialize(it)).map(|it| Value::Object(it.0))
}

/// Reads the response to a list request.
///
/// # Errors
/// Fails if the response is not JSON, or not a list of objects.
pub fn read_list(raw: &[u8]) -> Result<ListPart, serde_json::Error> {
    let list = depth::read(raw, |it| List::deserialize(it))?;
    let kind = list.kind.unwrap_or_default();
    if list.items.is_none() {
        require_list(&kind)?;
    }
    let of_list = [
        ("kind", kind.strip_suffix(LIST_SUFFIX).unwrap_or(&kind)),
        ("apiVersion", list.api_version.as_deref().unwrap_or_default()),
    ];
    let whole = |Plain(mut fields)| {
        for (key, value) in of_list {
            if !value.is_empty() && !fields.contains_key(key) {
                fields.shift_insert(0, key.to_owned(), value.into());
            }
        }
        Value::Object(fields)
    };
    let token = list.metadata.and_then(|it| it.r#continue).filter(|it| !it.is_empty());
    let objects = list.items.unwrap_or_default().into_iter().map(whole).collect();
    Ok(ListPart { objects, token })
}

/// Reads the response to a list request with its objects as they are: with managed fields, and without a kind and version of their own.
///
/// # Errors
/// Fails if the response is not JSON, or not a list.
pub fn read_raw_list(raw: &[u8]) -> Result<ListPart, serde_json::Error> {
    let mut list = read_object(raw)?;
    let text = |path: &str| list.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let token = Some(text("/metadata/continue").to_owned()).filter(|it| !it.is_empty());
    if list.get("items").is_none() {
        require_list(text("/kind"))?;
    }
    let objects = list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
    Ok(ListPart { objects: objects.unwrap_or_default(), token })
}

/// Reads the response to a list request without reading its objects.
///
/// # Errors
/// Fails if the response is not JSON, or not a list of objects.
pub fn read_texts(raw: &[u8]) -> Result<ListOfTexts<'_>, serde_json::Error> {
    let RawPage { api_version, kind, metadata, items } = serde_json::from_slice(raw)?;
    let kind = kind.unwrap_or_default();
    if items.is_none() {
        require_list(&kind)?;
    }
    let RawMeta { resource_version, r#continue } = metadata.unwrap_or_default();
    Ok(ListOfTexts {
        api_version: api_version.unwrap_or_default(),
        kind,
        version: resource_version,
        token: r#continue.filter(|it| !it.is_empty()),
        items: items.unwrap_or_default().into_iter().map(RawValue::get).collect(),
    })
}

/// Checks that an object without items is of the kind of a list. The page of a proxy is not an empty list: all objects would count as deleted.
fn require_list(kind: &str) -> Result<(), serde_json::Error> {
    if kind.ends_with(LIST_SUFFIX) {
        return Ok(());
    }
    Err(serde_json::Error::custom("expected a list, it has no items"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<ListMeta>,
    items: Option<Vec<Plain>>,
}

#[derive(Deserialize)]
struct ListMeta {
    r#continue: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: Option<RawMeta<'a>>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta<'a> {
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    r#continue: Option<Cow<'a, str>>,
}

/// The fields of an object.
struct Plain(Map<String, Value>);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match tree::without_nulls(deserializer)? {
            Value::Object(fields) => Ok(Plain(fields)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(D::Error::custom("expected an object")),
        }
    }
}
