//! Reviews of API servers, without building trees of the reviewed objects.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use super::depth;

/// A review whose objects are still text.
#[derive(Debug, Default)]
pub struct ReviewText<'a> {
    /// Everything around the request.
    pub review: Map<String, Value>,
    /// The request without its objects; `None` if there is none.
    pub request: Option<Map<String, Value>>,
    /// The text of `request.object`, which may be `null`. Its structure is JSON; its strings and numbers are not checked yet.
    pub object: Option<&'a str>,
    /// The text of `request.oldObject`.
    pub old_object: Option<&'a str>,
}

/// Reads a review.
///
/// # Errors
/// Fails if the text is not JSON, or if the review or its request is not a map.
pub fn review(text: &[u8]) -> Result<ReviewText<'_>, serde_json::Error> {
    depth::read(text, |deserializer| {
        let mut read = ReviewText::default();
        ReviewReader { read: &mut read, is_request: false }.deserialize(deserializer)?;
        Ok(read)
    })
}

/// Reads the review, or the request in it.
struct ReviewReader<'a, 'r> {
    read: &'r mut ReviewText<'a>,
    is_request: bool,
}

impl<'de> DeserializeSeed<'de> for ReviewReader<'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReviewReader<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ReviewReader { read, is_request } = self;
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match (is_request, key.as_str()) {
                (false, "request") => {
                    map.next_value_seed(ReviewReader { read, is_request: true })?;
                }
                (true, "object") => read.object = Some(map.next_value::<&RawValue>()?.get()),
                (true, "oldObject") => read.old_object = Some(map.next_value::<&RawValue>()?.get()),
                _ => drop(fields.insert(key, map.next_value()?)),
            }
        }
        if is_request {
            read.request = Some(fields);
        } else {
            read.review = fields;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_objects_of_a_review_stay_text() {
        let text = br#"{"kind":"AdmissionReview","request":{"uid":"x","object":{"a": [1]},"oldObject":null},"apiVersion":"v1"}"#;
        let read = review(text).expect("JSON");
        assert_eq!(
            Value::Object(read.review),
            json!({ "kind": "AdmissionReview", "apiVersion": "v1" })
        );
        assert_eq!(read.request.map(Value::Object), Some(json!({ "uid": "x" })));
        assert_eq!((read.object, read.old_object), (Some(r#"{"a": [1]}"#), Some("null")));
    }

    #[test]
    fn what_is_no_review_is_refused() {
        for text in [
            "[]",
            r#"{"request":[]}"#,
            r#"{"request":{"object":{"a":}}}"#,
            r#"{"request":{}"#,
            "{} {}",
        ] {
            assert!(review(text.as_bytes()).is_err(), "{text}");
        }
        assert!(review(b"{}").expect("a map").request.is_none());
    }
}
