//! `ctx.<index>`: a live view of a table that index functions fill; read-only.
//!
//! `ctx.pods["key"]` is a store, or nil; `#ctx.pods` counts the keys, `for key, store in pairs(ctx.pods)` visits them. A store
//! is the list of the values under one key, as they were when it was taken: `#store`, `store[1]`, `ipairs(store)`. What
//! functions returned without a key is under `kopf.null`; `kopf.values(ctx.pods)` is all of the values, with keys or without.
//! Nothing is converted before it is looked at, so a large index costs no more than a small one. There are no methods: their
//! names could not be told from keys.

use mlua::{
    AnyUserData, Function as LuaFunction, Lua, MetaMethod, UserData, UserDataFields,
    UserDataMethods, Value as LuaValue,
};
use serde_json::Value;

use super::{Copied, Kind};
use crate::logic::indexing::{Key, Values};
use crate::ports::Index;
use crate::scripting::{
    account::Account,
    lua::{push::Style, world::World},
    text,
};

/// An index.
pub(super) struct IndexView(pub(super) Index);

/// The values under one key.
pub(super) struct StoreView(Values);

/// Keys and values, one at each call.
type Walk = (LuaFunction, LuaValue);

impl IndexView {
    fn get(&self, lua: &Lua, key: &LuaValue) -> mlua::Result<LuaValue> {
        if key.is_nil() {
            return Ok(LuaValue::Nil);
        }
        let key = World::of(lua)?.read_as("the key of an index", key)?;
        self.store(lua, &Key::of(&key))
    }

    fn store(&self, lua: &Lua, key: &Key) -> mlua::Result<LuaValue> {
        let Some(values) = self.0.get(key) else { return Ok(LuaValue::Nil) };
        lua.create_userdata(StoreView(values)).map(LuaValue::UserData)
    }

    fn iterate(&self, lua: &Lua) -> mlua::Result<Walk> {
        let index = self.0.clone();
        let keys = std::cell::RefCell::new(index.keys());
        let next = lua.create_function(move |lua, _: mlua::MultiValue| {
            let view = IndexView(index.clone());
            loop {
                let Some(key) = keys.borrow_mut().next() else {
                    return Ok((LuaValue::Nil, LuaValue::Nil));
                };
                let store = view.store(lua, &key)?;
                // Nil if the key has just gone.
                if !store.is_nil() {
                    return Ok((native(lua, &key.to_value())?, store));
                }
            }
        })?;
        Ok((next, LuaValue::Nil))
    }
}

impl StoreView {
    fn get(&self, lua: &Lua, key: &LuaValue) -> mlua::Result<LuaValue> {
        let LuaValue::Integer(place) = key else { return Ok(LuaValue::Nil) };
        let index = usize::try_from(*place).ok().and_then(|it| it.checked_sub(1));
        let value = index.and_then(|it| self.0.get(it));
        value.map_or(Ok(LuaValue::Nil), |it| native(lua, it))
    }

    fn iterate(&self, lua: &Lua) -> mlua::Result<Walk> {
        let values = Values::clone(&self.0);
        let places = std::cell::RefCell::new(0..values.len());
        let next = lua.create_function(move |lua, _: mlua::MultiValue| {
            let place = places.borrow_mut().next();
            match place.and_then(|it| Some((it + 1, values.get(it)?))) {
                Some((place, value)) => Ok((Some(place), native(lua, value)?)),
                None => Ok((None, LuaValue::Nil)),
            }
        })?;
        Ok((next, LuaValue::Nil))
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Copied {
        account.copy_values(&self.0, depth)
    }
}

/// A value of a store: a null is there, too.
fn native(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    if value.is_null() {
        return Ok(LuaValue::NULL);
    }
    World::of(lua)?.push(lua, value, Style::Frozen)
}

/// Copies the content of an index or a store; `None` if the object is neither.
pub(super) fn copy(
    object: &AnyUserData,
    account: &mut Account<'_>,
    depth: usize,
) -> Option<Copied> {
    if let Ok(view) = object.borrow::<IndexView>() {
        return Some(account.copy_index(&view.0, depth));
    }
    object.borrow::<StoreView>().ok().map(|view| view.copy(account, depth))
}

/// Whether it is an index or a store.
pub(super) fn kind(object: &AnyUserData) -> Option<Kind> {
    let store = || object.is::<StoreView>().then_some(Kind::List);
    if object.is::<IndexView>() { Some(Kind::Map) } else { store() }
}

/// What `pairs` of an index or a store gives; `None` if the object is neither.
pub(super) fn iterate(lua: &Lua, object: &AnyUserData) -> Option<mlua::Result<Walk>> {
    if let Ok(view) = object.borrow::<IndexView>() {
        return Some(view.iterate(lua));
    }
    object.borrow::<StoreView>().ok().map(|view| view.iterate(lua))
}

/// One step of a path into an index or a store, where places count from 0; `None` if the object is neither.
pub(in crate::scripting::lua) fn item(
    lua: &Lua,
    object: &AnyUserData,
    step: &LuaValue,
) -> Option<mlua::Result<LuaValue>> {
    let number = || text::number(&step.to_string().ok()?);
    if let Ok(view) = object.borrow::<IndexView>() {
        let found = view.get(lua, step);
        return Some(match (found, number()) {
            // A path is a text, but the key may be a number.
            (Ok(LuaValue::Nil), Some(number)) => view.store(lua, &Key::Integer(number)),
            (found, _) => found,
        });
    }
    let view = object.borrow::<StoreView>().ok()?;
    let place = number().and_then(|it| it.checked_add(1));
    Some(place.map_or(Ok(LuaValue::Nil), |it| view.get(lua, &LuaValue::Integer(it))))
}

/// `kopf.values`
pub(in crate::scripting::lua) fn values(lua: &Lua, object: &LuaValue) -> mlua::Result<LuaValue> {
    if let LuaValue::UserData(object) = object {
        if let Ok(view) = object.borrow::<IndexView>() {
            let all = StoreView(view.0.values());
            return lua.create_userdata(all).map(LuaValue::UserData);
        }
        if object.is::<StoreView>() {
            return Ok(LuaValue::UserData(object.clone()));
        }
    }
    Err(mlua::Error::runtime(text::NO_INDEX))
}

impl UserData for IndexView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "index");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, view, key: LuaValue| view.get(lua, &key));
        methods.add_meta_method(MetaMethod::NewIndex, |_, _, _: (LuaValue, LuaValue)| refuse());
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| Ok(view.0.len()));
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
        methods.add_meta_method(MetaMethod::ToString, |lua, view, ()| {
            World::of(lua)?.shown("the index", text::shown, |it| it.copy_index(&view.0, 0))
        });
    }
}

impl UserData for StoreView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "store");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, view, key: LuaValue| view.get(lua, &key));
        methods.add_meta_method(MetaMethod::NewIndex, |_, _, _: (LuaValue, LuaValue)| refuse());
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| Ok(view.0.len()));
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
        methods.add_meta_method(MetaMethod::ToString, |lua, view, ()| {
            World::of(lua)?.shown("the values of the index", text::shown, |it| view.copy(it, 0))
        });
    }
}

fn refuse() -> mlua::Result<()> {
    Err(mlua::Error::runtime(text::INDEX_READ_ONLY))
}
