//! Stored essences of all sizes.

use serde_json::{Map, Value, json};

use super::{fetch, is_stored, store};
use crate::settings::PersistenceSettings;

const NAME: &str = "kopf.zalando.org/last-handled-configuration";
/// The limit of Kubernetes on all annotations of an object.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Returns text that deflates badly.
fn noise(length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|_| random.alphanumeric()).collect()
}

/// Returns the annotation that is stored for an essence on an object with these annotations.
fn stored(essence: &Value, annotations: &Value) -> String {
    let body = json!({ "metadata": { "annotations": annotations } });
    let mut patch = Map::new();
    store(&PersistenceSettings::default().diffbase_storage, &body, essence, &mut patch);
    patch["metadata"]["annotations"][NAME].as_str().expect("text").to_owned()
}

fn body(text: &str) -> Value {
    json!({ "metadata": { "annotations": { NAME: text } } })
}

fn read(text: &str) -> Value {
    let storage = PersistenceSettings::default().diffbase_storage;
    fetch(&storage, &body(text)).expect("readable").expect("stored")
}

fn is_same(text: &str, essence: &Value) -> bool {
    is_stored(&PersistenceSettings::default().diffbase_storage, &body(text), essence)
}

#[test]
fn an_essence_that_fits_is_kept_as_plain_json() {
    let essence = json!({ "spec": { "text": "x".repeat(100_000) } });
    assert_eq!(stored(&essence, &json!({})), format!("{essence}\n"));
}

#[test]
fn a_big_essence_is_deflated_and_read_back_in_full() {
    let essence = json!({ "spec": { "text": "abc ".repeat(200_000) } });
    let text = stored(&essence, &json!({}));
    assert!(text.len() < 10_000, "{} bytes", text.len());
    assert_eq!(read(&text), essence);
}

#[test]
fn the_annotations_of_others_leave_less_room() {
    let essence = json!({ "spec": { "text": "abc ".repeat(20_000) } });
    let plain = stored(&essence, &json!({}));
    let text = stored(&essence, &json!({ "other": "y".repeat(200_000) }));
    assert!(text.len() < plain.len());
    assert_eq!(read(&text), essence);
}

#[test]
fn an_essence_that_cannot_be_deflated_is_recognized_by_its_digest() {
    let (text, n) = (noise(900_000), 1);
    let essence = json!({ "spec": { "text": text, "n": n } });
    let kept = stored(&essence, &json!({}));
    assert!(kept.len() < 200);
    assert!(is_same(&kept, &essence));
    assert!(
        is_same(&kept, &json!({ "spec": { "n": n, "text": text } })),
        "whatever the order of keys"
    );
    assert!(!is_same(&kept, &json!({ "spec": { "n": 2, "text": text } })));
    assert_eq!(read(&kept), json!({}), "what it was is not known, but that it was");
}

#[test]
fn every_stored_essence_fits_next_to_other_annotations() {
    for length in [10_000, 150_000, 210_000, 250_000, 400_000, 1_000_000] {
        for others in [0, 100_000, 200_000] {
            let annotations = json!({ "other": noise(others) });
            let text = stored(&json!({ "spec": noise(length) }), &annotations);
            assert!(text.len() + NAME.len() + others < ANNOTATIONS_MAX, "{length} beside {others}");
        }
    }
}

#[test]
fn a_broken_compact_essence_is_an_error_not_a_new_object() {
    for content in ["!", "", "AAAA", "7cE=", "S0xKTkk="] {
        let text = json!({ "kopf.zalando.org/compact": { "deflate": content } }).to_string();
        fetch(&PersistenceSettings::default().diffbase_storage, &body(&text)).expect_err(content);
    }
}
