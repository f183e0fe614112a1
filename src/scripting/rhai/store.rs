//! The methods of Rhai lists, for the values under a key of an index: see `scripting/handles/index.rs`.

use rhai::{Array, Dynamic, Engine, FnPtr, INT, NativeCallContext};

use super::{
    handles::{Held, find, native},
    value::json_of,
};
use crate::call::Index;
use crate::scripting::handles::{Store, values as values_of};

/// Registers these functions in an engine.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("values", |index: Held<Index>| native(values_of(&index.0)))
        .register_fn("contains", |store: Held<Store>, value: Dynamic| {
            place_of(&store.0, &value).is_some()
        })
        .register_fn("get", |store: Held<Store>, place: INT| find(&store.0, &place.into()))
        // As for lists: -1 if there is none.
        .register_fn("index_of", |store: Held<Store>, value: Dynamic| {
            place_of(&store.0, &value).map_or(-1, |it| INT::try_from(it).unwrap_or(INT::MAX))
        })
        .register_fn("to_array", array);
    for name in ["map", "filter", "find", "find_map", "index_of", "some", "all", "reduce"] {
        engine.register_fn(
            name,
            move |context: NativeCallContext<'_>, store: Held<Store>, function: FnPtr| {
                context.call_native_fn::<Dynamic>(name, (array(store), function))
            },
        );
    }
    engine.register_fn(
        "reduce",
        |context: NativeCallContext<'_>, store: Held<Store>, function: FnPtr, first: Dynamic| {
            context.call_native_fn::<Dynamic>("reduce", (array(store), function, first))
        },
    );
}

fn array(store: Held<Store>) -> Array {
    store.into_iter().collect()
}

fn place_of(store: &Store, value: &Dynamic) -> Option<usize> {
    let value = json_of(value)?;
    store.0.iter().position(|it| it.value().is_some_and(|it| **it == value))
}
