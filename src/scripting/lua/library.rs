//! The libraries as globals: see `scripting/functions`.

use std::{cell::OnceCell, rc::Rc, sync::Arc};

use kopf_json::shared::Part;
use kopf_luau::push::Style;
use mlua::{
    AnyUserData, Function as LuaFunction, IntoLua as _, IntoLuaMulti as _, Lua, MultiValue, Table,
    Value as LuaValue, chunk::ChunkMode,
};
use serde_json::Value;

use super::{
    functions::{Ended, close, location},
    host_table::Tools,
    streams, views,
    world::World,
};
use crate::call::{Faked, Invocation};
use crate::ports::BoxFuture;
use crate::scripting::{
    functions::{
        self, Call, Given, Shape, embedded, fake,
        outcome::{Datum, Failure, Flow, Outcome},
        types::{Body, Function, Library},
    },
    values::{Nested, errors::ErrorValue},
};

/// Creates libraries, each when a script uses it first: most scripts use few.
struct Workshop {
    /// The host's globals: the finished libraries are added there, and scripts cannot replace the functions in it.
    globals: Table,
    tools: Tools,
    /// The functions `looping` and `checking` of `library.lua`.
    makers: OnceCell<(LuaFunction, LuaFunction)>,
}

/// Makes the libraries available as globals. A library that no script uses costs nothing more.
pub(super) fn install(lua: &Lua, globals: &Table, tools: Tools) -> mlua::Result<()> {
    let workshop = Workshop { globals: globals.clone(), tools, makers: OnceCell::new() };
    let missing = move |lua: &Lua, (_, name): (Table, LuaValue)| {
        let name = name.as_string().and_then(|it| it.to_str().ok());
        match name.and_then(|it| functions::find(&it)) {
            Some(library) => workshop.make(lua, library).map(LuaValue::Table),
            None => Ok(LuaValue::Nil),
        }
    };
    let meta = lua.create_table()?;
    meta.set("__index", lua.create_function(missing)?)?;
    meta.set("__metatable", "globals")?;
    meta.set_readonly(true);
    globals.set_metatable(Some(meta))
}

impl Workshop {
    fn makers(&self, lua: &Lua) -> mlua::Result<&(LuaFunction, LuaFunction)> {
        if let Some(makers) = self.makers.get() {
            return Ok(makers);
        }
        let chunk = lua.load(include_str!("library.lua")).set_name("=kopf");
        let chunk = chunk.set_environment(self.globals.clone());
        let makers = chunk.call(self.tools.result_of.clone())?;
        Ok(self.makers.get_or_init(|| makers))
    }

    /// Creates the function that a loop calls for the next value.
    fn next(&self, lua: &Lua) -> mlua::Result<LuaFunction> {
        let next = lua.create_function(|lua, it: AnyUserData| streams::next(lua, &it))?;
        self.tools.pausing.call(next)
    }

    /// Creates a library and stores it in the globals.
    fn make(&self, lua: &Lua, library: &'static Library) -> mlua::Result<Table> {
        let (looping, checking) = self.makers(lua)?;
        let Tools { pausing, raising, .. } = &self.tools;
        let table = lua.create_table()?;
        let scripts = self.scripts(lua, library)?;
        for function in library.functions {
            let named = (library, function);
            let made: LuaFunction = match function.body {
                Body::Immediate(body) => raising.call(immediate(lua, named, body)?)?,
                Body::Waiting(body) => {
                    let paused: LuaFunction = pausing.call(waiting(lua, named, body)?)?;
                    raising.call(paused)?
                }
                Body::Script => {
                    let body: LuaFunction = scripts.get(function.name)?;
                    let plain = lua.create_function(|lua, it: MultiValue| plain(lua, it))?;
                    checking.call((checked(lua, named)?, plain, body))?
                }
                Body::Faking(what) => raising.call(faking(lua, named, what)?)?,
                Body::Streaming(body) => {
                    looping.call((streaming(lua, named, body)?, self.next(lua)?))?
                }
            };
            table.set(function.name, made)?;
        }
        close(lua, &table, library.name, move |it| Some(library.unknown(it)))?;
        self.globals.set_readonly(false);
        let kept = self.globals.raw_set(library.name, &table);
        self.globals.set_readonly(true);
        kept.map(|()| table)
    }

    /// Returns the functions that are written in Lua, by name.
    fn scripts(&self, lua: &Lua, library: &'static Library) -> mlua::Result<Table> {
        let Some((name, text)) = embedded::lua(library) else { return lua.create_table() };
        let chunk = lua.load(text).set_name(format!("={name}")).set_mode(ChunkMode::Text);
        chunk.set_environment(self.globals.clone()).call(self.parts(lua, library)?)
    }

    /// Returns the host functions that these use. A part returns its error or its result; a stream part opens the stream, `next` returns
    /// its next value, and `finish` ends it.
    fn parts(&self, lua: &Lua, library: &'static Library) -> mlua::Result<Table> {
        let host = lua.create_table()?;
        for part in embedded::parts(library) {
            let named = (library, &part.function);
            match part.function.body {
                Body::Immediate(body) => {
                    host.set(part.function.name, immediate(lua, named, body)?)?;
                }
                Body::Streaming(body) => {
                    host.set(part.function.name, streaming(lua, named, body)?)?;
                    host.set("next", self.next(lua)?)?;
                    let finish = lua.create_function(|_, it: AnyUserData| streams::finish(&it))?;
                    host.set("finish", finish)?;
                }
                Body::Waiting(_) | Body::Script | Body::Faking(_) => {}
            }
        }
        Ok(host)
    }
}

/// Creates a function with which a test registers a fake.
fn faking(lua: &Lua, (library, function): NamedFunction, what: Faked) -> mlua::Result<LuaFunction> {
    let place = format!("{}.{}", library.name, function.name);
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let shapes: Vec<_> = arguments.iter().map(|it| shape(&world, it)).collect();
        let url = arguments.front().and_then(|it| it.as_string()?.to_str().ok());
        let answer = arguments.back().and_then(LuaValue::as_function);
        let declared = function.check_shapes(library, &shapes).and_then(|()| match answer {
            Some(answer) => {
                let answer = world.refer(answer, "");
                let url = url.as_deref().unwrap_or_default();
                let present = world.present.borrow().clone();
                let answer = (answer, location(lua));
                fake::declare(what, url, answer, (&world.surroundings, present))
            }
            None => Ok(()),
        });
        ended(lua, &world, &place, declared.map(|()| Value::Null.into()))
    })
}

/// A function and its library.
type NamedFunction = (&'static Library, &'static Function);

fn immediate(
    lua: &Lua,
    (library, function): NamedFunction,
    body: fn(&Call) -> Outcome,
) -> mlua::Result<LuaFunction> {
    let place = format!("{}.{}", library.name, function.name);
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let called = call(&world, (library, function), &arguments);
        let called = called.and_then(|it| it.compute(body, &world.pace));
        ended(lua, &world, &place, called)
    })
}

/// Creates a function that waits; the wait belongs to the running call.
fn waiting(
    lua: &Lua,
    (library, function): NamedFunction,
    body: fn(Call) -> BoxFuture<'static, Outcome>,
) -> mlua::Result<LuaFunction> {
    let place = format!("{}.{}", library.name, function.name);
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let place = place.clone();
        let called = call(&world, (library, function), &arguments);
        let called = called.map(|it| it.pass(library.name, function.name).map(body));
        let present = world.present.borrow().clone();
        // Weak: a wait that never begins must not keep the VM.
        let lua = lua.weak();
        world.wait_for(async move {
            let called = match called {
                Ok(Ok(waited)) => waited.await,
                Ok(Err(queue)) => {
                    let passage = queue.wait().await;
                    let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
                    let world = World::of(&lua)?;
                    let read = call_of(&world, (library, function), &arguments, present);
                    drop((arguments, world, lua));
                    match (read, passage) {
                        (Ok(call), Some(passage)) => body(call.passing(passage)).await,
                        (Ok(call), None) => body(call).await,
                        (Err(failure), _) => Err(failure),
                    }
                }
                Err(failure) => Err(failure),
            };
            let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
            ended(&lua, &*World::of(&lua)?, &place, called)?.into_lua_multi(&lua)
        });
        Ok(())
    })
}

/// Creates a function that opens a stream; the stream belongs to the running call.
fn streaming(
    lua: &Lua,
    (library, function): NamedFunction,
    body: fn(&Call) -> Result<Flow, Failure>,
) -> mlua::Result<mlua::Function> {
    let place: Rc<str> = format!("{}.{}", library.name, function.name).into();
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        streams::collect(lua, &world)?;
        match call(&world, (library, function), &arguments).and_then(|it| it.flow(body)) {
            Ok(flow) => {
                let stream = streams::open(lua, &world, &place, flow)?;
                Ok((LuaValue::Nil, stream.into_lua(lua)?))
            }
            Err(failure) => ended(lua, &world, &place, Err(failure)),
        }
    })
}

fn call(world: &World, named: NamedFunction, arguments: &MultiValue) -> Result<Call, Failure> {
    call_of(world, named, arguments, world.present.borrow().clone())
}

fn call_of(
    world: &World,
    named: NamedFunction,
    arguments: &MultiValue,
    present: Option<Arc<Invocation>>,
) -> Result<Call, Failure> {
    let (library, function) = named;
    // Checked before all of them are copied.
    if arguments.len() > function.arguments_max() {
        return Err(function.too_many(library, arguments.len()));
    }
    let arguments = arguments.iter().map(|it| given(world, it)).collect();
    Call::new(named, arguments, Arc::clone(&world.surroundings), present)
}

fn given(world: &World, value: &LuaValue) -> Given {
    let bytes = match (value.as_string(), value.as_buffer()) {
        (Some(text), _) if text.to_str().is_err() => Some(text.as_bytes().to_vec()),
        (_, Some(buffer)) => Some(buffer.to_vec()),
        (_, None) => None,
    };
    match bytes {
        Some(bytes) => Given::Datum(Datum::Bytes(bytes)),
        None => match views::handled(value).map_or_else(|| world.read(value, None), Ok) {
            Ok(value) => Given::Datum(Datum::Json(value)),
            Err(refused) => Given::Refused(shape(world, value), refused),
        },
    }
}

fn shape(world: &World, value: &LuaValue) -> Shape {
    if let LuaValue::Table(table) = value
        && let Ok(Some(shape)) = world.levels.read(table, shape_of)
    {
        return shape;
    }
    match value {
        LuaValue::Nil => Shape::Nothing,
        LuaValue::Boolean(_) => Shape::Boolean,
        LuaValue::Integer(_) => Shape::Number { whole: true },
        LuaValue::Number(it) => Shape::Number { whole: it.fract() == 0.0 },
        LuaValue::String(text) if text.as_bytes().is_empty() => Shape::EmptyText,
        LuaValue::String(text) if text.to_str().is_err() => Shape::Bytes,
        LuaValue::String(_) => Shape::Text,
        LuaValue::Table(table) if table.raw_len() > 0 => Shape::List,
        LuaValue::Table(table) if table.metatable().is_some_and(|it| it == world.shapes.array) => {
            Shape::List
        }
        LuaValue::Table(table) if table.is_empty() => Shape::Empty,
        LuaValue::Table(_) => Shape::Map,
        LuaValue::Function(_) => Shape::Function,
        LuaValue::Thread(_) => Shape::Other("a coroutine"),
        LuaValue::Buffer(_) => Shape::Bytes,
        LuaValue::LightUserData(it) if it.0.is_null() => Shape::Nothing,
        LuaValue::Vector(_) => Shape::Other("a vector"),
        LuaValue::Error(_) => Shape::Other("an error"),
        LuaValue::UserData(_) if views::is_handled(value) => Shape::Map,
        LuaValue::UserData(view) => match views::kind(view) {
            Some(Nested::List) => Shape::List,
            Some(Nested::Map) => Shape::Map,
            None => Shape::Other("an object of the host"),
        },
        LuaValue::LightUserData(_) | LuaValue::Other(_) => Shape::Other("an object of the host"),
    }
}

/// Returns the shape of an unfilled level. In Lua, a map with only null fields is empty.
fn shape_of(level: Part<'_>) -> Shape {
    if !level.is_map() {
        Shape::List
    } else if level.fields().all(|(_, it)| it.is_null()) {
        Shape::Empty
    } else {
        Shape::Map
    }
}

/// Creates the check of the arguments of a function that is written in Lua. It returns the error, and whether no argument is userdata.
fn checked(lua: &Lua, (library, function): NamedFunction) -> mlua::Result<LuaFunction> {
    lua.create_function(move |lua, arguments: MultiValue| {
        let world = World::of(lua)?;
        let shapes: Vec<_> = arguments.iter().map(|it| shape(&world, it)).collect();
        let problem = function.check_shapes(library, &shapes).err();
        let problem = problem.map(|it| it.at(&format!("{}.{}", library.name, function.name)));
        let problem = problem.map(Failure::into_message);
        Ok((problem, !arguments.iter().any(LuaValue::is_userdata)))
    })
}

/// Replaces views of the host with tables.
fn plain(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let one = |value: LuaValue| match value.as_userdata() {
        Some(view) => Ok(views::plain(lua, view)?.unwrap_or(value)),
        None => Ok(value),
    };
    values.into_iter().map(one).collect()
}

/// Returns the error and the result, as the prelude expects them.
pub(super) fn ended(lua: &Lua, world: &World, place: &str, called: Outcome) -> mlua::Result<Ended> {
    match called {
        Ok(Datum::Json(result)) => Ok((LuaValue::Nil, world.push(lua, &result, Style::Mutable)?)),
        Ok(Datum::Bytes(result)) => {
            let result = lua.create_string(&result)?;
            world.meter.forget_texts();
            Ok((LuaValue::Nil, LuaValue::String(result)))
        }
        Ok(Datum::Map(parts)) => {
            let table = lua.create_table()?;
            for (key, value) in parts {
                table.raw_set(key, lua.create_string(&value)?)?;
            }
            world.meter.forget_texts();
            Ok((LuaValue::Nil, LuaValue::Table(table)))
        }
        Err(failure) => match failure.at(place) {
            Failure::Plain(message) => Ok((message.into_lua(lua)?, LuaValue::Nil)),
            Failure::Answer(refusal) => {
                Ok((ErrorValue::of_server(refusal).into_lua(lua)?, LuaValue::Nil))
            }
        },
    }
}
