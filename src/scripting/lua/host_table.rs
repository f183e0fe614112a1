//! The `kopf` table, and what else the host gives to scripts.

use std::time::Duration;

use mlua::{
    AnyUserData, Function as LuaFunction, LightUserData, Lua, MultiValue, Table, Value as LuaValue,
};

use super::{
    children, declare, functions, library,
    modules::Modules,
    natives,
    push::{Shapes, Style},
    raised::{self, HandlerError},
    views,
    world::World,
};
use crate::logic::handlers::outcome::RaisedKind;
use crate::scripting::{
    functions::{names, print},
    values::{stopped::SLEEP_MAX, text},
};

/// Built-ins that have no place in a sandbox.
const REMOVED: [&str; 6] =
    ["loadstring", "getfenv", "setfenv", "newproxy", "gcinfo", "collectgarbage"];

/// The marks of tables made from JSON, for a new VM.
pub(super) fn shapes(lua: &Lua) -> mlua::Result<Shapes> {
    let shape = |name: &str| -> mlua::Result<Table> {
        let meta = lua.create_table()?;
        meta.set("__metatable", name)?;
        meta.set("__tostring", lua.create_function(|lua, it: LuaValue| compact(lua, &it))?)?;
        Ok(meta)
    };
    let shapes = Shapes { array: shape("array")?, object: shape("object")? };
    shapes.array.set_readonly(true);
    shapes.object.set_readonly(true);
    let null = lua.create_table()?;
    null.set("__metatable", "null")?;
    null.set("__tostring", lua.create_function(|_, _: LuaValue| Ok("null"))?)?;
    null.set_readonly(true);
    lua.set_type_metatable::<LightUserData>(Some(null));
    Ok(shapes)
}

fn compact(lua: &Lua, value: &LuaValue) -> mlua::Result<String> {
    World::of(lua)?.read_as("tostring", value).map(|it| text::shown(&it))
}

/// Gives the VM its globals, closes the sandbox, and returns the function that lets coroutines go on.
pub(super) fn install(lua: &Lua, modules: Modules) -> mlua::Result<LuaFunction> {
    let globals = lua.globals();
    for name in REMOVED {
        globals.raw_set(name, LuaValue::Nil)?;
    }
    let kopf = lua.create_table()?;
    globals.set("kopf", &kopf)?;
    declare::install(lua, &kopf)?;
    functions::install(lua, &kopf)?;
    add_errors(lua, &kopf)?;
    add_values(lua, &kopf)?;
    #[cfg(test)]
    super::tests::install(lua)?;
    let host = host_functions(lua, modules)?;
    natives::install(lua, &host)?;
    children::install(lua, &kopf, &host)?;
    let prelude = lua.load(include_str!("prelude.lua")).set_name("=kopf");
    let (drive, wait, pausing) = prelude.call::<(LuaFunction, LuaFunction, LuaFunction)>(host)?;
    library::install(lua, &globals, pausing)?;
    // Set once per VM: whether they were set before does not matter.
    drop(World::of(lua)?.wait_method.set(wait));
    drop(World::of(lua)?.format.set(globals.get::<Table>("string")?.get("format")?));
    drop(World::of(lua)?.traceback.set(globals.get::<Table>("debug")?.get("traceback")?));
    name_nearest(lua, &kopf)?;
    kopf.set_readonly(true);
    lua.sandbox(true)?;
    Ok(drive)
}

fn add_errors(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    let temporary = lua.create_function(|lua, (message, delay): (LuaValue, LuaValue)| {
        let delay = if delay.is_nil() {
            Some(names::DELAY_DEFAULT)
        } else {
            seconds(lua, "kopf.TemporaryError", &delay)?
        };
        Ok(HandlerError { kind: RaisedKind::Temporary(delay), message: text(&message)? })
    })?;
    kopf.set("TemporaryError", temporary)?;
    let permanent = |_: &Lua, message: LuaValue| {
        Ok(HandlerError { kind: RaisedKind::Permanent, message: text(&message)? })
    };
    kopf.set("PermanentError", lua.create_function(permanent)?)?;
    let admission = |lua: &Lua, (message, code): (LuaValue, LuaValue)| {
        let code = World::of(lua)?.read_as("kopf.AdmissionError", &code)?;
        let kind = names::admission_error(&code).map_err(mlua::Error::runtime)?;
        Ok(HandlerError { kind, message: text(&message)? })
    };
    kopf.set("AdmissionError", lua.create_function(admission)?)?;
    let modes = lua.create_table()?;
    for (name, mode) in names::ERROR_MODES {
        modes.set(*name, *mode)?;
    }
    modes.set_readonly(true);
    kopf.set("ErrorsMode", modes)
}

fn add_values(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    kopf.set("null", LuaValue::NULL)?;
    let array = |lua: &Lua, items: Option<Table>| {
        let items = items.map_or_else(|| lua.create_table(), Ok)?;
        items.set_metatable(Some(World::of(lua)?.shapes.array.clone()))?;
        Ok(items)
    };
    kopf.set("array", lua.create_function(array)?)?;
    let copy = |lua: &Lua, value: LuaValue| {
        let world = World::of(lua)?;
        world.push(lua, &world.read_as("kopf.copy", &value)?, Style::Mutable)
    };
    kopf.set("copy", lua.create_function(copy)?)?;
    let values = |lua: &Lua, index: LuaValue| views::values(lua, &index);
    kopf.set("values", lua.create_function(values)?)
}

/// What the prelude needs and scripts do not see.
fn host_functions(lua: &Lua, modules: Modules) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    let print = |lua: &Lua, text: mlua::LuaString| {
        let text = text.to_string_lossy();
        World::of(lua)?.meter.outside(|| print::print_line(&text));
        Ok(())
    };
    host.set("print", lua.create_function(print)?)?;
    let sleep = |lua: &Lua, duration: LuaValue| {
        let duration = seconds(lua, "kopf.sleep", &duration)?.unwrap_or_default().min(SLEEP_MAX);
        // Made inside: a timer belongs to the moment when it is waited for.
        World::of(lua)?.wait_for(async move {
            tokio::time::sleep(duration).await;
            Ok(MultiValue::new())
        });
        Ok(())
    };
    host.set("sleep", lua.create_function(sleep)?)?;
    host.set("wait", lua.create_function(views::wait)?)?;
    let exhausted = |lua: &Lua, raised: LuaValue| {
        if raised::is_out_of_memory(&raised) {
            World::of(lua)?.meter.exhaust();
        }
        Ok(())
    };
    host.set("exhausted", lua.create_function(exhausted)?)?;
    let told = |lua: &Lua, raised: LuaValue| {
        let Some(error) = raised.as_error() else { return Ok(raised) };
        let text = raised::ScriptError::of_error(&*World::of(lua)?, error).into_text();
        lua.create_string(text).map(LuaValue::String)
    };
    host.set("told", lua.create_function(told)?)?;
    let module =
        move |lua: &Lua, (name, loaded): (String, Table)| modules.find(lua, &name, &loaded);
    host.set("module", lua.create_function(module)?)?;
    let plain =
        |lua: &Lua, object: AnyUserData| Ok(views::plain(lua, &object)?.unwrap_or(LuaValue::Nil));
    host.set("plain", lua.create_function(plain)?)?;
    let item = |lua: &Lua, (object, step): (AnyUserData, LuaValue)| {
        let item = views::item(lua, &object, &step).transpose()?;
        Ok((item.is_some(), item.unwrap_or(LuaValue::Nil)))
    };
    host.set("item", lua.create_function(item)?)?;
    let iterate = |lua: &Lua, object: AnyUserData| views::iterate(lua, &object);
    host.set("iterate", lua.create_function(iterate)?)?;
    host.set("pending", Lua::poll_pending())?;
    Ok(host)
}

/// A misspelled name is an error that names the right one, instead of a nil that is called.
fn name_nearest(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    let meta = lua.create_table()?;
    let missing = |_: &Lua, (_, name): (Table, LuaValue)| -> mlua::Result<LuaValue> {
        Err(mlua::Error::runtime(names::unknown(&text(&name)?)))
    };
    meta.set("__index", lua.create_function(missing)?)?;
    meta.set("__metatable", "kopf")?;
    kopf.set_metatable(Some(meta))
}

fn text(value: &LuaValue) -> mlua::Result<String> {
    if value.is_nil() { Ok(String::new()) } else { value.to_string() }
}

/// A duration that was passed to this function.
pub(super) fn seconds(
    lua: &Lua,
    function: &str,
    value: &LuaValue,
) -> mlua::Result<Option<Duration>> {
    let value = World::of(lua)?.read_as(function, value)?;
    names::duration(&value).map_err(|it| mlua::Error::runtime(format!("{function}: {it}")))
}
