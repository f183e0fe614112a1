//! The libraries as globals: see `scripting/library`.

use std::{rc::Rc, sync::Arc};

use mlua::{
    AnyUserData, IntoLua as _, IntoLuaMulti as _, Lua, MultiValue, Table, Value as LuaValue,
};

use super::{push::Style, refusal::ServerError, streams, views, world::World};
use crate::ports::BoxFuture;
use crate::scripting::library::{
    Body, Call, Datum, Failure, Flow, Function, LIBRARIES, Library, Outcome,
};

/// Adds the libraries to the globals.
pub(super) fn install(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let raising = lua.load(RAISING).set_name("=kopf").into_function()?;
    let pausing = lua.load(PAUSING).set_name("=kopf").into_function()?;
    let looping = lua.load(streams::LOOPING).set_name("=kopf").into_function()?;
    for library in LIBRARIES {
        let table = lua.create_table()?;
        for function in library.functions {
            let called = match function.body {
                Body::Immediate(body) => immediate(lua, (library, function), body)?,
                Body::Waiting(body) => {
                    let waiting = waiting(lua, (library, function), body)?;
                    pausing.call::<mlua::Function>((waiting, Lua::poll_pending()))?
                }
                Body::Streaming(body) => {
                    let open = streaming(lua, (library, function), body)?;
                    let next =
                        lua.create_function(|lua, it: AnyUserData| streams::next(lua, &it))?;
                    let looping = looping.call::<mlua::Function>((open, next, Lua::poll_pending()));
                    table.set(function.name, looping?)?;
                    continue;
                }
            };
            table.set(function.name, raising.call::<mlua::Function>(called)?)?;
        }
        table.set_metatable(Some(name_nearest(lua, library)?))?;
        table.set_readonly(true);
        globals.set(library.name, table)?;
    }
    Ok(())
}

/// Raises what went wrong where the script has called.
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

/// A function and where it is.
type Named = (&'static Library, &'static Function);

/// What went wrong, or the result.
pub(super) type Ended = (LuaValue, LuaValue);

fn immediate(
    lua: &Lua,
    (library, function): Named,
    body: fn(&Call) -> Outcome,
) -> mlua::Result<mlua::Function> {
    let place = format!("{}.{}", library.name, function.name);
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let called = call(&world, (library, function), &arguments).and_then(|it| body(&it));
        ended(lua, &world, &place, called)
    })
}

/// What is waited for belongs to the call that waits.
fn waiting(
    lua: &Lua,
    (library, function): Named,
    body: fn(Call) -> BoxFuture<'static, Outcome>,
) -> mlua::Result<mlua::Function> {
    let place = format!("{}.{}", library.name, function.name);
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let place = place.clone();
        let called = call(&world, (library, function), &arguments).map(body);
        // Weak: a wait that never begins must not keep the VM.
        let lua = lua.weak();
        world.wait_for(async move {
            let called = match called {
                Ok(waited) => waited.await,
                Err(failure) => Err(failure),
            };
            let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
            ended(&lua, &*World::of(&lua)?, &place, called)?.into_lua_multi(&lua)
        });
        Ok(())
    })
}

/// What is looped over belongs to the call that loops.
fn streaming(
    lua: &Lua,
    (library, function): Named,
    body: fn(&Call) -> Result<Flow, Failure>,
) -> mlua::Result<mlua::Function> {
    let place: Rc<str> = format!("{}.{}", library.name, function.name).into();
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        match call(&world, (library, function), &arguments).and_then(|it| body(&it)) {
            Ok(flow) => {
                let stream = streams::open(lua, &world, &place, flow)?;
                Ok((LuaValue::Nil, stream.into_lua(lua)?))
            }
            Err(failure) => ended(lua, &world, &place, Err(failure)),
        }
    })
}

fn call(world: &World, named: Named, arguments: &MultiValue) -> Result<Call, Failure> {
    let read = |it: &LuaValue| match views::handled(it) {
        Some(body) => Ok(Datum::Json(body)),
        None => world.read(it, None).map(Datum::Json),
    };
    let arguments = arguments.iter().map(read).collect::<Result<_, _>>();
    let arguments = arguments.map_err(|it| Failure::Plain(it.at("an argument")))?;
    let present = world.present.borrow().clone();
    Call::new(named, arguments, Arc::clone(&world.surroundings), present)
}

/// As the prelude takes it: what went wrong, or the result.
pub(super) fn ended(lua: &Lua, world: &World, place: &str, called: Outcome) -> mlua::Result<Ended> {
    match called {
        Ok(Datum::Json(result)) => Ok((LuaValue::Nil, world.push(lua, &result, Style::Mutable)?)),
        Err(failure) => match failure.at(place) {
            Failure::Plain(message) => Ok((message.into_lua(lua)?, LuaValue::Nil)),
            Failure::Answer(refusal) => Ok((ServerError(refusal).into_lua(lua)?, LuaValue::Nil)),
        },
    }
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
