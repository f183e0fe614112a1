//! Entry points for the fuzz targets, which are another crate; compiled by `cargo fuzz` only.

use serde_json::{Value, json};

use crate::{
    metadata::{self, KindFacts, NameFormat},
    patch::ParsedPatch,
    request::{
        body::{self, Expected},
        json,
        query::Query,
    },
    resource::ResourceDef,
    schema::Schema,
    selector::{Selector, fields::Selectable},
};

const KINDS: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Applies a patch. The low bits of `kind` choose its type, the next one whether there is a schema.
pub fn patch(kind: u8, patch: &[u8]) {
    let content_type = KINDS.get(usize::from(kind) % KINDS.len()).copied().unwrap_or_default();
    let Ok(parsed) = ParsedPatch::parse(content_type, patch, true) else { return };
    let schema = (kind & 4 != 0).then(schema);
    let object = object();
    if let Ok(patched) = parsed.apply(&object, schema.as_ref()) {
        assert!(json::depth(&patched) <= 2 * json::DEPTH_MAX, "too deep");
        for native in [true, false] {
            finish(body::check_patched(&patched, expected(native)).is_ok(), &patched, &object);
        }
    }
}

/// Parses a query with selectors, and a text as a selector of both kinds.
pub fn select(text: &str) {
    let selectable = Selectable::new(&ResourceDef::new("kopf.dev", "v1", "widgets", "Widget"), []);
    let labels_of = [("a".into(), "b".into())];
    let check = |selector: Selector| {
        let by_labels = selector.matches_labels(&labels_of);
        let empty = selector.is_empty();
        assert!(
            !empty || (by_labels && selector.matches_fields(|_| String::new())),
            "nothing fits everything"
        );
    };
    if let Ok(selector) = Selector::parse_for(&Query::parse(text), &selectable) {
        check(selector);
    }
    let encoded: String = text.bytes().map(|it| format!("%{it:02x}")).collect();
    for name in ["labelSelector", "fieldSelector"] {
        let query = Query::parse(&format!("{name}={encoded}"));
        if let Ok(selector) = Selector::parse_for(&query, &selectable) {
            check(selector);
        }
    }
}

/// Decodes a body. The bits of `kind` choose YAML and native kinds.
pub fn decode(kind: u8, bytes: &[u8]) {
    let content_type = if kind & 1 == 0 { "application/json" } else { "application/yaml" };
    if let Ok(body) = body::decode(content_type, bytes, expected(kind & 2 != 0), &mut Vec::new()) {
        finish(true, &body, &object());
        let again = json::parse(body.to_string().as_bytes());
        assert_eq!(again.as_ref(), Ok(&body), "what is written is not what was read");
    }
}

/// Runs the code that processes a decoded or patched body.
fn finish(good: bool, body: &Value, old: &Value) {
    if !good {
        return;
    }
    let mut new = body.clone();
    metadata::normalize(&mut new);
    let facts = KindFacts { names: NameFormat::Subdomain, namespaced: true, native: true };
    let created = metadata::check_create(facts, &new).len();
    metadata::carry_over(&mut new, old);
    let updated = metadata::check_update(facts, &new, old).len();
    let texts: usize =
        metadata::check_update(facts, &new, old).iter().map(|it| it.text().len()).sum();
    assert!(texts >= updated.saturating_sub(created), "problems say something");
}

fn expected(native: bool) -> Expected<'static> {
    let kind = "Widget";
    if native {
        Expected {
            group: "",
            version: "v1",
            kind,
            native,
            definition: "io.k8s.api.core.v1.Pod",
            known: &|_, _, _| true,
        }
    } else {
        Expected {
            group: "x.y",
            version: "v1",
            kind,
            native,
            definition: "",
            known: &|_, _, _| false,
        }
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Widget",
        "metadata": { "name": "a", "namespace": "ns", "finalizers": ["x/y", "x/z"], "labels": { "a": "b" } },
        "spec": {
            "list": [{ "name": "x", "value": 1 }, { "name": "y", "inner": [{ "name": "z" }] }],
            "set": ["a", "b"],
            "map": { "a": { "b": [1, { "c": null }] } },
        },
    })
}

fn schema() -> Schema {
    let text = json!({ "type": "string" });
    let list = |items: &Value, key: Option<&str>| {
        let mut list =
            json!({ "type": "array", "items": items, "x-kubernetes-patch-strategy": "merge" });
        if let (Some(key), Some(fields)) = (key, list.as_object_mut()) {
            fields.insert("x-kubernetes-patch-merge-key".into(), key.into());
        }
        list
    };
    let inner = json!({ "type": "object", "properties": { "name": text } });
    let item = json!({ "type": "object", "properties": { "name": text, "inner": list(&inner, Some("name")) } });
    Schema::parse(&json!({ "type": "object", "properties": {
        "apiVersion": text,
        "kind": text,
        "metadata": { "type": "object", "properties": {
            "name": text,
            "finalizers": list(&text, None),
            "labels": { "type": "object", "additionalProperties": text },
        } },
        "spec": { "type": "object", "properties": {
            "list": list(&item, Some("name")),
            "set": list(&text, None),
            "map": { "type": "object", "additionalProperties": {} },
        } },
    } }))
}
