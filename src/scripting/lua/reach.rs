//! `env` and `files`: see `scripting/reach`.

use std::sync::Arc;

use mlua::{IntoLuaMulti as _, Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::{push::Style, world::World};
use crate::scripting::reach::{Function, LIBRARIES, Library};

/// Adds the libraries to the globals.
pub(super) fn install(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let raising = lua.load(RAISING).set_name("=kopf").into_function()?;
    let pausing = lua.load(PAUSING).set_name("=kopf").into_function()?;
    for library in LIBRARIES {
        let table = lua.create_table()?;
        for (name, function) in library.functions {
            let place = format!("{}.{name}", library.name);
            let function = if function.waits() {
                let waiting = waiting(lua, *function, place)?;
                pausing.call::<mlua::Function>((waiting, Lua::poll_pending()))?
            } else {
                immediate(lua, *function, place)?
            };
            table.set(*name, raising.call::<mlua::Function>(function)?)?;
        }
        table.set_metatable(Some(name_nearest(lua, library)?))?;
        table.set_readonly(true);
        globals.set(library.name, table)?;
    }
    Ok(())
}

/// Raises what went wrong where the script has called, as a plain text: errors of the host have no place in it.
const RAISING: &str = "
    local call = ...
    return function(...)
        local problem, result = call(...)
        if problem then
            error(problem, 2)
        end
        return result
    end
";

/// Gives up the turn for what the host waits for, as the prelude does.
const PAUSING: &str = "
    local begin, pending = ...
    local yield = coroutine.yield
    local function settled(ok, ...)
        if ok then
            return ...
        end
        error((...), 0)
    end
    return function(...)
        begin(...)
        return settled(yield(pending))
    end
";

/// What went wrong, or the result.
type Outcome = (Option<String>, LuaValue);

fn immediate(lua: &Lua, function: Function, place: String) -> mlua::Result<mlua::Function> {
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let called = read(&world, &place, &arguments)
            .and_then(|arguments| world.reach.call(function, &place, &arguments));
        outcome(lua, &world, called)
    })
}

/// The disk is waited for on another thread.
fn waiting(lua: &Lua, function: Function, place: String) -> mlua::Result<mlua::Function> {
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let place = place.clone();
        let arguments = read(&world, &place, &arguments);
        let reach = Arc::clone(&world.reach);
        let work = move || arguments.and_then(|it| reach.call(function, &place, &it));
        // Weak: a wait that never begins must not keep the VM.
        let lua = lua.weak();
        world.wait_for(async move {
            let called = tokio::task::spawn_blocking(work).await.map_err(mlua::Error::external)?;
            let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
            outcome(&lua, &*World::of(&lua)?, called)?.into_lua_multi(&lua)
        });
        Ok(())
    })
}

fn outcome(lua: &Lua, world: &World, called: Result<Value, String>) -> mlua::Result<Outcome> {
    match called {
        Ok(result) => Ok((None, world.push(lua, &result, Style::Mutable)?)),
        Err(problem) => Ok((Some(problem), LuaValue::Nil)),
    }
}

fn read(world: &World, place: &str, arguments: &MultiValue) -> Result<Vec<Value>, String> {
    arguments.iter().map(|it| world.read(it, None).map_err(|it| it.at(place))).collect()
}

/// A misspelled name is an error that names the right one, instead of a nil that is called.
fn name_nearest(lua: &Lua, library: &'static Library) -> mlua::Result<Table> {
    let meta = lua.create_table()?;
    let missing = move |_: &Lua, (_, name): (Table, LuaValue)| -> mlua::Result<LuaValue> {
        Err(mlua::Error::runtime(library.unknown(&name.to_string()?)))
    };
    meta.set("__index", lua.create_function(missing)?)?;
    meta.set("__metatable", library.name)?;
    Ok(meta)
}
