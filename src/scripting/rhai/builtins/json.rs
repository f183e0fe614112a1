//! `to_json` and `parse_json`: strict, bounded in depth and memory.

use rhai::{Array, Dynamic, Engine, FuncRegistration, Map};
use serde_json::Value;

use super::Fallible;
use crate::scripting::{
    blocking::control::reserve,
    rhai::{
        errors::problem,
        value::{plain, to_json},
    },
};

/// Bytes that one item of a document takes while it is parsed: in the tree, and as a Rhai value.
const BYTES_PER_ITEM: usize = 160;

/// Registers `to_json` and `parse_json`.
pub(super) fn register(engine: &mut Engine) {
    FuncRegistration::new("to_json")
        .with_purity(true)
        .register_into_engine(engine, |map: &mut Map| write(&Dynamic::from_map(map.clone())));
    FuncRegistration::new("to_json")
        .with_purity(true)
        .register_into_engine(engine, |list: &mut Array| write(&Dynamic::from_array(list.clone())));
    engine.register_fn("parse_json", read);
}

fn write(value: &Dynamic) -> Fallible<String> {
    to_json("to_json", value).map(|it| it.to_string()).map_err(problem)
}

fn read(text: &str) -> Fallible<Dynamic> {
    let is_mark = |it: &u8| matches!(it, b',' | b':' | b'[' | b'{');
    let items = text.bytes().filter(|it| is_mark(it)).count() + 1;
    reserve(items.saturating_mul(BYTES_PER_ITEM).saturating_add(text.len()))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| problem(format!("parse_json: {error}")))?;
    Ok(plain(&value))
}
