//! Reads what API servers send to webhooks: a review of either kind.

use bytes::Bytes;
use kopf_json::{depth, review};
use serde_json::Value;

use super::{
    conversion::{self, ConversionReview},
    review::{Review, ReviewError, malformed},
};

/// A review of either kind.
#[derive(Debug)]
pub enum AnyReview {
    /// Of an object that is about to be stored.
    Admission(Box<Review>),
    /// Of objects to convert.
    Conversion(ConversionReview),
}

impl AnyReview {
    /// Reads the body of a request. The objects of an admission review do not become trees.
    ///
    /// # Errors
    /// Fails if it is not JSON, or not a complete review.
    pub fn parse(body: &Bytes) -> Result<Self, ReviewError> {
        if let Ok(mut text) = review::review(body) {
            if conversion::is_review(&text.review) {
                let request = text.request.map(|it| ("request".to_owned(), Value::Object(it)));
                text.review.extend(request);
                let review = Value::Object(text.review);
                return ConversionReview::of(review).map(AnyReview::Conversion);
            }
            if let Ok(review) = Review::of_text(body, text) {
                return review.map(|it| AnyReview::Admission(Box::new(it)));
            }
        }
        // What only a tree can hold, and errors with their place in the whole body.
        let read = depth::value(body);
        let read =
            read.map_err(|error| malformed(format!("the body is not valid JSON: {error}")))?;
        let Value::Object(review) = read else {
            return Err(malformed("the body is not a JSON object"));
        };
        if conversion::is_review(&review) {
            return ConversionReview::of(Value::Object(review)).map(AnyReview::Conversion);
        }
        Review::of_tree(review).map(|it| AnyReview::Admission(Box::new(it)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: impl Into<Bytes>) -> Result<AnyReview, ReviewError> {
        AnyReview::parse(&text.into())
    }

    fn review(object: &str, old: &str) -> String {
        let resource = r#"{"group":"","version":"v1","resource":"pods"}"#;
        let request = format!(
            r#""uid":"1","userInfo":{{}},"resource":{resource},"object":{object},"oldObject":{old}"#
        );
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{{request}}}}}"#
        )
    }

    fn request(text: String) -> crate::logic::admission::review::ReviewedRequest {
        match parse(text).expect("a review") {
            AnyReview::Admission(mut review) => review.take_request().expect("a request"),
            AnyReview::Conversion(_) => panic!("a conversion"),
        }
    }

    #[test]
    fn objects_of_both_forms_have_the_same_bodies_headers_and_managed_fields() {
        let object = r#"{"kind":"Pod","metadata":{"name":"a","labels":{"x":"y"},"managedFields":[{"manager":"m"}]},"spec":{"n":1}}"#;
        // A repeated key is left to trees.
        let repeated = object.replace(r#""n":1"#, r#""n":0,"n":1"#);
        let both = [object, &repeated].map(|it| request(review(it, object)));
        let whole = json!({
            "kind": "Pod", "metadata": { "name": "a", "labels": { "x": "y" }, "managedFields": [{ "manager": "m" }] }, "spec": { "n": 1 },
        });
        let body = json!({ "kind": "Pod", "metadata": { "name": "a", "labels": { "x": "y" } }, "spec": { "n": 1 } });
        for it in &both {
            assert_eq!(**it.object.body(), body);
            assert_eq!(it.new_object().map(|it| &**it), Some(&whole));
            assert_eq!(it.old_object().map(|it| &**it), Some(&whole));
            assert_eq!(it.object.header(), both[0].object.header());
            assert!(it.diff().is_empty());
        }
    }

    #[test]
    fn the_object_of_a_deletion_is_the_old_one() {
        let it = request(review("null", r#"{"metadata":{"name":"a"}}"#));
        assert_eq!(it.object.header().name.as_deref(), Some("a"));
        assert!(it.new_object().is_none());
    }

    #[test]
    fn a_conversion_has_its_objects() {
        let request =
            r#"{"uid":"1","desiredAPIVersion":"kopf.dev/v2","objects":[{"a":1},{"a":2}]}"#;
        let text = format!(r#"{{"kind":"ConversionReview","request":{request}}}"#);
        let Ok(AnyReview::Conversion(review)) = parse(text) else { panic!("no conversion") };
        assert_eq!(review.version, "v2");
        assert_eq!(Value::from_iter(review.objects), json!([{ "a": 1 }, { "a": 2 }]));
    }

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        let complete = review("{}", "null");
        for (text, expected) in [
            ("[]".to_owned(), "the body is not a JSON object"),
            ("{}".to_owned(), "the review has no field `request`"),
            (r#"{"request":1}"#.to_owned(), "the review has no field `request`"),
            (
                complete.replace("\"uid\":\"1\"", "\"uid\":"),
                "the body is not valid JSON: expected value at line 1 column 79",
            ),
            (
                review(r#"{"a":1e999}"#, "null"),
                "the body is not valid JSON: number out of range at line 1 column 172",
            ),
            (
                complete.replace("\"version\":\"v1\",", ""),
                "the request has no field `resource.version`",
            ),
        ] {
            let error = parse(text.clone()).map(drop).expect_err("an error");
            assert_eq!(error.to_string(), expected, "{text}");
        }
        for (text, expected) in [
            (
                review("null", "null"),
                "Either old or new object is missing from the admission request.",
            ),
            (review("[]", "null"), "the object of the admission request is not a JSON object"),
            (review("1", "null"), "the object of the admission request is not a JSON object"),
            (
                complete.replace("\"userInfo\":{},", ""),
                "User info is missing from the admission request.",
            ),
        ] {
            let Ok(AnyReview::Admission(mut review)) = parse(text) else { panic!("no review") };
            assert_eq!(
                review.take_request().map(drop).expect_err("an error").to_string(),
                expected
            );
        }
    }
}
