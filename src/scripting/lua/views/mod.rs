//! Objects of the host in scripts: `ctx` and the parts of it that are alive.

mod conditions;
mod ctx;
mod index;
mod logger;
mod memo;
mod patch;
mod place;
mod settings;
mod stopped;
mod tally;

use mlua::{AnyUserData, Function as LuaFunction, Lua, Value as LuaValue};
use serde_json::Value;

use self::{
    conditions::ConditionsView, memo::MemoView, patch::PatchView, settings::SettingsView,
    stopped::ReasonsView,
};
pub(super) use self::{
    ctx::CtxView,
    index::{item, values},
    stopped::wait,
};
use super::{push::Style, refusal::ServerError, world::World};
use crate::scripting::{account::Account, refused::Refused};

/// A copy of what is behind a handle, if it is not too large or too deep.
type Copied = Result<Value, Refused>;

/// What is behind a handle, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    Map,
    Text,
}

/// Copies the content of a view, which has so many levels of a value around it; `None` if the object has none.
pub(super) fn copy(
    object: &AnyUserData,
    account: &mut Account<'_>,
    depth: usize,
) -> Option<Copied> {
    if let Ok(view) = object.borrow::<PatchView>() {
        return Some(view.copy(account, depth));
    }
    if let Ok(error) = object.borrow::<ServerError>() {
        return Some(account.copy(&error.0.message.as_str().into(), depth));
    }
    if let Ok(view) = object.borrow::<SettingsView>() {
        return Some(account.copy(&view.json(), depth));
    }
    if let Ok(view) = object.borrow::<ReasonsView>() {
        return Some(account.copy(&view.json(), depth));
    }
    if let Ok(view) = object.borrow::<ConditionsView>() {
        return Some(account.copy(&view.json(), depth));
    }
    if let Ok(view) = object.borrow::<MemoView>() {
        return Some(view.copy(account, depth));
    }
    index::copy(object, account, depth)
}

/// What is behind a handle, without a copy; `None` if it is no data.
pub(super) fn kind(object: &AnyUserData) -> Option<Kind> {
    if let Ok(view) = object.borrow::<MemoView>() {
        return Some(view.kind());
    }
    if object.is::<ServerError>() {
        return Some(Kind::Text);
    }
    if object.is::<ReasonsView>() || object.is::<ConditionsView>() {
        return Some(Kind::List);
    }
    if object.is::<PatchView>() || object.is::<SettingsView>() {
        return Some(Kind::Map);
    }
    index::kind(object)
}

/// A copy of what is behind a handle for Lua; null if the object is no data.
pub(super) fn plain(lua: &Lua, object: &AnyUserData) -> mlua::Result<Option<LuaValue>> {
    let world = World::of(lua)?;
    let content = copy(object, &mut world.account(world.text_room()), 0);
    let content = content.transpose().map_err(|it| mlua::Error::runtime(it.to_string()))?;
    content.map(|it| world.push(lua, &it, Style::Frozen)).transpose()
}

/// The object that `ctx` is about, if the value is a `ctx`: for functions that take objects.
pub(super) fn handled(value: &LuaValue) -> Option<Value> {
    let ctx = value.as_userdata()?.borrow::<CtxView>().ok()?;
    ctx.object().map(|it| Value::clone(it.body()))
}

/// Whether the value is a `ctx` that is about an object.
pub(super) fn is_handled(value: &LuaValue) -> bool {
    let ctx = value.as_userdata().and_then(|it| it.borrow::<CtxView>().ok());
    ctx.is_some_and(|it| it.object().is_some())
}

/// What `pairs` of a view gives.
pub(super) fn iterate(lua: &Lua, object: &AnyUserData) -> mlua::Result<(LuaFunction, LuaValue)> {
    if let Ok(view) = object.borrow::<PatchView>() {
        return view.iterate(lua);
    }
    if let Ok(view) = object.borrow::<SettingsView>() {
        return view.iterate(lua);
    }
    if let Ok(ctx) = object.borrow::<CtxView>() {
        return ctx.iterate(lua);
    }
    if let Ok(reasons) = object.borrow::<ReasonsView>() {
        return reasons.iterate(lua);
    }
    if let Ok(view) = object.borrow::<ConditionsView>() {
        return view.iterate(lua);
    }
    if let Some(walk) = index::iterate(lua, object) {
        return walk;
    }
    match object.borrow::<MemoView>() {
        Ok(view) => view.iterate(lua),
        Err(_) => Err(mlua::Error::runtime("this value has no items to iterate")),
    }
}

/// A key of a view as a step of a path.
fn step(key: &LuaValue) -> mlua::Result<String> {
    if let LuaValue::String(it) = key {
        return Ok(it.to_str()?.to_owned());
    }
    if let LuaValue::Integer(it) = key {
        return Ok(it.to_string());
    }
    Err(mlua::Error::runtime(format!("a key must be a string, not a {}", key.type_name())))
}

/// `a.b.c` for messages.
fn dotted(root: &str, path: &[String]) -> String {
    std::iter::once(root).chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(".")
}
