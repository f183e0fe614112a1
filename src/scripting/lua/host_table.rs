//! The `kopf` table, and the other globals that the host adds or removes.

use std::io;

use kopf_luau::builtins;
use mlua::{AnyUserData, Function as LuaFunction, Lua, Table, Value as LuaValue};

use super::{functions, library, modules::LuaModules, raised, views, world::World};
use crate::scripting::{
    inline,
    values::{limits, text},
};
use crate::settings::Sandbox;

/// Built-ins that a sandbox must not have.
const REMOVED: [&str; 6] =
    ["loadstring", "getfenv", "setfenv", "newproxy", "gcinfo", "collectgarbage"];

/// Returns the string of a table, as JSON.
#[expect(clippy::needless_pass_by_value, reason = "the shape of a function for Lua")]
pub(super) fn compact(lua: &Lua, value: LuaValue) -> mlua::Result<String> {
    World::of(lua)?.read_as("tostring", &value).map(|it| text::shown(&it))
}

/// Functions of the prelude that let functions of the host wait and raise errors.
pub(super) struct Tools {
    /// Wraps a function that calls `World::wait_for`: the wrapper waits, and returns the result.
    pub(super) pausing: LuaFunction,
    /// Wraps a function with two results: the wrapper raises the first, or returns the second.
    pub(super) raising: LuaFunction,
    /// Raises its first argument, or returns the second.
    pub(super) result_of: LuaFunction,
    /// Makes `kopf.lock` from a function that waits for a lock and one that frees it.
    pub(super) locking: LuaFunction,
    /// `kopf.try`
    pub(super) trying: LuaFunction,
}

/// Sets the globals of the VM, and closes the sandbox.
pub(super) fn install(lua: &Lua, modules: LuaModules) -> mlua::Result<()> {
    let globals = lua.globals();
    for name in REMOVED {
        globals.raw_set(name, LuaValue::Nil)?;
    }
    let host = host_functions(lua, modules)?;
    builtins::install(lua, &host, limits_of_builtins(&*World::of(lua)?))?;
    let prelude = lua.load(include_str!("prelude.lua")).set_name("=kopf");
    let (wait, pausing, raising, result_of, locking, trying) =
        prelude.call::<PreludeResults>(host)?;
    let tools = Tools { pausing, raising, result_of, locking, trying };
    #[cfg(test)]
    super::tests::install(lua, &tools)?;
    let kopf = lua.create_table()?;
    kopf.set("null", LuaValue::NULL)?;
    functions::install(lua, &kopf, &tools)?;
    globals.set("kopf", kopf)?;
    library::install(lua, &globals, tools)?;
    // Set once per VM, so the results can be ignored.
    drop(World::of(lua)?.wait_method.set(wait));
    drop(World::of(lua)?.format.set(globals.get::<Table>("string")?.get("format")?));
    drop(World::of(lua)?.traceback.set(globals.get::<Table>("debug")?.get("traceback")?));
    lua.sandbox(true)
}

/// Returns the limits of built-ins that make strings and coroutines.
fn limits_of_builtins(world: &World) -> builtins::Limits {
    let Sandbox { string_size, coroutines, .. } = world.limits.sandbox;
    builtins::Limits {
        string_size,
        too_long: limits::too_long_text(string_size),
        coroutines,
        too_many: limits::too_many_coroutines(coroutines),
    }
}

/// The results of the prelude: the method `wait` of `ctx.stopped`, and [`Tools`].
type PreludeResults =
    (LuaFunction, LuaFunction, LuaFunction, LuaFunction, LuaFunction, LuaFunction);

/// Creates the functions that only the prelude can use.
fn host_functions(lua: &Lua, modules: LuaModules) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    let print = |lua: &Lua, text: mlua::LuaString| {
        let text = text.to_string_lossy();
        let world = World::of(lua)?;
        let printer = &world.surroundings.printer;
        let is_direct = world.meter.is_inline() && printer.logged.is_none();
        if is_direct && inline::may_wait(io::stdout(), text.len() + 1) {
            return Ok(false);
        }
        world.meter.outside(|| printer.print(&text));
        Ok(true)
    };
    host.set("print", lua.create_function(print)?)?;
    host.set("null", LuaValue::NULL)?;
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
        let text = raised::of_error(&*World::of(lua)?, error).into_text();
        lua.create_string(text).map(LuaValue::String)
    };
    host.set("told", lua.create_function(told)?)?;
    let module =
        move |lua: &Lua, (name, loaded): (String, Table)| modules.find(lua, &name, &loaded);
    host.set("module", lua.create_function(module)?)?;
    let plain =
        |lua: &Lua, object: AnyUserData| Ok(views::plain(lua, &object)?.unwrap_or(LuaValue::Nil));
    host.set("plain", lua.create_function(plain)?)?;
    let iterate = |lua: &Lua, object: AnyUserData| views::iterate(lua, &object);
    host.set("iterate", lua.create_function(iterate)?)?;
    host.set("pending", Lua::poll_pending())?;
    Ok(host)
}
