//! Read-only parts of an object, as the scripts see them: a path into a shared tree, so that nothing is copied.
//!
//! A view behaves like an object map: properties, `["key"]`, `len`, `keys`, `values`, `in`, `for`, `==`, printing. Reading a
//! field that is not there gives `()`. Scalars and lists are plain values of the language.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, EvalAltResult, FuncRegistration, ImmutableString, Map};
use serde_json::Value;

use super::{
    control,
    errors::problem,
    kept::Hold,
    value::{frozen, plain, same},
};
use crate::scripting::values::{
    account::Account,
    refused::Refused,
    text::{READ_ONLY, shown},
};

/// A map somewhere in a shared tree; empty if there is none at the path.
#[derive(Clone, Debug)]
pub(super) struct View {
    root: Arc<Value>,
    path: Arc<[Step]>,
    /// Counts the tree as the script's, if it is the host's.
    hold: Option<Arc<Hold>>,
}

/// One step down the tree.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(ImmutableString),
    Index(usize),
}

impl View {
    /// The part under these keys of a tree of the host.
    pub(super) fn part(root: Arc<Value>, keys: &[&str]) -> Self {
        let path = keys.iter().map(|key| Step::Key((*key).into())).collect();
        let hold = control::hold(&root);
        View { root, path, hold }
    }

    /// A whole tree of the host, as a value of the language.
    pub(super) fn shared(root: Arc<Value>) -> Dynamic {
        let hold = control::hold(&root);
        View { root, path: Arc::new([]), hold }.whole()
    }

    /// The same for a tree that was made for the script, whose memory counts anyway.
    pub(super) fn tree(root: Arc<Value>) -> Dynamic {
        View { root, path: Arc::new([]), hold: None }.whole()
    }

    fn whole(&self) -> Dynamic {
        frozen(self, &self.root)
    }

    /// Copies the data.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        let empty = || Value::Object(serde_json::Map::new());
        self.target().map_or_else(|| Ok(empty()), |it| account.copy(it, depth))
    }

    /// The item of a list below this place.
    pub(super) fn item(&self, index: usize) -> View {
        self.below(Step::Index(index))
    }

    fn below(&self, step: Step) -> View {
        let path = self.path.iter().cloned().chain([step]).collect();
        View { root: Arc::clone(&self.root), path, hold: self.hold.clone() }
    }

    /// What is at the path, if it is a map.
    fn target(&self) -> Option<&Value> {
        self.path
            .iter()
            .try_fold(&*self.root, |value, step| match step {
                Step::Key(key) => value.get(key.as_str()),
                Step::Index(index) => value.get(*index),
            })
            .filter(|value| value.is_object())
    }

    fn fields(&self) -> Option<&serde_json::Map<String, Value>> {
        self.target().and_then(Value::as_object)
    }

    /// The data as text: it is the host's, of one object, and was parsed by it.
    fn shown(&self) -> String {
        self.target().map_or_else(|| "{}".to_owned(), shown)
    }

    /// The fields; nothing there is the same as no fields.
    fn fields_or_none(&self) -> Option<&serde_json::Map<String, Value>> {
        self.fields().filter(|it| !it.is_empty())
    }

    /// A field, or `()`.
    pub(super) fn get(&self, key: &str) -> Dynamic {
        self.fields().and_then(|fields| fields.get(key)).map_or(Dynamic::UNIT, |value| {
            let below = || self.below(Step::Key(key.into()));
            match value {
                Value::Object(_) | Value::Array(_) => frozen(&below(), value),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => plain(value),
            }
        })
    }

    /// Refuses every change. Rhai assigns a list back after each method call on it; nothing has changed then.
    fn set(&self, key: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        let present = self.get(key);
        // A part is assigned back as it is; a map in its place would be a change that is lost.
        let is_same = present.is::<View>() == value.is::<View>() && same(&present, value);
        if is_same { Ok(()) } else { Err(problem(READ_ONLY)) }
    }

    /// The keys of what is there: a null is not.
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

impl IntoIterator for View {
    type Item = Dynamic;
    type IntoIter = std::vec::IntoIter<Dynamic>;

    /// Over the keys, in the order of the object.
    fn into_iter(self) -> Self::IntoIter {
        self.keys().into_iter()
    }
}

/// Teaches an engine how a handle is assigned to. Pure for Rhai, because the handle itself never changes: so it may be a constant.
pub(super) fn register_setter<T: Clone + Send + Sync + 'static>(
    engine: &mut Engine,
    set: fn(&T, &str, &Dynamic) -> Result<(), Box<EvalAltResult>>,
) {
    FuncRegistration::new_index_setter().with_purity(true).register_into_engine(
        engine,
        move |handle: &mut T, key: ImmutableString, value: Dynamic| set(handle, &key, &value),
    );
}

/// Teaches an engine what can be done with a view. Methods take views by value: Rhai assigns the receiver back otherwise.
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
        .register_fn("to_string", |view: View| view.shown())
        .register_fn("to_debug", |view: View| view.shown())
        .register_fn("to_json", |view: View| view.shown())
        .register_fn("==", |a: View, b: View| a.fields_or_none() == b.fields_or_none())
        .register_fn("!=", |a: View, b: View| a.fields_or_none() != b.fields_or_none())
        .register_fn("==", |a: View, b: Map| same(&Dynamic::from(a), &Dynamic::from_map(b)))
        .register_fn("!=", |a: View, b: Map| !same(&Dynamic::from(a), &Dynamic::from_map(b)))
        .register_fn("==", |a: Map, b: View| same(&Dynamic::from_map(a), &Dynamic::from(b)))
        .register_fn("!=", |a: Map, b: View| !same(&Dynamic::from_map(a), &Dynamic::from(b)))
        .register_iterator::<View>();
}
