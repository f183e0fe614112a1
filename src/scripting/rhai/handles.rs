//! Handles of the host as Rhai values: see `scripting/handles`.

use std::{any::TypeId, sync::Arc};

use kopf_rhai::problem;
use rhai::{
    Array, Dynamic, Engine, EvalAltResult, FnPtr, FuncRegistration, INT, ImmutableString, Map,
    Module, Position,
};
use serde_json::Value;

use super::{
    api::HostFn,
    script::Shared,
    value::{account, json_of, plain, same, to_json, to_kept, to_refusable},
    view::View,
};
use crate::call::Unsent;
use crate::scripting::{
    blocking::{
        control::{self, handed},
        present,
    },
    handles::{
        AnyHandle, ForEachType, Handle as _, HandleKeys, HandleType, Method, StopFlag,
        Transformations, Use, Wrap, for_each_type,
    },
    terms::Language,
    values::{
        Filter, HostValue, LookupKey, Nested, Passed,
        account::Account,
        memos::Memos,
        refused::{Refused, SizeLimit},
        stopped,
    },
};

/// A handle as a Rhai value. Clones refer to the same object.
#[derive(Clone)]
pub(super) struct Held<H>(pub(super) H);

type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// Converts a value of the host into a Rhai value.
pub(super) fn native(value: HostValue) -> Dynamic {
    match value {
        HostValue::Nil => Dynamic::UNIT,
        HostValue::Json(value) => plain(&value),
        HostValue::Tree(tree) => View::shared(tree.into()),
        HostValue::Handle(handle) => handle.wrap(Holding),
        HostValue::Filter(filter) => Dynamic::from(filter),
        HostValue::Error(error) => Dynamic::from(error),
    }
}

/// Converts handles into Rhai values.
pub(super) struct Holding;

impl Wrap for Holding {
    type Wrapped = Dynamic;

    fn wrap<H: HandleType>(self, handle: H) -> Dynamic {
        Dynamic::from(Held(handle))
    }
}

/// A value that a script passes to the host.
pub(super) struct RhaiPassed<'a> {
    /// The script, if the value may refer to its functions.
    pub(super) shared: Option<&'a Shared>,
    pub(super) value: &'a Dynamic,
}

impl<'a> RhaiPassed<'a> {
    fn data(value: &'a Dynamic) -> Self {
        RhaiPassed { shared: None, value }
    }
}

impl Passed for RhaiPassed<'_> {
    fn is_nil(&self) -> bool {
        self.value.is_unit()
    }

    fn takes_form(&self) -> bool {
        false
    }

    fn read(&self) -> std::result::Result<Value, Refused> {
        to_refusable(self.value)
    }

    fn kept(
        &self,
        name: &str,
        _like: Option<&Value>,
        within: (SizeLimit, usize),
    ) -> std::result::Result<Value, String> {
        to_kept(name, self.value, within)
    }

    fn room(&self) -> usize {
        control::sizes().0
    }

    fn memos(&self, use_them: &mut dyn FnMut(&Memos)) {
        control::with_memos(use_them);
    }
}

/// Converts a Rhai key, and calls `look` with it.
fn with_key<H: HandleType, T>(
    handle: &H,
    key: &Dynamic,
    look: impl FnOnce(&LookupKey<'_>) -> std::result::Result<T, String>,
) -> Result<T> {
    let name = key.as_immutable_string_ref().ok();
    let key = if let Some(name) = &name {
        LookupKey::Name(name)
    } else if let Ok(number) = key.as_int()
        && H::KEYS != HandleKeys::Names
    {
        LookupKey::Place(number, place(handle, number))
    } else if let Some(marker) = key.read_lock::<Filter>() {
        LookupKey::Marker(marker.text().to_owned())
    } else if H::KEYS == HandleKeys::Selectors && key.is_array() {
        LookupKey::Data(to_json("the key", key).map_err(problem)?)
    } else if H::KEYS == HandleKeys::Any {
        LookupKey::Data(to_json("the key of an index", key).map_err(problem)?)
    } else {
        LookupKey::Other(key.type_name())
    };
    look(&key).map_err(problem)
}

/// Converts an index as lists do: negative ones count from the end. `None` if that is before the first item.
fn place<H: HandleType>(handle: &H, number: INT) -> Option<usize> {
    let distance = usize::try_from(number.unsigned_abs()).ok()?;
    if number < 0 { handle.len().checked_sub(distance) } else { Some(distance) }
}

fn get<H: HandleType>(handle: &H, key: &Dynamic) -> Result<Dynamic> {
    let found = with_key(handle, key, |key| handle.get(key))?;
    if let (HandleKeys::Places, HostValue::Nil) = (H::KEYS, &found) {
        let place = key.as_int().unwrap_or_default();
        return Err(EvalAltResult::ErrorArrayBounds(handle.len(), place, Position::NONE).into());
    }
    Ok(native(found))
}

/// Returns an item of a list; `()` if there is none.
pub(super) fn item<H: HandleType>(handle: &H, place: usize) -> Dynamic {
    let number = INT::try_from(place).unwrap_or(INT::MAX);
    handle.get(&LookupKey::Place(number, Some(place))).map_or(Dynamic::UNIT, native)
}

/// Returns the value of a key; `()` if there is none.
pub(super) fn find<H: HandleType>(handle: &H, key: &Dynamic) -> Result<Dynamic> {
    with_key(handle, key, |key| handle.find(key)).map(native)
}

fn remove<H: HandleType>(handle: &H, key: &Dynamic) -> Result<Dynamic> {
    let removed = json_of(&find(handle, key)?).map_or(Dynamic::UNIT, |it| plain(&it));
    let nothing = Dynamic::UNIT;
    with_key(handle, key, |key| handed(|| handle.remove(key, &RhaiPassed::data(&nothing))))?;
    Ok(removed)
}

/// Sets the value of a key. After a call or an assignment inside of a part, Rhai assigns the part back: that changes nothing and succeeds.
fn set<H: HandleType>(handle: &H, key: &Dynamic, value: &Dynamic) -> Result<()> {
    if is_handle(value) && get(handle, key).is_ok_and(|it| is_same_handle(&it, value)) {
        return Ok(());
    }
    let changed = with_key(handle, key, |key| handed(|| handle.set(key, &RhaiPassed::data(value))));
    if changed.is_err() && get(handle, key).is_ok_and(|it| same(&it, value)) {
        return Ok(());
    }
    changed
}

fn text<H: HandleType>(handle: &H) -> Result<String> {
    handle.text(&mut account()).map_err(problem)
}

fn call<H: HandleType>(handle: &H, method: &Method<H>, given: &[Dynamic]) -> Result<HostValue> {
    let read = || {
        let read = given.iter().map(|it| to_json(method.shown, it));
        let mut arguments = read.collect::<std::result::Result<Vec<_>, _>>()?;
        arguments.resize(method.arguments.1, Value::Null);
        (method.body)(handle, &arguments)
    };
    if method.keeps { handed(read) } else { read() }.map_err(problem)
}

/// Registers all handles in an engine. Methods take them by value, because Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    let mut methods = Module::new();
    for_each_type(&mut Registering { engine, methods: &mut methods });
    engine
        .register_global_module(methods.into())
        .register_fn("wait", |flag: Held<StopFlag>| wait(&flag.0, &Dynamic::UNIT))
        .register_fn("wait", |flag: Held<StopFlag>, timeout: Dynamic| wait(&flag.0, &timeout));
    register_functions(engine, shared);
}

/// Registers the operations that append functions of the script to `patch.fns`.
fn register_functions(engine: &mut Engine, shared: &Arc<Shared>) {
    let append = {
        let shared = Arc::clone(shared);
        move |fns: &Held<Transformations>, function: &FnPtr| {
            let function = shared.functions.refer(function);
            handed(|| fns.0.append(function)).map_err(problem)
        }
    };
    let (push, plus, add) = (append.clone(), append.clone(), append.clone());
    engine
        .register_fn("append", move |fns: Held<Transformations>, function: FnPtr| {
            append(&fns, &function)
        })
        .register_fn("push", move |fns: Held<Transformations>, function: FnPtr| {
            push(&fns, &function)
        })
        .register_fn("+", move |fns: Held<Transformations>, function: FnPtr| {
            plus(&fns, &function).map(|()| fns)
        })
        .register_fn("+=", move |fns: &mut Held<Transformations>, function: FnPtr| {
            add(fns, &function)
        });
}

fn wait(flag: &StopFlag, timeout: &Dynamic) -> Result<bool> {
    let timeout = to_json("stopped.wait", timeout).map_err(problem)?;
    let timeout = stopped::timeout(&timeout).map_err(problem)?;
    let wait = stopped::wait(flag, timeout);
    Ok(match control::given(|| Unsent::of(present::get().as_ref())) {
        Some(unsent) => control::wait_for(unsent.watch(wait))?,
        None => control::wait_for(wait)?,
    })
}

struct Registering<'a> {
    engine: &'a mut Engine,
    methods: &'a mut Module,
}

impl ForEachType for Registering<'_> {
    fn visit<H: HandleType>(&mut self) {
        let engine = &mut *self.engine;
        engine.register_type_with_name::<Held<H>>(H::TYPE);
        for name in ["to_string", "to_debug", "to_json", "print"] {
            engine.register_fn(name, |it: Held<H>| text(&it.0));
        }
        for name in H::FIELDS {
            engine.register_get(*name, |it: &mut Held<H>| {
                it.0.get(&LookupKey::Name(name)).map(native).map_err(problem)
            });
        }
        for method in H::METHODS.iter().filter(|it| it.only != Some(Language::Lua)) {
            let (least, most) = method.arguments;
            let one = HostFn::new(method.name, least..=most, move |_, given| {
                let (receiver, given) = given.split_first().ok_or_else(|| problem(""))?;
                let handle = receiver.read_lock::<Held<H>>().ok_or_else(|| problem(""))?;
                call(&handle.0, method, given).map(native)
            });
            one.add_with_receiver(self.methods, TypeId::of::<Held<H>>());
        }
        if H::KEYS != HandleKeys::None {
            register_keys::<H>(engine);
        }
        if H::USE != Use::Wait {
            register_items::<H>(engine);
        }
    }
}

fn register_keys<H: HandleType>(engine: &mut Engine) {
    // Pure for Rhai, because the handle itself never changes: so it may be a constant.
    let setter = FuncRegistration::new_index_setter().with_purity(true);
    if H::KEYS == HandleKeys::Names {
        engine
            .register_indexer_get(|it: &mut Held<H>, key: ImmutableString| get(&it.0, &key.into()));
        setter.register_into_engine(
            engine,
            |it: &mut Held<H>, key: ImmutableString, value: Dynamic| {
                set(&it.0, &key.into(), &value)
            },
        );
    } else {
        engine.register_indexer_get(|it: &mut Held<H>, key: Dynamic| get(&it.0, &key));
        setter.register_into_engine(engine, |it: &mut Held<H>, key: Dynamic, value: Dynamic| {
            set(&it.0, &key, &value)
        });
    }
    if H::KEYS == HandleKeys::Places {
        return;
    }
    engine
        .register_fn("keys", |it: Held<H>| -> Array { it.into_iter().collect() })
        .register_fn("values", |it: Held<H>| -> Array {
            let handle = it.0.clone();
            it.into_iter().map(|key| get(&handle, &key).unwrap_or_default()).collect()
        })
        .register_fn("contains", |it: Held<H>, key: Dynamic| {
            with_key(&it.0, &key, |key| it.0.has(key))
        })
        .register_fn("get", |it: Held<H>, key: Dynamic| find(&it.0, &key))
        .register_fn("get", |it: Held<H>, key: Dynamic, default: Dynamic| {
            find(&it.0, &key).map(|it| if it.is_unit() { default } else { it })
        });
    if H::USE == Use::Change {
        engine
            .register_fn("set", |it: Held<H>, key: Dynamic, value: Dynamic| {
                set(&it.0, &key, &value)
            })
            .register_fn("remove", |it: Held<H>, key: Dynamic| remove(&it.0, &key));
    }
}

fn register_items<H: HandleType>(engine: &mut Engine) {
    engine
        .register_fn("len", |it: Held<H>| INT::try_from(it.0.len()).unwrap_or(INT::MAX))
        .register_fn("is_empty", |it: Held<H>| it.0.len() == 0)
        .register_iterator::<Held<H>>();
    for (name, is) in [("==", true), ("!=", false)] {
        engine.register_fn(name, move |it: Held<H>, (): ()| it.0.is_absent() == is);
    }
    register_equality::<Held<H>>(engine, |a, b| {
        let is_same = b.read_lock::<Held<H>>().is_some_and(|it| a.0.is(&it.0));
        is_same || same(&Dynamic::from(a.clone()), b)
    });
}

/// Registers `==` and `!=` for values of a type, and between them and lists and maps.
pub(super) fn register_equality<T: Clone + Send + Sync + 'static>(
    engine: &mut Engine,
    equal: fn(&T, &Dynamic) -> bool,
) {
    for (name, is) in [("==", true), ("!=", false)] {
        engine
            .register_fn(name, move |a: T, b: T| equal(&a, &Dynamic::from(b)) == is)
            .register_fn(name, move |a: T, b: Map| equal(&a, &b.into()) == is)
            .register_fn(name, move |a: T, b: Array| equal(&a, &b.into()) == is)
            .register_fn(name, move |a: Map, b: T| equal(&b, &a.into()) == is)
            .register_fn(name, move |a: Array, b: T| equal(&b, &a.into()) == is);
    }
}

impl<H: HandleType> IntoIterator for Held<H> {
    type Item = Dynamic;
    type IntoIter = Box<dyn Iterator<Item = Dynamic>>;

    /// Iterates over the items of a list or the keys of a map.
    fn into_iter(self) -> Self::IntoIter {
        if let Some(items) = self.0.snapshot() {
            Box::new(items.into_iter().map(|it| plain(&it)))
        } else if self.0.kind() == Some(Nested::List) {
            Box::new((0..self.0.len()).map(move |it| item(&self.0, it)))
        } else {
            Box::new(self.0.keys().map(|it| plain(&it)))
        }
    }
}

/// Returns whether a value is a handle. Called for each use of a variable.
pub(super) fn is_handle(value: &Dynamic) -> bool {
    struct Is(TypeId, bool);
    impl ForEachType for Is {
        fn visit<H: HandleType>(&mut self) {
            self.1 |= self.0 == TypeId::of::<Held<H>>();
        }
    }
    let mut is = Is(value.type_id(), false);
    for_each_type(&mut is);
    is.1
}

/// Returns the handle in a value, if there is one.
pub(super) fn handle(value: &Dynamic) -> Option<AnyHandle> {
    struct Find<'a>(&'a Dynamic, Option<AnyHandle>);
    impl ForEachType for Find<'_> {
        fn visit<H: HandleType>(&mut self) {
            if let Some(held) = self.0.read_lock::<Held<H>>() {
                self.1 = Some(held.0.clone().into());
            }
        }
    }
    let mut find = Find(value, None);
    for_each_type(&mut find);
    find.1
}

/// Returns whether both are the same handle.
pub(super) fn is_same_handle(a: &Dynamic, b: &Dynamic) -> bool {
    handle(a).zip(handle(b)).is_some_and(|(a, b)| a.is(&b))
}

/// Copies the data behind a handle; returns `None` if the value is not a handle, or not data.
pub(super) fn copy(
    value: &Dynamic,
    account: &mut Account<'_>,
    depth: usize,
) -> Option<std::result::Result<Value, Refused>> {
    handle(value).filter(|it| it.kind().is_some()).map(|it| it.copy(account, depth))
}

/// Follows one step of a path into a handle; `None` if the value is not a handle.
pub(super) fn step(value: &Dynamic, step: &Value) -> Option<Dynamic> {
    let found = handle(value)?.step(step);
    Some(found.map_or(Dynamic::UNIT, native))
}
