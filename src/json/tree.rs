//! Trees of objects without managed fields, built in one pass: unused parts are skipped.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{depth, managed_fields};

/// Returns the tree without managed fields.
///
/// # Errors
/// Fails if the text is not an object, or is nested too deep.
pub fn body(raw: &[u8]) -> Result<Value, serde_json::Error> {
    match depth::read(raw, |it| whole(it)) {
        // The managed fields may be the reason.
        Err(_) if depth::may_exceed(raw, depth::DEPTH_MAX) => {
            depth::read(&managed_fields::without(raw)?, |it| whole(it))
        }
        read => read,
    }
}

/// Returns the nesting depth if it is too deep. Managed fields repeat the nesting, and are not read.
///
/// Not inlined into callers that are compiled for size, where counting takes ten times as long.
#[inline(never)]
pub fn excess(raw: &[u8]) -> Option<usize> {
    if !depth::may_exceed(raw, depth::DEPTH_MAX) || depth::depth(raw) <= depth::DEPTH_MAX {
        return None;
    }
    let depth = match managed_fields::without(raw) {
        Ok(text) => depth::depth(&text),
        Err(_) => depth::depth(raw),
    };
    Some(depth).filter(|it| *it > depth::DEPTH_MAX)
}

/// Reads an object as a tree, including nulls.
fn whole<'de, D: Deserializer<'de>>(object: D) -> Result<Value, D::Error> {
    TreeBuilder::<true>(TreeLevel::Object).deserialize(object)
}

/// Reads an object as a tree without fields that are null.
///
/// # Errors
/// Fails if it is not JSON.
pub(super) fn without_nulls<'de, D: Deserializer<'de>>(object: D) -> Result<Value, D::Error> {
    TreeBuilder::<false>(TreeLevel::Object).deserialize(object)
}

/// The position in an object while its tree is built.
#[derive(Clone, Copy)]
enum TreeLevel {
    Object,
    Metadata,
    Inside,
}

impl TreeLevel {
    /// Returns the position below a key; `None` if its value is left out.
    fn below(self, key: &str) -> Option<Self> {
        match self {
            TreeLevel::Object if key == "metadata" => Some(TreeLevel::Metadata),
            TreeLevel::Metadata if key == managed_fields::KEY => None,
            TreeLevel::Object | TreeLevel::Metadata | TreeLevel::Inside => Some(TreeLevel::Inside),
        }
    }
}

/// Builds one value of the tree. The parameter is resolved at compile time, because every object is read here.
struct TreeBuilder<const WITH_NULLS: bool>(TreeLevel);

impl<'de, const WITH_NULLS: bool> DeserializeSeed<'de> for TreeBuilder<WITH_NULLS> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, const WITH_NULLS: bool> Visitor<'de> for TreeBuilder<WITH_NULLS> {
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
        while let Some(item) = list.next_element_seed(Self(TreeLevel::Inside))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match self.0.below(&key) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                // Nothing below needs a check: the fastest path.
                Some(TreeLevel::Inside) if WITH_NULLS => map.next_value()?,
                Some(place) => map.next_value_seed(Self(place))?,
            };
            if WITH_NULLS || !value.is_null() {
                fields.insert(key, value);
            }
        }
        Ok(Value::Object(fields))
    }
}
