//! `env` and `files`: see `scripting/reach`.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::{push::Style, watchdog, world::World};
use crate::scripting::reach::{Function, LIBRARIES, Library};

/// Adds the libraries to the globals.
pub(super) fn install(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let raising: mlua::Function = lua.load(RAISING).set_name("=kopf").into_function()?;
    for library in LIBRARIES {
        let table = lua.create_table()?;
        for (name, function) in library.functions {
            let place = format!("{}.{name}", library.name);
            let function = if function.waits() {
                waiting(lua, *function, place)
            } else {
                immediate(lua, *function, place)
            };
            table.set(*name, raising.call::<mlua::Function>(function?)?)?;
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
    lua.create_async_function(move |lua, arguments: MultiValue| {
        let place = place.clone();
        let started = World::of(&lua).map(|world| {
            let arguments = read(&world, &place, &arguments);
            let reach = Arc::clone(&world.reach);
            let work = move || arguments.and_then(|it| reach.call(function, &place, &it));
            let task = async move { tokio::task::spawn_blocking(work).await };
            watchdog::wait(&lua, task)
        });
        async move {
            let called = started?.await?.map_err(mlua::Error::external)?;
            outcome(&lua, &*World::of(&lua)?, called)
        }
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
