//! Reads the JSON of objects: headers, trees, and whether they contain a part.
//!
//! A package of its own, because it is compiled for speed: every event and every response is read here, and most parts of most texts are
//! skipped. Everything else is compiled for size, also generic code of `serde_json` that it uses.

pub mod containing;
pub mod depth;
pub mod header;
pub mod managed_fields;
pub mod part;
pub mod responses;
pub mod review;
pub mod shared;
pub mod tape;
pub mod tape_reader;
pub mod tree;
pub mod values;

use serde::Serialize;
use serde_json::{Map, Value};

pub use self::header::{Header, ObjectRef};

/// Returns the JSON text of a value, without the formatter of `to_string`, which checks and copies each piece.
pub fn text(value: &Value) -> Vec<u8> {
    serialized(value)
}

/// Returns the JSON text of a map.
pub fn map_text(map: &Map<String, Value>) -> Vec<u8> {
    serialized(map)
}

fn serialized(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(256); // most patches are shorter
    // Neither a value nor a vector can fail.
    let _always_fits = serde_json::to_writer(&mut text, value);
    text
}
