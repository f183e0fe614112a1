//! Reads values of JSON and YAML with a limit on their number, so that a short source does not become a large tree.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{bounds::ITEMS_MAX, pace};
use crate::scripting::values::limits;

/// Reads a value, and counts its items.
#[derive(Clone, Copy)]
pub(super) struct CountingReader<'a> {
    left: &'a Cell<usize>,
}

/// Returns the number of items that a source may have.
pub(super) fn room() -> Cell<usize> {
    Cell::new(ITEMS_MAX)
}

impl<'a> CountingReader<'a> {
    /// Reads a value with at most as many items as are left.
    pub(super) fn within(left: &'a Cell<usize>) -> Self {
        CountingReader { left }
    }

    fn take<E: Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        let full = || E::custom(limits::too_many_items("the result", ITEMS_MAX));
        let left = left.ok_or_else(full)?;
        self.left.set(left);
        pace::short_step(left).map_err(|it| E::custom(it.into_message()))
    }
}

/// Reads one JSON value.
pub(super) fn json(text: &str) -> Result<Value, String> {
    let left = room();
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = CountingReader::within(&left).deserialize(&mut reader);
    let read = read.and_then(|it| reader.end().map(|()| it));
    read.map_err(|error| format!("invalid JSON: {error}"))
}

impl<'de> DeserializeSeed<'de> for CountingReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CountingReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<Value, E> {
        let number = Number::from_f64(it).map(Value::Number);
        number.ok_or_else(|| E::custom(crate::scripting::values::refused::NOT_FINITE))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.take()?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            self.take()?;
            map.insert(key, fields.next_value_seed(self)?);
        }
        Ok(Value::Object(map))
    }
}
