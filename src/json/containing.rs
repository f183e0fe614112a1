//! Checks whether the JSON text of an object contains a structure, without building the tree of the object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::depth;

/// Returns whether the text has all of these fields with these values; maps may have further fields. A null matches an absent field.
/// Servers repeat no key, so that is not checked.
pub fn contains(raw: &[u8], part: &Map<String, Value>) -> bool {
    depth::read(raw, |it| it.deserialize_map(RequiredFields::<false> { part, except: &[] })).is_ok()
}

/// Returns whether the text has exactly these fields with these values; those of the keys in `except` are compared in neither.
pub fn has_exactly(raw: &[u8], fields: &Map<String, Value>, except: &[&str]) -> bool {
    depth::read(raw, |it| it.deserialize_map(RequiredFields::<true> { part: fields, except }))
        .is_ok()
}

/// A value of the text that must be equal to this one; unless `EXACT`, its maps may have further fields.
struct Equal<'a, const EXACT: bool>(&'a Value);

impl<'de, const EXACT: bool> DeserializeSeed<'de> for Equal<'_, EXACT> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, const EXACT: bool> Visitor<'de> for Equal<'_, EXACT> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        found(self.0.is_null())
    }

    fn visit_bool<E: Error>(self, it: bool) -> Result<(), E> {
        found(*self.0 == it)
    }

    fn visit_i64<E: Error>(self, it: i64) -> Result<(), E> {
        found(*self.0 == it)
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<(), E> {
        found(*self.0 == it)
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<(), E> {
        found(self.0.as_number() == Number::from_f64(it).as_ref())
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<(), E> {
        found(self.0 == it)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Value::Array(items) = self.0 else { return found(false) };
        for item in items {
            found(list.next_element_seed(Equal::<EXACT>(item))?.is_some())?;
        }
        found(list.next_element::<IgnoredAny>()?.is_none())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let Some(part) = self.0.as_object() else { return found(false) };
        RequiredFields::<EXACT> { part, except: &[] }.visit_map(map)
    }
}

/// A map of the text that must have these fields. If `EXACT`, it must have no others, except those of some keys.
struct RequiredFields<'a, const EXACT: bool> {
    part: &'a Map<String, Value>,
    except: &'a [&'a str],
}

impl<'de, const EXACT: bool> Visitor<'de> for RequiredFields<'_, EXACT> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let is_required = |it: &Value| EXACT || !it.is_null();
        let is_compared = |key: &str| !self.except.contains(&key);
        let part = self.part.iter().filter(|(key, _)| is_compared(key));
        let mut missing = part.filter(|(_, it)| is_required(it)).count();
        while let Some(field) = map.next_key_seed(RequiredKey(self.part, self.except))? {
            match field {
                Field::Required(value) => {
                    map.next_value_seed(Equal::<EXACT>(value))?;
                    missing = missing.saturating_sub(usize::from(is_required(value)));
                }
                Field::Other if EXACT => return found(false),
                Field::Other | Field::Excepted => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        found(missing == 0)
    }
}

/// A field of the text.
enum Field<'a> {
    /// Its value must be equal to this one.
    Required(&'a Value),
    /// Its value does not matter.
    Excepted,
    Other,
}

/// A key of the text, looked up in this map unless it is in this list.
struct RequiredKey<'a>(&'a Map<String, Value>, &'a [&'a str]);

impl<'de, 'a> DeserializeSeed<'de> for RequiredKey<'a> {
    type Value = Field<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for RequiredKey<'a> {
    type Value = Field<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if self.1.contains(&key) {
            return Ok(Field::Excepted);
        }
        Ok(self.0.get(key).map_or(Field::Other, Field::Required))
    }
}

/// Ends the reading at the first difference.
fn found<E: Error>(is_equal: bool) -> Result<(), E> {
    if is_equal { Ok(()) } else { Err(E::custom("it is different")) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{contains, has_exactly};

    fn is_in(part: &Value, text: &str) -> bool {
        contains(text.as_bytes(), part.as_object().unwrap())
    }

    #[test]
    fn every_kind_of_value_is_compared() {
        let text =
            r#"{"a": [1, -2, 0.5, "x", null, true, {"b": {}}], "c": {"d": "\u00e9", "e": 1}}"#;
        for part in [
            json!({}),
            json!({"a": [1, -2, 0.5, "x", null, true, {"b": {}}]}),
            json!({"c": {"d": "é"}}),
            json!({"c": {}}),
            json!({"c": {"e": 1, "gone": null}, "gone": null}),
        ] {
            assert!(is_in(&part, text), "{part}");
        }
        for part in [
            json!({"a": []}),
            json!({"a": [1, -2, 0.5, "x", null, true]}),
            json!({"a": [1, -2, 0.5, "x", null, true, {"b": {}}, 2]}),
            json!({"a": {}}),
            json!({"a": null}),
            json!({"b": 1}),
            json!({"b": {}}),
            json!({"c": {"d": "e"}}),
            json!({"c": {"e": true}}),
            json!({"c": {"e": 2}}),
            json!({"c": {"e": 1.5}}),
            json!({"c": "d"}),
            json!({"c": {"d": null}}),
        ] {
            assert!(!is_in(&part, text), "{part}");
        }
    }

    #[test]
    fn exactly_these_fields_are_no_more_and_no_fewer() {
        let text = r#"{"kind": "K", "spec": {"a": [{"b": null}], "c": 1}, "status": {"x": 1}}"#;
        let is_exact = |fields: &Value| {
            has_exactly(
                text.as_bytes(),
                fields.as_object().unwrap(),
                &["kind", "status", "metadata"],
            )
        };
        assert!(is_exact(&json!({"spec": {"a": [{"b": null}], "c": 1}})));
        let metadata = json!({"labels": {"a": "b"}});
        assert!(is_exact(
            &json!({"spec": {"a": [{"b": null}], "c": 1}, "kind": "L", "metadata": metadata})
        ));
        for fields in [
            json!({}),
            json!({"spec": {}}),
            json!({"spec": {"a": [{"b": null}]}}),
            json!({"spec": {"a": [{}], "c": 1}}),
            json!({"spec": {"a": [{"b": null, "d": null}], "c": 1}}),
            json!({"spec": {"a": [{"b": null}], "c": 1, "d": null}}),
            json!({"spec": {"a": [{"b": null}], "c": 1}, "d": null}),
        ] {
            assert!(!is_exact(&fields), "{fields}");
        }
        assert!(!has_exactly(b"{\"a\":1", json!({"a": 1}).as_object().unwrap(), &[]));
    }

    #[test]
    fn damaged_texts_contain_nothing() {
        let part = json!({"a": 1});
        assert!(is_in(&part, r#"{"a": 1}"#));
        for text in [r#"{"a": 1"#, r#"{"a": 1}}"#, "", "[]", "null"] {
            assert!(!is_in(&part, text), "{text}");
        }
    }
}
