//! Objects as scripts get them: trees without managed fields and without nulls, each made in one pass over the answer.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// The suffix of the kind of a list, as in `PodList`.
const LIST_SUFFIX: &str = "List";
/// Written at every change by every client, longer than the rest of many objects, and of no use to operators.
const MANAGED_FIELDS: &str = "managedFields";

/// A part of a list.
#[derive(Debug, Default, PartialEq)]
pub struct ListPart {
    /// The objects, with their kind and version.
    pub objects: Vec<Value>,
    /// What the next part is asked for with; `None` at the end.
    pub token: Option<String>,
}

/// Reads an object.
///
/// # Errors
/// It is no JSON, or no object.
pub fn read_object(raw: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Plain>(raw).map(|it| Value::Object(it.0))
}

/// Reads an answer to a list request.
///
/// # Errors
/// It is no JSON, or no list of objects.
pub fn read_list(raw: &[u8]) -> Result<ListPart, serde_json::Error> {
    let list: List = serde_json::from_slice(raw)?;
    let kind = list.kind.unwrap_or_default();
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

/// The fields of an object.
struct Plain(Map<String, Value>);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Place::Object.deserialize(deserializer)? {
            Value::Object(fields) => Ok(Plain(fields)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(D::Error::custom("expected an object")),
        }
    }
}

/// Where in an object we are while its tree is made.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    Inside,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match self {
            Place::Object if key == "metadata" => Place::Metadata,
            Place::Object | Place::Metadata | Place::Inside => Place::Inside,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E: Error>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E: Error>(self, it: String) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Place::Inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if matches!(self, Place::Metadata) && key == MANAGED_FIELDS {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value_seed(self.below(&key))?;
            if !value.is_null() {
                fields.insert(key, value);
            }
        }
        Ok(Value::Object(fields))
    }
}
