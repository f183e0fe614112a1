//! `ctx.patch` and `ctx.memo`: documents that scripts read and change in place, by path.
//!
//! A copy of a map would lose what is written into it, so every level is a path into the shared document. Reading a missing level
//! of a patch returns a view of it, so that an assignment below it creates the missing levels.
//!
//! The languages differ where their values do. In Lua, nil is not null: it withdraws a change, and null deletes; lists of memos are
//! used in place, as tables are. In Rhai, `()` is both; lists are values, which Rhai assigns back after a change.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use kopf_json::shared::{Part, SharedJson};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{AnyHandle, Border, Handle, HandleKeys, HandleType, Use, path::Path, tree};
use crate::call::{PatchCell, SharedDocument as Shared, SharedPatch};
use crate::heap;
use crate::logic::{change::patch::Transformation, handlers::function::Function, object::measure};
use crate::scripting::{
    handles::{leftovers::CallPart, withdraw::withdraw},
    terms::Language,
    values::{
        HostValue, LookupKey, Nested, Passed,
        account::Account,
        limits,
        refused::{DEPTH_MAX, Refused, SizeLimit},
        text,
    },
};

type Fields = Map<String, Value>;

/// A level of a document.
pub(crate) struct DocumentHandle<S> {
    whole: Arc<Whole<S>>,
    path: Path,
}

/// `ctx.patch`: the merge-patch under construction.
pub(crate) type PatchHandle = DocumentHandle<CallPart<SharedPatch>>;

/// `ctx.memo`: the data that scripts share.
pub(crate) type Memo = DocumentHandle<Shared>;

/// The state shared by all levels of a document that come from one `ctx`.
struct Whole<S> {
    store: S,
    border: Border,
    /// An upper bound of the size of the document: its size when it was last measured, plus what was added since, and the revision of the
    /// store that it is valid for. `None` if it was never measured.
    size: Mutex<Option<(u64, DocumentSize)>>,
    /// The size when it was last measured, in bytes of memory: it is measured again once the bound is much larger.
    measured: AtomicUsize,
}

/// A bound of the size of a document is used up to this many bytes of memory, however small it was when it was last measured.
const SLACK_BYTES: usize = 16 << 10;
/// Approximate bytes of memory of an item or a field, without its text.
const ITEM_BYTES: usize = 150;

/// The size of a document, or of a part of it.
#[derive(Clone, Copy, Debug)]
struct DocumentSize {
    bytes: usize,
    items: usize,
}

/// Where a document is stored.
pub(crate) trait DocumentStore: Send + Sync + Sized + 'static {
    /// The name in the languages, with which paths in errors begin.
    const ROOT: &'static str;
    /// The name of the whole document in errors.
    const NAME: &'static str;
    /// Whether it is a patch: levels are created by writing to them, and null deletes on the cluster.
    const IS_PATCH: bool;
    /// The limit of a value in it, from the number of bytes.
    const LIMIT: fn(usize) -> SizeLimit;

    /// Reads the fields; they are locked meanwhile.
    fn look<T>(&self, look: impl FnOnce(&Fields) -> T) -> T;

    /// Changes the fields at this path.
    fn change<T>(&self, path: &[String], change: impl FnOnce(&mut Fields) -> T) -> T;

    /// Returns a number that is another one after each change, also by other handlers.
    fn revision(&self) -> u64;

    /// Returns the handled object.
    fn original(&self) -> Option<SharedJson>;

    /// Returns the patch, if it is one.
    fn as_patch(&self) -> Option<&CallPart<SharedPatch>>;

    /// Counts what a change has added to a memo, whose memory has a separate limit.
    fn charge(&self, value: &dyn Passed, bytes: isize);

    /// Counts the size that a patch is about to have: the patches of a script have a separate limit together.
    ///
    /// # Errors
    /// The message for the script, if they are too large.
    fn admit(&self, value: &dyn Passed, bytes: usize) -> Result<(), String>;

    fn is(&self, other: &Self) -> bool;
}

impl DocumentStore for CallPart<SharedPatch> {
    const ROOT: &'static str = "patch";
    const NAME: &'static str = "the patch";
    const IS_PATCH: bool = true;
    const LIMIT: fn(usize) -> SizeLimit = SizeLimit::Result;

    fn look<T>(&self, look: impl FnOnce(&Fields) -> T) -> T {
        match self.peek() {
            Some(patch) => look(&patch.merge),
            None => look(&Fields::new()),
        }
    }

    fn change<T>(&self, _path: &[String], change: impl FnOnce(&mut Fields) -> T) -> T {
        change(&mut self.lock().merge)
    }

    fn revision(&self) -> u64 {
        PatchCell::revision(self)
    }

    fn original(&self) -> Option<SharedJson> {
        self.call().object().map(|it| it.shared_body())
    }

    fn as_patch(&self) -> Option<&CallPart<SharedPatch>> {
        Some(self)
    }

    fn charge(&self, _value: &dyn Passed, _bytes: isize) {}

    fn admit(&self, value: &dyn Passed, bytes: usize) -> Result<(), String> {
        let mut admitted = Ok(());
        value.memos(&mut |it| admitted = it.admit_patch(self, bytes));
        admitted
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl DocumentStore for Shared {
    const ROOT: &'static str = "memo";
    const NAME: &'static str = "the memo";
    const IS_PATCH: bool = false;
    const LIMIT: fn(usize) -> SizeLimit = SizeLimit::Kept;

    fn look<T>(&self, look: impl FnOnce(&Fields) -> T) -> T {
        look(&self.lock())
    }

    fn change<T>(&self, path: &[String], change: impl FnOnce(&mut Fields) -> T) -> T {
        change(&mut self.lock_for(path))
    }

    fn original(&self) -> Option<SharedJson> {
        None
    }

    fn as_patch(&self) -> Option<&CallPart<SharedPatch>> {
        None
    }

    // Their memory has a separate limit, which counts the changes of all handlers.
    fn revision(&self) -> u64 {
        0
    }

    fn charge(&self, value: &dyn Passed, bytes: isize) {
        value.memos(&mut |it| it.charge(self, bytes));
    }

    fn admit(&self, _value: &dyn Passed, _bytes: usize) -> Result<(), String> {
        Ok(())
    }

    fn is(&self, other: &Self) -> bool {
        Shared::is(self, other)
    }
}

// Not derived: the store need not be `Clone`.
impl<S> Clone for DocumentHandle<S> {
    fn clone(&self) -> Self {
        DocumentHandle { whole: Arc::clone(&self.whole), path: self.path.clone() }
    }
}

impl<S: DocumentStore> DocumentHandle<S> {
    /// Returns the whole document.
    pub(crate) fn new(store: S, border: Border) -> Self {
        let (size, measured) = (Mutex::default(), AtomicUsize::new(0));
        let whole = Whole { store, border, size, measured };
        DocumentHandle { whole: Arc::new(whole), path: Path::default() }
    }

    fn language(&self) -> Language {
        self.whole.border.language
    }

    /// Returns whether lists are used in place.
    fn has_lists(&self) -> bool {
        !S::IS_PATCH && self.language() == Language::Lua
    }

    fn key<'a>(&self, key: &LookupKey<'a>) -> Result<Cow<'a, str>, String> {
        let key = key.name()?;
        // As in all arguments of handlers, `meta` is short for the metadata.
        let is_meta = S::IS_PATCH && self.path.is_empty() && key == "meta";
        Ok(if is_meta { "metadata".into() } else { key })
    }

    /// Reads the fields of the whole document.
    fn look<T>(&self, look: impl FnOnce(&Fields) -> T) -> T {
        self.whole.store.look(look)
    }

    /// Reads the value at a key.
    fn look_at<T>(&self, key: &str, look: impl FnOnce(Option<&Value>) -> T) -> T {
        self.look(|fields| look(tree::below(fields, &self.path, key)))
    }

    fn below(&self, key: &str) -> Result<HostValue, String>
    where
        Self: Into<AnyHandle>,
    {
        let path = self.path.join(key);
        if path.len() >= DEPTH_MAX {
            return Err(Refused::too_deep().at(&dotted::<S>(&path)));
        }
        let path = Path::new(path, self.whole.border.paths.as_ref())?;
        Ok(HostValue::Handle(DocumentHandle { whole: Arc::clone(&self.whole), path }.into()))
    }

    /// Returns the upper bound of the size, if it is known and nobody else has changed the document since.
    fn known_size(&self) -> Option<DocumentSize> {
        let revision = self.whole.store.revision();
        self.whole.size.lock().filter(|(at, _)| *at == revision).map(|(_, it)| it)
    }

    /// Stores an upper bound of the present size.
    fn keep_size(&self, size: DocumentSize) {
        *self.whole.size.lock() = Some((self.whole.store.revision(), size));
    }

    /// Returns whether a bound of the size is not much larger than the size when it was last measured.
    fn is_about(&self, bound: DocumentSize) -> bool {
        let measured = self.whole.measured.load(Ordering::Relaxed);
        bound.memory() <= (2 * measured).max(SLACK_BYTES)
    }

    /// Checks the size of the whole document with a value before it is stored. Returns an upper bound of the size with it.
    fn admit(
        &self,
        path: &[String],
        value: &Value,
        room: SizeLimit,
    ) -> Result<DocumentSize, String> {
        // The items of a memo are counted for each value of it.
        let items_max = if S::IS_PATCH { room.items() } else { usize::MAX };
        let more = DocumentSize::of(path, value);
        let known = self.known_size().map(|it| it.with(more));
        let known = known.filter(|it| it.bytes <= room.bytes() && it.items <= items_max);
        let known = known.filter(|it| !S::IS_PATCH || self.is_about(*it));
        let total = known.unwrap_or_else(|| {
            let total = self.look(|it| DocumentSize::besides(it, path)).with(more);
            self.whole.measured.store(total.memory(), Ordering::Relaxed);
            total
        });
        if total.bytes > room.bytes() {
            return Err(limits::too_large_together(S::NAME, room.bytes(), total.bytes));
        }
        if total.items > items_max {
            return Err(limits::too_many_items_together(S::NAME, items_max, total.items));
        }
        Ok(total)
    }

    fn put(
        &self,
        (key, path): (&LookupKey<'_>, &[String]),
        value: Value,
        passed: &dyn Passed,
    ) -> Result<(), String> {
        let is_first = matches!(key, LookupKey::Place(1, _));
        let assign = |fields: &mut Fields, value| {
            let assigned = tree::assign(fields, path, value, self.has_lists());
            assigned.map_err(|it| it.at(S::ROOT, path))
        };
        if S::IS_PATCH {
            return self.whole.store.change(path, |fields| assign(fields, value));
        }
        let mut admitted = Ok(());
        passed.memos(&mut |it| admitted = it.admit());
        admitted?;
        let before = heap::held();
        // The copy is made between two readings of the allocator. The value that was read is dropped after them.
        let kept = value.clone();
        self.whole.store.change(path, |fields| {
            if is_first && self.has_lists() {
                tree::make_list(fields, &self.path);
            }
            assign(fields, kept)
        })?;
        self.whole.store.charge(passed, heap::held().wrapping_sub(before));
        Ok(())
    }
}

impl<S: DocumentStore> HandleType for DocumentHandle<S>
where
    Self: Into<AnyHandle>,
{
    const TYPE: &'static str = S::ROOT;
    const KEYS: HandleKeys = HandleKeys::Names;
    const USE: Use = Use::Change;

    fn is(&self, other: &Self) -> bool {
        self.whole.store.is(&other.whole.store) && *self.path == *other.path
    }
}

impl<S: DocumentStore> Handle for DocumentHandle<S>
where
    Self: Into<AnyHandle>,
{
    fn kind(&self) -> Option<Nested> {
        let is_list = || self.look(|it| tree::lookup(it, &self.path).is_some_and(Value::is_array));
        Some(if self.has_lists() && is_list() { Nested::List } else { Nested::Map })
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        self.look(|fields| {
            if self.path.is_empty() {
                return account.copy_fields(fields, depth);
            }
            match tree::lookup(fields, &self.path) {
                Some(value) => account.copy(value, depth),
                None if self.language() == Language::Lua => Ok(Value::Null),
                None => Ok(Value::Object(Map::new())),
            }
        })
    }

    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        let shown = if S::IS_PATCH { text::of_patch } else { text::shown };
        self.copy(account, 0).map(|it| shown(&it)).map_err(|it| it.at(S::NAME))
    }

    fn get(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        let key = self.key(key)?;
        if S::IS_PATCH
            && self.path.is_empty()
            && key == "fns"
            && let Some(patch) = self.whole.store.as_patch()
        {
            return Ok(HostValue::Handle(Transformations(patch.clone()).into()));
        }
        let is_rhai = self.language() == Language::Rhai;
        let found = self.look_at(&key, |found| match found {
            Some(Value::Object(_)) => None,
            Some(Value::Array(_)) if self.has_lists() => None,
            None if S::IS_PATCH => None,
            // A field that is to be deleted can be written to again.
            Some(Value::Null) if is_rhai && S::IS_PATCH => None,
            None => Some(HostValue::Nil),
            Some(value) => Some(HostValue::Json(value.clone())),
        });
        found.map_or_else(|| self.below(&key), Ok)
    }

    fn find(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        let name = self.key(key)?;
        let is_there = self.look_at(&name, |it| it.is_some_and(|it| !it.is_null()));
        if is_there { self.get(key) } else { Ok(HostValue::Nil) }
    }

    fn has(&self, key: &LookupKey<'_>) -> Result<bool, String> {
        Ok(self.look_at(&self.key(key)?, |it| it.is_some()))
    }

    fn set(&self, key: &LookupKey<'_>, passed: &dyn Passed) -> Result<(), String> {
        let name = self.key(key)?;
        if S::IS_PATCH && self.path.is_empty() && name == "fns" {
            return Err(match self.language() {
                Language::Lua => "use ctx.patch.fns:append(function(body) … end)".to_owned(),
                Language::Rhai => "use ctx.patch.fns.append(|body| …)".to_owned(),
            });
        }
        let path = self.path.join(&name);
        let place = dotted::<S>(&path);
        if S::IS_PATCH && matches!(key, LookupKey::Place(..)) {
            return Err(format!("{place}: a patch replaces a list as a whole"));
        }
        if path.len() > DEPTH_MAX {
            return Err(Refused::too_deep().at(&place));
        }
        if passed.is_nil() && (!S::IS_PATCH || self.language() == Language::Lua) {
            return self.remove(key, passed);
        }
        // Only then: it may not have been parsed yet.
        let original = if passed.takes_form() { self.whole.store.original() } else { None };
        let like = original.as_ref().map(SharedJson::root);
        let like = path.iter().fold(like, |it, key| it?.field(key)).map(Part::to_tree);
        let room = (S::LIMIT)(passed.room());
        let value = passed.kept(&place, like.as_deref(), (room, path.len()))?;
        let size = self.admit(&path, &value, room)?;
        self.whole.store.admit(passed, size.memory())?;
        self.put((key, &path), value, passed)?;
        self.keep_size(size);
        Ok(())
    }

    /// Removes a field of a patch, so that the cluster keeps its value.
    fn remove(&self, key: &LookupKey<'_>, passed: &dyn Passed) -> Result<(), String> {
        let path = self.path.join(&self.key(key)?);
        let size = self.known_size();
        let before = heap::held();
        self.whole.store.change(&path, |fields| {
            if S::IS_PATCH {
                withdraw(fields, &path);
                return Ok(());
            }
            tree::remove(fields, &path).map_err(|it| format!("{}: {it}", dotted::<S>(&path)))
        })?;
        self.whole.store.charge(passed, heap::held().wrapping_sub(before));
        // It is not larger now.
        if let Some(size) = size {
            self.keep_size(size);
        }
        Ok(())
    }

    fn keys(&self) -> Box<dyn Iterator<Item = Value>> {
        let names = |fields: &Fields| fields.keys().map(|it| it.as_str().into()).collect();
        let keys: Vec<Value> = self.look(|fields| {
            let level = || tree::lookup(fields, &self.path).and_then(Value::as_object);
            let level = if self.path.is_empty() { Some(fields) } else { level() };
            level.map_or_else(Vec::new, names)
        });
        Box::new(keys.into_iter())
    }

    fn len(&self) -> usize {
        self.look(|fields| match tree::lookup(fields, &self.path) {
            Some(Value::Array(items)) => items.len(),
            // In Lua, the length of a table is that of its list.
            _ if self.language() == Language::Lua => 0,
            None if self.path.is_empty() => fields.len(),
            level => level.and_then(Value::as_object).map_or(0, Map::len),
        })
    }

    fn is_absent(&self) -> bool {
        let is_level = |it: &Value| it.is_object() || it.is_array();
        !self.path.is_empty() && self.look(|it| !tree::lookup(it, &self.path).is_some_and(is_level))
    }
}

impl DocumentSize {
    /// Returns the size of a value with the levels of its path.
    fn of(path: &[String], value: &Value) -> Self {
        let levels: usize = path.iter().map(|it| measure::field(it)).sum();
        let (bytes, items) = (levels + measure::bytes(value), path.len() + measure::items(value));
        DocumentSize { bytes, items }
    }

    /// Returns the size of the fields other than the one at this path: the approximate bytes, and the items without the existing levels
    /// of the path.
    fn besides(fields: &Fields, path: &[String]) -> Self {
        let sizes = fields.iter().map(|(key, it)| measure::field(key) + measure::bytes(it));
        let replaced = tree::lookup(fields, path);
        let bytes = sizes.sum::<usize>().saturating_sub(replaced.map_or(0, measure::bytes));
        let levels = (1..=path.len()).filter_map(|it| tree::lookup(fields, path.get(..it)?));
        let replaced = levels.count() + replaced.map_or(0, measure::items);
        DocumentSize { bytes, items: measure::items_of(fields).saturating_sub(replaced) }
    }

    /// Returns the approximate bytes of memory.
    fn memory(self) -> usize {
        self.bytes + self.items * ITEM_BYTES
    }

    fn with(self, more: DocumentSize) -> Self {
        DocumentSize { bytes: self.bytes + more.bytes, items: self.items + more.items }
    }
}

/// Returns a path as messages show it.
fn dotted<S: DocumentStore>(path: &[String]) -> String {
    format!("{}.{}", S::ROOT, path.join("."))
}

/// `ctx.patch.fns`: transformations of the object.
#[derive(Clone)]
pub(crate) struct Transformations(CallPart<SharedPatch>);

impl HandleType for Transformations {
    const TYPE: &'static str = "patch.fns";
    const USE: Use = Use::Append;

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Handle for Transformations {
    fn kind(&self) -> Option<Nested> {
        None
    }

    fn append(&self, function: Function) -> Result<(), String> {
        let mut patch = self.0.lock();
        if patch.transformations.len() >= limits::TRANSFORMATIONS_MAX {
            return Err(limits::too_many_transformations());
        }
        patch.transformations.push(Transformation::Scripted(function));
        Ok(())
    }

    fn len(&self) -> usize {
        let is_scripted = |it: &&Transformation| matches!(it, Transformation::Scripted(_));
        self.0.peek().map_or(0, |it| it.transformations.iter().filter(is_scripted).count())
    }
}
