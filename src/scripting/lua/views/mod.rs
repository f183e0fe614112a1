//! Objects of the host in scripts: `ctx` and the parts of it that are alive.

mod conditions;
mod ctx;
mod index;
mod logger;
mod memo;
mod patch;
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
use super::refusal::ServerError;

/// The content of a view as plain JSON; `None` if the object has none.
pub(super) fn json_of(object: &AnyUserData) -> Option<Value> {
    if let Ok(view) = object.borrow::<PatchView>() {
        return Some(view.json());
    }
    if let Ok(error) = object.borrow::<ServerError>() {
        return Some(error.0.message.as_str().into());
    }
    if let Ok(view) = object.borrow::<SettingsView>() {
        return Some(view.json());
    }
    if let Ok(view) = object.borrow::<ReasonsView>() {
        return Some(view.json());
    }
    if let Ok(view) = object.borrow::<ConditionsView>() {
        return Some(view.json());
    }
    if let Ok(view) = object.borrow::<MemoView>() {
        return Some(view.json());
    }
    index::json_of(object)
}

/// The object that `ctx` is about, if the value is a `ctx`: for functions that take objects.
pub(super) fn handled(value: &LuaValue) -> Option<Value> {
    let ctx = value.as_userdata()?.borrow::<CtxView>().ok()?;
    ctx.object().map(|it| Value::clone(it.body()))
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
