//! Annotation names, essences, and their storage.

use kopf::{
    logic::object::{annotations, diffbase, essence},
    settings::PersistenceSettings,
};
use serde_json::{Map, Value, json};

use super::{diffbase_storage, expect_error, extra_fields, flag, map, progress_storage, text};
use crate::vectors::{Vector, run, same};

#[test]
fn annotation_keys() {
    run("annotation-keys", |vector| {
        let input = &vector.input;
        let (prefix, key) = (text(&input["prefix"]), text(&input["key"]));
        let marked = annotations::mark(key, &input["body"]);
        let safe = annotations::safe(&marked);
        let actual = json!({
            "keys": annotations::names(prefix, key, flag(&input["v1"]), &input["body"]),
            "suffix_of_raw": annotations::suffix(&marked),
            "suffix_of_safe": annotations::suffix(&safe),
            "v1": annotations::name_v1(prefix, &marked),
            "v2": annotations::name_v2(prefix, &marked),
            "marked": marked,
            "safe": safe,
        });
        same("names", &actual, &vector.expected)
    });
}

#[test]
fn essences() {
    run("essence", |vector| {
        let input = &vector.input;
        let body = &input["body"];
        let storage = diffbase_storage(&input["diffbase"]);
        let extra = extra_fields(&input["extra_fields"]);
        let built = essence::build(&storage, body, &extra);
        if vector.expects_error() {
            return expect_error(Ok::<_, String>(built));
        }
        same("essence", &built, &vector.expected["essence"])?;
        let cleared = essence::clear(&progress_storage(&input["progress"]), built);
        same("cleared", &cleared, &vector.expected["cleared"])?;
        let persistence = PersistenceSettings {
            progress_storage: progress_storage(&input["progress"]),
            diffbase_storage: storage.clone(),
            ..PersistenceSettings::default()
        };
        same("both steps", &essence::of(&persistence, body, &extra), &cleared)?;

        let mut patch = Map::new();
        diffbase::store(&storage, body, &cleared, &mut patch);
        // Byte by byte, including the order of keys and the escapes.
        same("patch", &Value::Object(patch), &vector.expected["patch"])
    });
}

#[test]
fn diffbase_storages() {
    run("diffbase-storage", |vector| {
        let storage = diffbase_storage(&vector.input["diffbase"]);
        let body = &vector.input["body"];
        match text(&vector.input["op"]) {
            "fetch" => {
                let fetched = diffbase::fetch(&storage, body);
                if vector.expects_error() {
                    return expect_error(fetched);
                }
                let essence = fetched.map_err(|it| it.to_string())?.unwrap_or_default();
                same("essence", &essence, &vector.expected["essence"])
            }
            "store" => stored(vector, |patch| {
                diffbase::store(&storage, body, &vector.input["essence"], patch);
            }),
            op => Err(format!("unknown op {op}")),
        }
    });
}

/// Compares the additions to the patch of the vector.
pub(super) fn stored(
    vector: &Vector,
    store: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), String> {
    let mut patch = map(&vector.input["patch"]);
    store(&mut patch);
    same("patch", &Value::Object(patch), &vector.expected["patch"])
}
