//! Views: read-only parts of an object for scripts. A view refers to a value in shared JSON, so nothing is copied.
//!
//! A view behaves like an object map: properties, `["key"]`, `len`, `keys`, `values`, `in`, `for`, `==`, printing. Reading a missing field
//! returns `()`. Scalars and lists are plain Rhai values.

use std::{borrow::Cow, sync::Arc};

use kopf_json::{
    part::SharedPart,
    shared::{Part, SharedJson},
    tape::Shallow,
};
use kopf_rhai::problem;
use rhai::{Array, Dynamic, Engine, EvalAltResult, FuncRegistration, ImmutableString};
use serde_json::Value;

use super::{
    handles::register_equality,
    value::{number, plain, same},
};
use crate::scripting::{
    blocking::{control, kept::KeptTree},
    values::{
        account::Account,
        refused::Refused,
        text::{READ_ONLY, shown},
    },
};

/// A map in shared JSON; empty if there is none.
#[derive(Clone, Debug)]
pub(super) struct View {
    place: Option<SharedPart>,
    /// Counts JSON of the host as the script's memory.
    hold: Option<Arc<KeptTree>>,
}

impl View {
    /// Returns a view of the part of an object under these keys.
    pub(super) fn part(root: SharedJson, keys: &[&str]) -> Self {
        let hold = control::hold(&root);
        let place = SharedPart::root(root).step(|root| {
            let part = keys.iter().try_fold(root, |value, key| value.field(key));
            part.filter(|it| it.is_map())
        });
        View { place, hold }
    }

    /// Returns JSON of the host as a Rhai value.
    pub(super) fn shared(root: SharedJson) -> Dynamic {
        let hold = control::hold(&root);
        frozen(SharedPart::root(root), hold.as_ref())
    }

    /// Returns a tree that was created for the script as a Rhai value: its memory counts as the script's already.
    pub(super) fn tree(root: Value) -> Dynamic {
        match root {
            Value::Array(_) | Value::Object(_) => {
                frozen(SharedPart::root(Arc::new(root).into()), None)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => plain(&root),
        }
    }

    /// Copies the data. Fails if it exceeds the limits of the account.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        let Some(map) = self.target() else { return Ok(Value::Object(serde_json::Map::new())) };
        let map = map.to_tree();
        account.count(&map, depth)?;
        Ok(map.into_owned())
    }

    /// Returns the map, if there is one.
    fn target(&self) -> Option<Part<'_>> {
        self.place.as_ref().map(SharedPart::value)
    }

    /// Returns the data as JSON text. It needs no limit: the host has parsed it from one object.
    fn shown(&self) -> String {
        self.target().map_or_else(|| "{}".to_owned(), |it| shown(&it.to_tree()))
    }

    /// Returns the map; `None` if it has no fields.
    fn map_or_none(&self) -> Option<Cow<'_, Value>> {
        self.target().filter(|it| !it.is_empty()).map(Part::to_tree)
    }

    fn field(&self, key: &str) -> Option<SharedPart> {
        self.place.as_ref()?.step(|it| it.field(key))
    }

    /// Returns a field, or `()`.
    pub(super) fn get(&self, key: &str) -> Dynamic {
        self.field(key).map_or(Dynamic::UNIT, |it| frozen(it, self.hold.as_ref()))
    }

    /// Refuses every change. After each method call on a list, Rhai assigns the list back: that changes nothing and succeeds.
    fn set(&self, key: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        if self.field(key).is_some_and(|it| is_unchanged(&it, value)) {
            return Ok(());
        }
        let present = self.get(key);
        // Rhai assigns back the view itself; a map in its place would be a change that is lost.
        let is_same = present.is::<View>() == value.is::<View>() && same(&present, value);
        if is_same { Ok(()) } else { Err(problem(READ_ONLY)) }
    }

    /// Returns the keys of all fields that are not null.
    fn present(&self) -> impl Iterator<Item = &str> {
        let fields = self.target().into_iter().flat_map(Part::fields);
        fields.filter(|(_, it)| !it.is_null()).map(|(key, _)| key)
    }

    fn keys(&self) -> Array {
        self.present().map(Into::into).collect()
    }

    fn values(&self) -> Array {
        self.present().map(|key| self.get(key)).collect()
    }
}

/// Returns a read-only value: maps become views, which copy nothing; lists become lists of such values.
fn frozen(place: SharedPart, hold: Option<&Arc<KeptTree>>) -> Dynamic {
    match place.value().shallow() {
        Shallow::Map(_) => Dynamic::from(View { place: Some(place), hold: hold.cloned() }),
        Shallow::List(len) => {
            let items = (0..len).filter_map(|index| place.step(|it| it.item(index)));
            Dynamic::from_array(items.map(|it| frozen(it, hold)).collect())
        }
        Shallow::Null => Dynamic::UNIT,
        Shallow::Bool(it) => it.into(),
        Shallow::Number(it) => number(&it),
        Shallow::Text(it) => it.into(),
    }
}

/// Returns whether a value is certainly one that [`frozen`] returns, without a copy of either.
fn is_unchanged(place: &SharedPart, value: &Dynamic) -> bool {
    match place.value().shallow() {
        Shallow::Map(_) => {
            let view = value.read_lock::<View>();
            view.is_some_and(|it| it.place.as_ref().is_some_and(|it| it.is(place)))
        }
        Shallow::List(len) => value.as_array_ref().is_ok_and(|items| {
            let item = |index| place.step(|it| it.item(index));
            let is_same = |(index, value)| item(index).is_some_and(|it| is_unchanged(&it, value));
            items.len() == len && items.iter().enumerate().all(is_same)
        }),
        Shallow::Null => value.is_unit(),
        Shallow::Bool(it) => value.as_bool() == Ok(it),
        Shallow::Number(it) => {
            let number = number(&it);
            match number.as_int() {
                Ok(number) => value.as_int() == Ok(number),
                Err(_) => value.as_float() == number.as_float(),
            }
        }
        Shallow::Text(it) => value.as_immutable_string_ref().is_ok_and(|text| *text == *it),
    }
}

impl IntoIterator for View {
    type Item = Dynamic;
    type IntoIter = std::vec::IntoIter<Dynamic>;

    /// Iterates over the keys, in the order of the object.
    fn into_iter(self) -> Self::IntoIter {
        self.keys().into_iter()
    }
}

/// Registers the setter for a handle's fields. It is pure for Rhai, because the handle itself never changes: so it may be a constant.
pub(super) fn register_setter<T: Clone + Send + Sync + 'static>(
    engine: &mut Engine,
    set: fn(&T, &str, &Dynamic) -> Result<(), Box<EvalAltResult>>,
) {
    FuncRegistration::new_index_setter().with_purity(true).register_into_engine(
        engine,
        move |handle: &mut T, key: ImmutableString, value: Dynamic| set(handle, &key, &value),
    );
}

/// Registers getters for these fields of views. Without a getter, Rhai creates an error for the property before it tries the indexer.
pub(super) fn register_fields(
    engine: &mut Engine,
    names: impl IntoIterator<Item = ImmutableString>,
) {
    for name in names {
        engine.register_get(name.clone(), move |view: &mut View| view.get(&name));
    }
}

/// Registers the operations on views. Methods take views by value, because Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine) {
    register_setter(engine, View::set);
    engine
        .register_type_with_name::<View>("object")
        .register_indexer_get(|view: &mut View, key: ImmutableString| view.get(&key))
        .register_fn("len", |view: View| i64::try_from(view.present().count()).unwrap_or(i64::MAX))
        .register_fn("is_empty", |view: View| view.present().next().is_none())
        .register_fn("keys", |view: View| view.keys())
        .register_fn("values", |view: View| view.values())
        .register_fn("contains", |view: View, key: ImmutableString| !view.get(&key).is_unit())
        .register_fn("get", |view: View, key: ImmutableString| view.get(&key))
        .register_fn("get", |view: View, key: ImmutableString, default: Dynamic| {
            let value = view.get(&key);
            if value.is_unit() { default } else { value }
        })
        .register_iterator::<View>();
    for name in ["to_string", "to_debug", "to_json"] {
        engine.register_fn(name, |view: View| view.shown());
    }
    register_equality::<View>(engine, |a, b| match b.read_lock::<View>() {
        Some(b) => a.map_or_none() == b.map_or_none(),
        None => same(&Dynamic::from(a.clone()), b),
    });
}
