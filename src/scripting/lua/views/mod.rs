//! Userdata for scripts: `ctx`, and the handles of `scripting/handles`.

mod ctx;
mod logger;

use std::cell::RefCell;

use futures::FutureExt as _;
use kopf_luau::push::Style;
use mlua::{
    AnyUserData, Function as LuaFunction, Lua, MetaMethod, MultiValue, UserData, UserDataFields,
    UserDataMethods, UserDataRef, Value as LuaValue,
};
use serde_json::Value;

pub(super) use self::ctx::CtxView;
use super::world::World;
use crate::call::{Index, Unsent};
use crate::heap;
use crate::scripting::{
    handles::{
        AnyHandle, ForEachType, Handle, HandleKeys, HandleType, Method, StopFlag, Store, Use, Wrap,
        for_each_type, unknown::unknown_method,
    },
    terms::Language,
    values::{
        HostValue, LookupKey, Nested, Passed,
        account::Account,
        errors::ErrorValue,
        memos::Memos,
        refused::{Refused, SizeLimit},
        stopped,
    },
};

/// A handle as userdata.
///
/// Userdata is always true in Lua, the stop flag too: use `if ctx.stopped()`, not `if ctx.stopped`.
pub(super) struct View<H>(H);

/// The function and the first argument of a loop.
type LuaIteration = (LuaFunction, LuaValue);

impl<H: HandleType> UserData for View<H> {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, H::TYPE);
        for name in H::FIELDS {
            fields.add_field_method_get(*name, move |lua, view| {
                native(
                    lua,
                    view.0.get(&LookupKey::Name(name)).map_err(mlua::Error::runtime)?,
                    Style::Frozen,
                )
            });
        }
        if H::USE == Use::Wait {
            let wait = |lua: &Lua, _: &Self| Ok(World::of(lua)?.wait_method.get().cloned());
            fields.add_field_method_get("wait", wait);
        }
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        for method in H::METHODS.iter().filter(|it| it.only != Some(Language::Rhai)) {
            methods.add_method(method.name, move |lua, view, given: MultiValue| {
                call(lua, &view.0, method, &given)
            });
        }
        if H::KEYS != HandleKeys::None {
            methods.add_meta_method(MetaMethod::Index, |lua, view, key: LuaValue| {
                with_key::<H, _>(lua, &key, |key| look_up(lua, &view.0, key))
            });
            methods.add_meta_method(
                MetaMethod::NewIndex,
                |lua, view, (key, value): (LuaValue, LuaValue)| {
                    let passed = LuaPassed { lua, world: &*World::of(lua)?, value: &value };
                    with_key::<H, _>(lua, &key, |key| {
                        view.0.set(key, &passed).map_err(mlua::Error::runtime)
                    })
                },
            );
        }
        if H::USE == Use::Append {
            methods.add_method("append", |lua, view, function: LuaFunction| {
                let world = World::of(lua)?;
                let name = function.info().name.unwrap_or_default();
                let function = world.functions.lend(world.script, &function, &name);
                view.0.append(function).map_err(mlua::Error::runtime)
            });
        }
        if H::USE == Use::Wait {
            methods.add_meta_method(MetaMethod::Call, |_, view, ()| Ok(view.0.is_set()));
            methods.add_meta_method(MetaMethod::Eq, |_, view, other: UserDataRef<Self>| {
                Ok(view.0.is(&other.0))
            });
        } else {
            methods.add_meta_method(MetaMethod::Len, |_, view, ()| Ok(view.0.len()));
            methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| {
                walk(lua, view.0.clone().into())
            });
        }
        methods.add_meta_method(MetaMethod::ToString, |lua, view, ()| {
            let world = World::of(lua)?;
            let text = view.0.text(&mut world.account(world.text_room()));
            text.map_err(mlua::Error::runtime)
        });
        if H::IS_TEXT {
            methods.add_meta_function(MetaMethod::Concat, concat);
        }
    }
}

/// Concatenates `a .. b`, where at least one is userdata that prints as a string.
pub(super) fn concat(_: &Lua, (a, b): (LuaValue, LuaValue)) -> mlua::Result<String> {
    Ok(format!("{}{}", a.to_string()?, b.to_string()?))
}

/// Converts a value of the host to Lua; `style` applies to data.
pub(super) fn native(lua: &Lua, value: HostValue, style: Style) -> mlua::Result<LuaValue> {
    let data = |value: &Value| {
        if value.is_null() {
            return Ok(LuaValue::NULL);
        }
        World::of(lua)?.push(lua, value, style)
    };
    match value {
        HostValue::Nil => Ok(LuaValue::Nil),
        HostValue::Json(value) => data(&value),
        HostValue::Tree(tree) => data(&tree),
        HostValue::Handle(handle) => handle.wrap(Viewing(lua)),
        HostValue::Filter(filter) => lua.create_userdata(filter).map(LuaValue::UserData),
        HostValue::Error(error) => lua.create_userdata(error).map(LuaValue::UserData),
    }
}

/// Creates views of handles.
struct Viewing<'a>(&'a Lua);

impl Wrap for Viewing<'_> {
    type Wrapped = mlua::Result<LuaValue>;

    fn wrap<H: HandleType>(self, handle: H) -> Self::Wrapped {
        self.0.create_userdata(View(handle)).map(LuaValue::UserData)
    }
}

/// Converts a key from Lua, and looks it up.
fn with_key<H: HandleType, T>(
    lua: &Lua,
    key: &LuaValue,
    look: impl FnOnce(&LookupKey<'_>) -> mlua::Result<T>,
) -> mlua::Result<T> {
    let name = key.as_string().and_then(|it| it.to_str().ok());
    let key = match (&name, key) {
        (Some(name), _) => LookupKey::Name(name),
        // List items count from 1.
        (None, LuaValue::Integer(it)) => {
            LookupKey::Place(*it, usize::try_from(*it).ok().and_then(|it| it.checked_sub(1)))
        }
        (None, _) if H::KEYS == HandleKeys::Selectors && key.is_table() => {
            LookupKey::Data(World::of(lua)?.read_as("the key", key)?)
        }
        (None, _) if H::KEYS == HandleKeys::Selectors && key.is_userdata() => {
            LookupKey::Marker(key.to_string()?)
        }
        (None, _) if H::KEYS == HandleKeys::Any && !key.is_nil() => {
            LookupKey::Data(World::of(lua)?.read_as("the key of an index", key)?)
        }
        (None, _) => LookupKey::Other(key.type_name()),
    };
    look(&key)
}

/// Returns the value at a key.
fn look_up(lua: &Lua, handle: &dyn Handle, key: &LookupKey<'_>) -> mlua::Result<LuaValue> {
    let mut found = handle.get(key);
    if found.is_err() && World::of(lua)?.border.take_refusal() {
        // Handles that are no longer used exist until they are collected.
        lua.gc_collect()?;
        found = handle.get(key);
    }
    native(lua, found.map_err(mlua::Error::runtime)?, Style::Frozen)
}

/// Calls a method of a handle.
fn call<H: HandleType>(
    lua: &Lua,
    handle: &H,
    method: &Method<H>,
    given: &MultiValue,
) -> mlua::Result<LuaValue> {
    let (_, most) = method.arguments;
    if given.len() > most {
        let told = unknown_method(H::TYPE, method.name, Language::Lua);
        return Err(mlua::Error::runtime(told.unwrap_or_default()));
    }
    let world = World::of(lua)?;
    let read = given.iter().map(|it| world.read_as(method.shown, it));
    let mut arguments = read.collect::<mlua::Result<Vec<_>>>()?;
    arguments.resize(most, Value::Null);
    native(lua, (method.body)(handle, &arguments).map_err(mlua::Error::runtime)?, Style::Frozen)
}

/// Returns the function and the first argument of a loop over a handle.
fn walk(lua: &Lua, handle: AnyHandle) -> mlua::Result<LuaIteration> {
    if let Some(items) = handle.snapshot() {
        let items = World::of(lua)?.push(lua, &items.into(), Style::Frozen)?;
        return Ok((lua.globals().get("next")?, items));
    }
    let next = if handle.kind() == Some(Nested::List) {
        let places = RefCell::new(0..handle.len());
        lua.create_function(move |lua, _: MultiValue| {
            let place = places.borrow_mut().next();
            let Some(place) = place else { return Ok((None, LuaValue::Nil)) };
            let number = i64::try_from(place + 1).unwrap_or(i64::MAX);
            let item = look_up(lua, &*handle, &LookupKey::Place(number, Some(place)))?;
            Ok((Some(number), item))
        })?
    } else {
        let keys = RefCell::new(handle.keys());
        lua.create_function(move |lua, _: MultiValue| {
            loop {
                let key = keys.borrow_mut().next();
                let Some(key) = key else { return Ok((LuaValue::Nil, LuaValue::Nil)) };
                let mut item = look_up(lua, &*handle, &LookupKey::of(&key))?;
                // Nil would end the loop: a present item without a value is null, and an item that was just removed is skipped.
                if item.is_nil() && handle.has(&LookupKey::of(&key)).is_ok_and(|it| it) {
                    item = LuaValue::NULL;
                }
                if !item.is_nil() {
                    return Ok((native(lua, HostValue::Json(key), Style::Frozen)?, item));
                }
            }
        })?
    };
    Ok((next, LuaValue::Nil))
}

/// A value that a script passes.
pub(super) struct LuaPassed<'a> {
    pub(super) lua: &'a Lua,
    pub(super) world: &'a World,
    pub(super) value: &'a LuaValue,
}

impl Passed for LuaPassed<'_> {
    fn is_nil(&self) -> bool {
        self.value.is_nil()
    }

    fn takes_form(&self) -> bool {
        matches!(self.value, LuaValue::Table(_) | LuaValue::Integer(_) | LuaValue::Number(_))
    }

    fn read(&self) -> Result<Value, Refused> {
        self.world.read(self.value, None)
    }

    fn kept(
        &self,
        name: &str,
        like: Option<&Value>,
        within: (SizeLimit, usize),
    ) -> Result<Value, String> {
        self.world.read_kept(self.value, like, within).map_err(|it| it.at(name))
    }

    fn room(&self) -> usize {
        self.world.limits.sandbox.result_size
    }

    fn memos(&self, use_them: &mut dyn FnMut(&Memos)) {
        use_them(&self.world.memos);
    }
}

/// Returns the handle in an object, if there is one.
pub(super) fn handle(object: &AnyUserData) -> Option<AnyHandle> {
    struct Find<'a>(&'a AnyUserData, Option<AnyHandle>);
    impl ForEachType for Find<'_> {
        fn visit<H: HandleType>(&mut self) {
            if self.1.is_none() && self.0.is::<View<H>>() {
                self.1 = self.0.borrow::<View<H>>().ok().map(|it| it.0.clone().into());
            }
        }
    }
    let mut find = Find(object, None);
    for_each_type(&mut find);
    find.1
}

/// Copies the content of a view that is nested `depth` levels deep; `None` if the object has no content.
pub(super) fn copy(
    object: &AnyUserData,
    account: &mut Account<'_>,
    depth: usize,
) -> Option<Result<Value, Refused>> {
    if let Ok(error) = object.borrow::<ErrorValue>() {
        return Some(account.copy(&error.message.as_str().into(), depth));
    }
    handle(object).filter(|it| it.kind().is_some()).map(|it| it.copy(account, depth))
}

/// Returns whether a handle is a list or a map, without copying it; `None` if it is not data.
pub(super) fn kind(object: &AnyUserData) -> Option<Nested> {
    if object.is::<ErrorValue>() { Some(Nested::Map) } else { handle(object)?.kind() }
}

/// Returns a copy of the data behind a handle for Lua; `None` if the object is not data.
pub(super) fn plain(lua: &Lua, object: &AnyUserData) -> mlua::Result<Option<LuaValue>> {
    let world = World::of(lua)?;
    let content = copy(object, &mut world.account(world.text_room()), 0);
    let content = content.transpose().map_err(|it| mlua::Error::runtime(it.to_string()))?;
    content.map(|it| world.push(lua, &it, Style::Frozen)).transpose()
}

/// Returns the object that a `ctx` is about, for functions that take objects; `None` if there is none.
pub(super) fn handled(value: &LuaValue) -> Option<Value> {
    let ctx = value.as_userdata()?.borrow::<CtxView>().ok()?;
    ctx.object().map(|it| Value::clone(it.body()))
}

/// Returns whether the value is a `ctx` with an object.
pub(super) fn is_handled(value: &LuaValue) -> bool {
    let ctx = value.as_userdata().and_then(|it| it.borrow::<CtxView>().ok());
    ctx.is_some_and(|it| it.object().is_some())
}

/// Returns the function and the first argument of `pairs` for a view.
pub(super) fn iterate(lua: &Lua, object: &AnyUserData) -> mlua::Result<LuaIteration> {
    if let Ok(ctx) = object.borrow::<CtxView>() {
        return ctx.iterate(lua);
    }
    match handle(object).filter(|it| it.kind().is_some()) {
        Some(handle) => walk(lua, handle),
        None => Err(mlua::Error::runtime("this value has no items to iterate")),
    }
}

/// Begins `ctx.stopped.wait`; the prelude does the rest.
pub(super) fn wait(
    lua: &Lua,
    (view, timeout): (UserDataRef<View<StopFlag>>, LuaValue),
) -> mlua::Result<()> {
    let world = World::of(lua)?;
    let timeout = world.read_as("stopped.wait", &timeout)?;
    let wait = stopped::wait(&view.0, stopped::timeout(&timeout).map_err(mlua::Error::runtime)?);
    let ended = |it| Ok(MultiValue::from_iter([LuaValue::Boolean(it)]));
    match Unsent::of(world.present.borrow().as_ref()) {
        Some(unsent) => world.wait_for(unsent.watch(wait).map(ended)),
        None => heap::lasting(|| world.wait_for(wait.map(ended))),
    }
    Ok(())
}

/// Returns the item at a path step of an index or a store, which are too large to convert; steps count from 0. `None` for every other
/// object.
pub(super) fn item(
    lua: &Lua,
    object: &AnyUserData,
    step: &Value,
) -> Option<mlua::Result<LuaValue>> {
    let is_large = object.is::<View<Index>>() || object.is::<View<Store>>();
    let handle = handle(object).filter(|_| is_large)?;
    Some(native(lua, handle.step(step).unwrap_or(HostValue::Nil), Style::Frozen))
}
