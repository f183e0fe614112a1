//! `env` and `files`: see `scripting/reach`.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::{push::Style, watchdog, world::World};
use crate::scripting::reach::{Function, LIBRARIES, Library};

/// Adds the libraries to the globals.
pub(super) fn install(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    for library in LIBRARIES {
        let table = lua.create_table()?;
        for (name, function) in library.functions {
            let place = format!("{}.{name}", library.name);
            let function = if function.waits() {
                waiting(lua, *function, place)
            } else {
                immediate(lua, *function, place)
            };
            table.set(*name, function?)?;
        }
        table.set_metatable(Some(name_nearest(lua, library)?))?;
        table.set_readonly(true);
        globals.set(library.name, table)?;
    }
    Ok(())
}

fn immediate(lua: &Lua, function: Function, place: String) -> mlua::Result<mlua::Function> {
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let arguments = read(&world, &place, &arguments)?;
        let result = world.reach.call(function, &place, &arguments);
        world.push(lua, &result.map_err(mlua::Error::runtime)?, Style::Mutable)
    })
}

/// The disk is waited for on another thread.
fn waiting(lua: &Lua, function: Function, place: String) -> mlua::Result<mlua::Function> {
    lua.create_async_function(move |lua, arguments: MultiValue| {
        let place = place.clone();
        let started = World::of(&lua).and_then(|world| {
            let arguments = read(&world, &place, &arguments)?;
            let reach = Arc::clone(&world.reach);
            let work = move || reach.call(function, &place, &arguments);
            let task = async move { tokio::task::spawn_blocking(work).await };
            Ok(watchdog::wait(&lua, task))
        });
        async move {
            let result = started?.await?.map_err(mlua::Error::external)?;
            World::of(&lua)?.push(&lua, &result.map_err(mlua::Error::runtime)?, Style::Mutable)
        }
    })
}

fn read(world: &World, place: &str, arguments: &MultiValue) -> mlua::Result<Vec<Value>> {
    arguments.iter().map(|it| world.read_as(place, it)).collect()
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
