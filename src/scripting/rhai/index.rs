//! `ctx.<index>`: a live view of a table that index functions fill; read-only.
//!
//! `ctx.pods["key"]` is a store, or `()`; `"key" in ctx.pods`, `ctx.pods.len()`, `ctx.pods.keys()`, `for key in ctx.pods`. A
//! store is the list of the values under one key, as they were when it was taken; what can be done with a list without changing
//! it can be done with a store. What functions returned without a key is under `()`; `ctx.pods.values()` and
//! `kopf.values(ctx.pods)` are all of the values, with keys or without. Nothing is converted before it is looked at, so a
//! large index costs no more than a small one.

use std::sync::Arc;

use rhai::{
    Array, Dynamic, Engine, EvalAltResult, FnPtr, FuncRegistration, INT, NativeCallContext,
    Position,
};
use serde_json::Value;

use super::{
    errors::problem,
    value::{json_of, same, to_json},
    view::View,
};
use crate::logic::indexing::{Key, Values};
use crate::ports::Index;
use crate::scripting::{
    account::Account,
    refused::Refused,
    text::{INDEX_READ_ONLY, NO_INDEX, number, shown},
};

/// An index.
#[derive(Clone, Debug)]
pub(super) struct IndexView(pub(super) Index);

/// The values under one key.
#[derive(Clone, Debug)]
pub(super) struct StoreView(Values);

type Outcome = Result<Dynamic, Box<EvalAltResult>>;

impl IndexView {
    /// Copies the data.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy_index(&self.0, depth)
    }

    fn key(key: &Dynamic) -> Result<Key, Box<EvalAltResult>> {
        to_json("the key of an index", key).map(|it| Key::of(&it)).map_err(problem)
    }

    fn get(&self, key: &Dynamic) -> Outcome {
        Self::key(key).map(|it| self.store(&it))
    }

    fn get_or(&self, key: &Dynamic, default: Dynamic) -> Outcome {
        let found = self.get(key)?;
        Ok(if found.is_unit() { default } else { found })
    }

    fn store(&self, key: &Key) -> Dynamic {
        self.0.get(key).map_or(Dynamic::UNIT, |it| Dynamic::from(StoreView(it)))
    }

    /// One step of a path.
    pub(super) fn item(&self, step: &Dynamic) -> Dynamic {
        let found = self.get(step).unwrap_or_default();
        if !found.is_unit() {
            return found;
        }
        // A path is a text, but the key may be a number.
        let number = step.as_immutable_string_ref().ok().and_then(|it| number(&it));
        number.map_or(Dynamic::UNIT, |it| self.store(&Key::Integer(it)))
    }

    fn keys(&self) -> Array {
        self.0.keys().map(|it| View::tree(Arc::new(it.to_value()))).collect()
    }

    fn values(&self) -> StoreView {
        StoreView(self.0.values())
    }
}

impl StoreView {
    /// Copies the data.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy_values(&self.0, depth)
    }

    /// One step of a path.
    pub(super) fn item(&self, step: &Dynamic) -> Dynamic {
        step.as_int().ok().and_then(|it| self.at(it)).unwrap_or_default()
    }

    /// As lists do it: negative places count from the end.
    fn at(&self, place: INT) -> Option<Dynamic> {
        let from_end = || self.0.len().checked_sub(usize::try_from(place.unsigned_abs()).ok()?);
        let index = if place < 0 { from_end()? } else { usize::try_from(place).ok()? };
        self.0.get(index).map(native)
    }

    fn get(&self, place: INT) -> Outcome {
        let missing = || EvalAltResult::ErrorArrayBounds(self.0.len(), place, Position::NONE);
        self.at(place).ok_or_else(|| missing().into())
    }

    fn contains(&self, value: &Dynamic) -> bool {
        json_of(value).is_some_and(|it| self.0.iter().any(|value| **value == it))
    }

    /// As lists do it: -1 if there is none.
    fn place_of(&self, value: &Dynamic) -> INT {
        let value = json_of(value);
        let place = self.0.iter().position(|it| value.as_ref() == Some(&**it));
        place.map_or(-1, count)
    }

    /// The values as a list of the language.
    fn array(&self) -> Array {
        self.0.iter().map(native).collect()
    }
}

fn native(value: &Arc<Value>) -> Dynamic {
    View::shared(Arc::clone(value))
}

impl IntoIterator for IndexView {
    type Item = Dynamic;
    type IntoIter = Box<dyn Iterator<Item = Dynamic>>;

    /// Over the keys.
    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.0.keys().map(|it| View::tree(Arc::new(it.to_value()))))
    }
}

impl IntoIterator for StoreView {
    type Item = Dynamic;
    type IntoIter = Box<dyn Iterator<Item = Dynamic>>;

    /// Over the values.
    fn into_iter(self) -> Self::IntoIter {
        let values = self.0;
        Box::new((0..values.len()).filter_map(move |it| values.get(it).map(native)))
    }
}

/// `kopf.values`
pub(super) fn values(index: &Dynamic) -> Outcome {
    if let Some(view) = index.read_lock::<IndexView>() {
        return Ok(Dynamic::from(view.values()));
    }
    if index.is::<StoreView>() {
        return Ok(index.clone());
    }
    Err(problem(NO_INDEX))
}

/// Teaches an engine what can be done with an index. Methods take views by value: Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine) {
    refuse_changes(engine, |view: &IndexView, key| view.get(key).unwrap_or_default());
    refuse_changes(engine, StoreView::item);
    engine
        .register_type_with_name::<IndexView>("index")
        .register_indexer_get(|view: &mut IndexView, key: Dynamic| view.get(&key))
        .register_fn("len", |view: IndexView| count(view.0.len()))
        .register_fn("is_empty", |view: IndexView| view.0.is_empty())
        .register_fn("keys", |view: IndexView| view.keys())
        .register_fn("values", |view: IndexView| view.values())
        .register_fn("contains", |view: IndexView, key: Dynamic| {
            IndexView::key(&key).map(|it| view.0.contains(&it))
        })
        .register_fn("get", |view: IndexView, key: Dynamic| view.get(&key))
        .register_fn("get", |view: IndexView, key: Dynamic, default: Dynamic| {
            view.get_or(&key, default)
        })
        .register_iterator::<IndexView>();
    for name in ["to_string", "to_debug", "to_json", "print"] {
        engine
            .register_fn(name, |view: IndexView| printed("the index", view))
            .register_fn(name, |view: StoreView| printed("the values of the index", view));
    }
    register_store(engine);
}

/// The text of an index, or of a part of one: as large as what is passed to the host may be.
fn printed<T: Clone + Send + Sync + 'static>(
    name: &str,
    view: T,
) -> Result<String, Box<EvalAltResult>> {
    to_json(name, &Dynamic::from(view)).map(|it| shown(&it)).map_err(problem)
}

fn register_store(engine: &mut Engine) {
    engine
        .register_type_with_name::<StoreView>("store")
        .register_indexer_get(|view: &mut StoreView, place: INT| view.get(place))
        .register_fn("len", |view: StoreView| count(view.0.len()))
        .register_fn("is_empty", |view: StoreView| view.0.is_empty())
        .register_fn("contains", |view: StoreView, value: Dynamic| view.contains(&value))
        .register_fn("get", |view: StoreView, place: INT| view.at(place).unwrap_or_default())
        .register_fn("index_of", |view: StoreView, value: Dynamic| view.place_of(&value))
        .register_fn("to_array", |view: StoreView| view.array())
        .register_fn("==", |a: StoreView, b: StoreView| a.0 == b.0)
        .register_fn("!=", |a: StoreView, b: StoreView| a.0 != b.0)
        .register_fn("==", |a: StoreView, b: Array| same_list(&a, b))
        .register_fn("!=", |a: StoreView, b: Array| !same_list(&a, b))
        .register_fn("==", |a: Array, b: StoreView| same_list(&b, a))
        .register_fn("!=", |a: Array, b: StoreView| !same_list(&b, a))
        .register_iterator::<StoreView>();
    // What lists can do with a function, done with a list of the values.
    for name in ["map", "filter", "find", "find_map", "index_of", "some", "all", "reduce"] {
        engine.register_fn(
            name,
            move |context: NativeCallContext<'_>, view: StoreView, function: FnPtr| {
                context.call_native_fn::<Dynamic>(name, (view.array(), function))
            },
        );
    }
    engine.register_fn(
        "reduce",
        |context: NativeCallContext<'_>, view: StoreView, function: FnPtr, first: Dynamic| {
            context.call_native_fn::<Dynamic>("reduce", (view.array(), function, first))
        },
    );
}

/// Refuses every change. Rhai assigns parts back after something in them was called; that is none.
fn refuse_changes<T: Clone + Send + Sync + 'static>(
    engine: &mut Engine,
    get: fn(&T, &Dynamic) -> Dynamic,
) {
    FuncRegistration::new_index_setter().with_purity(true).register_into_engine(
        engine,
        move |view: &mut T, key: Dynamic, value: Dynamic| {
            if same(&get(view, &key), &value) { Ok(()) } else { Err(problem(INDEX_READ_ONLY)) }
        },
    );
}

fn same_list(store: &StoreView, list: Array) -> bool {
    same(&Dynamic::from(store.clone()), &Dynamic::from_array(list))
}

fn count(len: usize) -> INT {
    INT::try_from(len).unwrap_or(INT::MAX)
}
