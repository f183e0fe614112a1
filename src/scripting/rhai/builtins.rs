//! Rhai's own functions: their limits are those of the running call. `to_json` and `parse_json` are strict, and convert values as the host
//! does.

use kopf_rhai::{Fallible, Limits, builtins};
use rhai::{Array, Dynamic, Engine, EvalAltResult, FuncRegistration, Map};
use serde_json::Value;

use super::{
    errors::problem,
    value::{plain, to_json},
};
use crate::scripting::{
    blocking::control::{self, Abort},
    values::{limits, refused},
};

/// Bytes that one item of a document takes while it is parsed: in the tree, and as a Rhai value.
const BYTES_PER_ITEM: usize = 160;

/// The limits of the running call of this thread.
struct CallLimits;

impl Limits for CallLimits {
    const ITEMS_MAX: usize = limits::ITEMS_MAX;
    const DEPTH_MAX: usize = refused::DEPTH_MAX;

    fn step() -> Fallible<()> {
        Ok(control::step()?)
    }

    fn reserve(bytes: usize) -> Fallible<()> {
        Ok(control::reserve(bytes)?)
    }

    fn string_size() -> usize {
        control::sizes().1
    }

    fn too_long() -> Box<EvalAltResult> {
        Abort::TooLong(control::sizes().1).raised().into()
    }

    fn too_many(what: &'static str) -> Box<EvalAltResult> {
        Abort::TooMany(what).raised().into()
    }
}

/// Fails if the value of a variable that the script reads is too large.
pub(super) fn check_size(value: &Dynamic) -> Fallible<()> {
    builtins::check_size::<CallLimits>(value)
}

/// Registers the replacements of Rhai's own functions in an engine.
pub(super) fn register(engine: &mut Engine) {
    builtins::register::<CallLimits>(engine);
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
    CallLimits::reserve(items.saturating_mul(BYTES_PER_ITEM).saturating_add(text.len()))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| problem(format!("parse_json: {error}")))?;
    Ok(plain(&value))
}
