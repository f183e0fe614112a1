//! `ctx.patch` and `ctx.memo`: documents that scripts read and change in place, by path.
//!
//! A getter that returned a map would lose what is written into it, so every level is a path into the shared document. Lists
//! are plain lists: Rhai assigns them back after a change.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map};
use serde_json::Value;

use super::{
    control::{Whole, admit, forget, given, handed, remember},
    errors::problem,
    value::{plain, same, to_json, to_kept},
};
use crate::ports::{Document, SharedPatch};
use crate::scripting::{
    account::Account,
    leftovers::Handle,
    limits::{field, weight},
    refused::{DEPTH_MAX, Refused},
    text,
    withdraw::withdraw,
};

type Fields = serde_json::Map<String, Value>;

/// A level of a document.
#[derive(Clone, Debug)]
pub(super) struct Live {
    store: Store,
    path: Arc<[String]>,
}

/// Which document.
#[derive(Clone, Debug)]
enum Store {
    /// Levels come into being when they are written to; null deletes on the cluster.
    Patch(Handle<SharedPatch>),
    /// Null is the same as absent.
    Memo(Document),
}

impl Store {
    fn name(&self) -> &'static str {
        match self {
            Store::Patch(_) => "patch",
            Store::Memo(_) => "memo",
        }
    }

    fn is(&self, other: &Store) -> bool {
        match (self, other) {
            (Store::Patch(a), Store::Patch(b)) => Arc::ptr_eq(a, b),
            (Store::Memo(a), Store::Memo(b)) => a.is(b),
            (Store::Patch(_), Store::Memo(_)) | (Store::Memo(_), Store::Patch(_)) => false,
        }
    }

    /// Changes the document. Its memory is the host's.
    fn change<T>(
        &self,
        change: impl FnOnce() -> Result<T, Box<EvalAltResult>>,
    ) -> Result<T, Box<EvalAltResult>> {
        match self {
            Store::Patch(_) => handed(change),
            Store::Memo(document) => remember(document, change),
        }
    }

    /// The same for a change that only takes something out.
    fn reduce<T>(&self, change: impl FnOnce() -> T) -> T {
        match self {
            Store::Patch(_) => given(change),
            Store::Memo(document) => forget(document, change),
        }
    }

    /// Looks at the document; the lock is held meanwhile.
    fn with<T>(&self, look: impl FnOnce(&mut Fields) -> T) -> T {
        self.with_path(&[], look)
    }

    /// The same for a change of the field at this path.
    fn with_path<T>(&self, path: &[String], look: impl FnOnce(&mut Fields) -> T) -> T {
        match self {
            Store::Patch(patch) => look(&mut patch.lock().merge),
            Store::Memo(document) => look(&mut document.lock_for(path)),
        }
    }
}

impl Live {
    /// The patch of a cycle.
    pub(super) fn patch(patch: Handle<SharedPatch>) -> Self {
        Live { store: Store::Patch(patch), path: Arc::new([]) }
    }

    /// The memo of an object.
    pub(super) fn memo(document: Document) -> Self {
        Live { store: Store::Memo(document), path: Arc::new([]) }
    }

    /// Whether both are the same place of the same document.
    pub(super) fn is(&self, other: &Live) -> bool {
        self.store.is(&other.store) && self.path == other.path
    }

    /// The patch, if this is its top level.
    pub(super) fn top_of_patch(&self) -> Option<&Handle<SharedPatch>> {
        match &self.store {
            Store::Patch(patch) if self.path.is_empty() => Some(patch),
            Store::Patch(_) | Store::Memo(_) => None,
        }
    }

    /// Copies the data; an empty map if there is none yet.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        let empty = || Ok(Value::Object(Fields::new()));
        self.look(|fields| fields.map_or_else(empty, |it| account.copy_fields(it, depth)))
    }

    fn shown(&self) -> Result<String, Box<EvalAltResult>> {
        let content = to_json(self.store.name(), &Dynamic::from(self.clone())).map_err(problem)?;
        Ok(match self.store {
            Store::Patch(_) => text::of_patch(&content),
            Store::Memo(_) => text::shown(&content),
        })
    }

    fn look<T>(&self, look: impl FnOnce(Option<&Fields>) -> T) -> T {
        self.store.with(|document| {
            let level = self
                .path
                .iter()
                .try_fold(&*document, |fields, key| fields.get(key).and_then(Value::as_object));
            look(level)
        })
    }

    fn below(&self, key: &str) -> Live {
        let path = self.path.iter().cloned().chain([key.to_owned()]).collect();
        Live { store: self.store.clone(), path }
    }

    /// The name of a field as the cluster knows it.
    fn spelled<'a>(&self, key: &'a str) -> &'a str {
        if key == "meta" && self.top_of_patch().is_some() { "metadata" } else { key }
    }

    /// A field: a level below, a plain value, or `()`.
    pub(super) fn get(&self, key: &str) -> Dynamic {
        let key = self.spelled(key);
        let found = self.look(|fields| match fields.and_then(|it| it.get(key)) {
            Some(Value::Object(_)) => None,
            Some(Value::Null) | None => match self.store {
                Store::Patch(_) => None,
                Store::Memo(_) => Some(Dynamic::UNIT),
            },
            Some(value) => Some(plain(value)),
        });
        found.unwrap_or_else(|| Dynamic::from(self.below(key)))
    }

    /// Writes a field.
    pub(super) fn set(&self, key: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        let key = self.spelled(key);
        let below = self.below(key);
        if below.path.len() > DEPTH_MAX {
            return Err(problem(Refused::too_deep().at(&below.place())));
        }
        if value.read_lock::<Live>().is_some_and(|it| it.is(&below)) {
            // Rhai assigns a level back after something below it was assigned.
            return Ok(());
        }
        if value.is_unit() && matches!(self.store, Store::Memo(_)) {
            self.take_out(key);
            return Ok(());
        }
        self.store.change(|| {
            let value = to_kept(&below.place(), value, below.path.len()).map_err(problem)?;
            let whole = match self.store {
                Store::Patch(_) => Whole::Patch,
                Store::Memo(_) => Whole::Memo,
            };
            // The levels on the way come into being, too.
            let levels: usize = self.path.iter().map(|it| field(it)).sum();
            admit(whole, levels + entry(key, &value), || self.weight_besides(key))?;
            self.store.with_path(&below.path, |document| {
                self.level(document).map_err(problem)?.insert(key.to_owned(), value);
                Ok(())
            })
        })
    }

    /// The bytes of the document as JSON, without this field.
    fn weight_besides(&self, key: &str) -> usize {
        let all = self.store.with(|all| all.iter().map(|(key, it)| entry(key, it)).sum::<usize>());
        let own = self.look(|fields| fields.and_then(|it| it.get(key)).map_or(0, weight));
        all.saturating_sub(own)
    }

    /// The level to write to, made on the way where nothing is.
    fn level<'a>(&self, document: &'a mut Fields) -> Result<&'a mut Fields, String> {
        let mut fields = document;
        for (depth, key) in self.path.iter().enumerate() {
            let next = fields.entry(key.as_str()).or_insert(Value::Null);
            if next.is_null() {
                *next = Value::Object(Fields::new());
            }
            fields = next.as_object_mut().ok_or_else(|| {
                let place = self.path.get(..=depth).unwrap_or_default().join(".");
                format!("{}.{place} is not a map", self.store.name())
            })?;
        }
        Ok(fields)
    }

    /// Takes a field out: of a patch, so that the cluster keeps what it has.
    fn remove(&self, key: &str) -> Dynamic {
        let key = self.spelled(key);
        let removed = self.look(|fields| fields.and_then(|it| it.get(key)).map(plain));
        self.take_out(key);
        removed.unwrap_or_default()
    }

    fn take_out(&self, key: &str) {
        let below = self.below(key);
        self.store.reduce(|| {
            self.store.with_path(&below.path, |document| match self.store {
                Store::Patch(_) => withdraw(document, &below.path),
                Store::Memo(_) => {
                    let level = self.path.iter().try_fold(document, |fields, key| {
                        fields.get_mut(key).and_then(Value::as_object_mut)
                    });
                    drop(level.and_then(|it| it.shift_remove(key)));
                }
            });
        });
    }

    fn place(&self) -> String {
        let path = self.path.join(".");
        format!("{}.{path}", self.store.name())
    }

    fn keys(&self) -> Array {
        self.look(|fields| {
            fields.into_iter().flat_map(Fields::keys).map(|it| it.as_str().into()).collect()
        })
    }
}

impl IntoIterator for Live {
    type Item = Dynamic;
    type IntoIter = std::vec::IntoIter<Dynamic>;

    /// Over the keys, as they are now.
    fn into_iter(self) -> Self::IntoIter {
        self.keys().into_iter()
    }
}

/// About the bytes of a field as JSON.
fn entry(key: &str, value: &Value) -> usize {
    field(key) + weight(value)
}

/// Teaches an engine what can be done with a live document. Methods take it by value: Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Live>("document")
        .register_fn("len", |live: Live| {
            i64::try_from(live.look(|fields| fields.map_or(0, Fields::len))).unwrap_or(i64::MAX)
        })
        .register_fn("is_empty", |live: Live| live.look(|it| it.is_none_or(Fields::is_empty)))
        .register_fn("keys", |live: Live| live.keys())
        .register_fn("values", |live: Live| -> Array {
            live.keys().iter().map(|key| live.get(&key.to_string())).collect()
        })
        .register_fn("contains", |live: Live, key: ImmutableString| {
            live.look(|fields| fields.is_some_and(|it| it.contains_key(live.spelled(&key))))
        })
        .register_fn("get", |live: Live, key: ImmutableString| live.get_or(&key, Dynamic::UNIT))
        .register_fn("get", |live: Live, key: ImmutableString, default: Dynamic| {
            live.get_or(&key, default)
        })
        .register_fn("set", |live: Live, key: ImmutableString, value: Dynamic| {
            live.set(&key, &value)
        })
        .register_fn("remove", |live: Live, key: ImmutableString| live.remove(&key))
        .register_fn("to_string", |live: Live| live.shown())
        .register_fn("to_debug", |live: Live| live.shown())
        .register_fn("to_json", |live: Live| live.shown())
        .register_fn("==", |live: Live, (): ()| live.is_absent())
        .register_fn("!=", |live: Live, (): ()| !live.is_absent())
        .register_fn("==", |a: Live, b: Live| same(&Dynamic::from(a), &Dynamic::from(b)))
        .register_fn("!=", |a: Live, b: Live| !same(&Dynamic::from(a), &Dynamic::from(b)))
        .register_fn("==", |a: Live, b: Map| same(&Dynamic::from(a), &Dynamic::from_map(b)))
        .register_fn("!=", |a: Live, b: Map| !same(&Dynamic::from(a), &Dynamic::from_map(b)))
        .register_iterator::<Live>();
}

impl Live {
    /// Whether nothing is at this place yet.
    fn is_absent(&self) -> bool {
        self.look(|fields| fields.is_none())
    }

    /// A field, or the default if it is not there.
    pub(super) fn get_or(&self, key: &str, default: Dynamic) -> Dynamic {
        let present = self.look(|fields| {
            fields.is_some_and(|it| it.get(self.spelled(key)).is_some_and(|value| !value.is_null()))
        });
        if present { self.get(key) } else { default }
    }
}
