//! Views: read-only parts of an object for scripts. A view refers to a value in a shared tree, so nothing is copied.
//!
//! A view behaves like an object map: properties, `["key"]`, `len`, `keys`, `values`, `in`, `for`, `==`, printing. Reading a missing field
//! returns `()`. Scalars and lists are plain Rhai values.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, EvalAltResult, FuncRegistration, ImmutableString};
use serde_json::Value;

use super::{
    control,
    errors::problem,
    handles::register_equality,
    kept::KeptTree,
    place::TreePosition,
    value::{plain, same},
};
use crate::scripting::values::{
    account::Account,
    refused::Refused,
    text::{READ_ONLY, shown},
};

/// A map in a shared tree; empty if there is none.
#[derive(Clone, Debug)]
pub(super) struct View {
    place: Option<TreePosition>,
    /// Counts a tree of the host as the script's memory.
    hold: Option<Arc<KeptTree>>,
}

impl View {
    /// Returns a view of the part of a host tree under these keys.
    pub(super) fn part(root: Arc<Value>, keys: &[&str]) -> Self {
        let hold = control::hold(&root);
        let place = TreePosition::root(root).step(|root| {
            let part = keys.iter().try_fold(root, |value, key| value.get(key));
            part.filter(|it| it.is_object())
        });
        View { place, hold }
    }

    /// Returns a whole host tree as a Rhai value.
    pub(super) fn shared(root: Arc<Value>) -> Dynamic {
        let hold = control::hold(&root);
        frozen(TreePosition::root(root), hold.as_ref())
    }

    /// Returns a tree that was created for the script as a Rhai value: its memory counts as the script's already.
    pub(super) fn tree(root: Value) -> Dynamic {
        match root {
            Value::Array(_) | Value::Object(_) => frozen(TreePosition::root(Arc::new(root)), None),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => plain(&root),
        }
    }

    /// Copies the data. Fails if it exceeds the limits of the account.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        let empty = || Value::Object(serde_json::Map::new());
        self.target().map_or_else(|| Ok(empty()), |it| account.copy(it, depth))
    }

    /// Returns the map, if there is one.
    fn target(&self) -> Option<&Value> {
        self.place.as_ref().map(TreePosition::value)
    }

    fn fields(&self) -> Option<&serde_json::Map<String, Value>> {
        self.target().and_then(Value::as_object)
    }

    /// Returns the data as JSON text. It needs no limit: the host has parsed it from one object.
    fn shown(&self) -> String {
        self.target().map_or_else(|| "{}".to_owned(), shown)
    }

    /// Returns the fields; `None` if there are none.
    fn fields_or_none(&self) -> Option<&serde_json::Map<String, Value>> {
        self.fields().filter(|it| !it.is_empty())
    }

    /// Returns a field, or `()`.
    pub(super) fn get(&self, key: &str) -> Dynamic {
        let field = self.place.as_ref().and_then(|it| it.step(|it| it.get(key)));
        field.map_or(Dynamic::UNIT, |it| frozen(it, self.hold.as_ref()))
    }

    /// Refuses every change. After each method call on a list, Rhai assigns the list back: that changes nothing and succeeds.
    fn set(&self, key: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        let present = self.get(key);
        // Rhai assigns back the view itself; a map in its place would be a change that is lost.
        let is_same = present.is::<View>() == value.is::<View>() && same(&present, value);
        if is_same { Ok(()) } else { Err(problem(READ_ONLY)) }
    }

    /// Returns the keys of all fields that are not null.
    fn present(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields().into_iter().flatten();
        fields.filter(|(_, it)| !it.is_null()).map(|(key, _)| key.as_str())
    }

    fn keys(&self) -> Array {
        self.present().map(Into::into).collect()
    }

    fn values(&self) -> Array {
        self.present().map(|key| self.get(key)).collect()
    }
}

/// Returns a read-only value: maps become views, which copy nothing; lists become lists of such values.
fn frozen(place: TreePosition, hold: Option<&Arc<KeptTree>>) -> Dynamic {
    match place.value() {
        Value::Object(_) => Dynamic::from(View { place: Some(place), hold: hold.cloned() }),
        Value::Array(items) => {
            let items = (0..items.len()).filter_map(|index| place.step(|it| it.get(index)));
            Dynamic::from_array(items.map(|it| frozen(it, hold)).collect())
        }
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            plain(scalar)
        }
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
        Some(b) => a.fields_or_none() == b.fields_or_none(),
        None => same(&Dynamic::from(a.clone()), b),
    });
}
