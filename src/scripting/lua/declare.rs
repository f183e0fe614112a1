//! `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)` and its siblings: from Lua values to declarations.

use std::rc::Rc;

use mlua::{
    AnyUserData, Function as LuaFunction, Lua, MultiValue, Table, UserData, UserDataMethods,
    Value as LuaValue,
};

use serde_json::Value;

use super::world::World;
use crate::logic::handlers::{
    declare::{self, Argument, Declaration, Marker},
    handler::{Callback, Kind},
};
use crate::scripting::{
    functions::{
        children,
        names::{self, Declaring, NoHandler},
    },
    values::{
        limits,
        refused::{DEPTH_MAX, Refused},
    },
};

/// `kopf.PRESENT` and the like.
struct MarkerValue(Marker);

impl UserData for MarkerValue {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method("__tostring", |_, marker, ()| {
            Ok(match marker.0 {
                Marker::Present => "kopf.PRESENT",
                Marker::Absent => "kopf.ABSENT",
                Marker::Everything => "kopf.EVERYTHING",
            })
        });
    }
}

/// `kopf.all_ { … }` and the like.
struct CallbackValue(Callback);

impl UserData for CallbackValue {}

/// Adds everything about declarations to the `kopf` table.
pub(super) fn install(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    let on = lua.create_table()?;
    for Declaring { name, short, kind, doc: _ } in names::DECLARING {
        let declare = lua.create_function(move |lua, arguments| match kind {
            Some(kind) => declare_one(lua, name, *kind, arguments),
            None => Err(mlua::Error::external(names::not_built(name))),
        })?;
        if let Some(short) = short {
            on.set(*short, &declare)?;
        }
        kopf.set(*name, declare)?;
    }
    on.set_readonly(true);
    kopf.set("on", on)?;
    let markers = [
        ("PRESENT", Marker::Present),
        ("ABSENT", Marker::Absent),
        ("EVERYTHING", Marker::Everything),
    ];
    for (name, marker) in markers {
        kopf.set(name, lua.create_userdata(MarkerValue(marker))?)?;
    }
    let lists =
        [("all_", Callback::All as fn(_) -> _), ("any_", Callback::Any), ("none_", Callback::None)];
    for (name, combine) in lists {
        let combine = move |lua: &Lua, arguments: MultiValue| {
            callbacks(lua, name, arguments).map(|it| CallbackValue(combine(it)))
        };
        kopf.set(name, lua.create_function(combine)?)?;
    }
    let not = lua.create_function(|lua, function: LuaValue| {
        Ok(CallbackValue(Callback::Not(Box::new(callback(lua, "not_", &function)?))))
    })?;
    kopf.set("not_", not)
}

fn declare_one(lua: &Lua, name: &str, kind: Kind, arguments: MultiValue) -> mlua::Result<()> {
    let world = World::of(lua)?;
    let is_loading = world.declared.borrow().is_some();
    if is_loading || kind != Kind::Sub {
        if !is_loading {
            return Err(mlua::Error::external(names::too_late(name)));
        }
        if world.declared.borrow().as_ref().is_some_and(|it| it.len() >= limits::FUNCTIONS_MAX) {
            return Err(mlua::Error::runtime(limits::too_many_handlers()));
        }
        let declaration = read_declaration(lua, &world, (name, kind), arguments)?;
        declaration.admit(&world.declared_bytes).map_err(mlua::Error::external)?;
        let handler = declare::declare(declaration).map_err(mlua::Error::external)?;
        if let Some(declared) = &mut *world.declared.borrow_mut() {
            declared.push(handler);
        }
        return Ok(());
    }
    let children = children::of_call(world.present.borrow().as_deref(), name);
    let children = children.map_err(mlua::Error::external)?;
    let declaration = read_declaration(lua, &world, (name, kind), arguments)?;
    children.declare(declaration).map_err(mlua::Error::external)
}

/// More than any function of `kopf` takes.
pub(super) const ARGUMENTS_MAX: usize = 16;

fn read_declaration(
    lua: &Lua,
    world: &Rc<World>,
    (name, kind): (&str, Kind),
    mut arguments: MultiValue,
) -> mlua::Result<Declaration> {
    if arguments.len() > ARGUMENTS_MAX {
        return Err(mlua::Error::runtime(format!(
            "kopf.{name}: more than {ARGUMENTS_MAX} arguments"
        )));
    }
    let function = match arguments.pop_back() {
        Some(LuaValue::Function(function)) => function,
        other => {
            // Without arguments, nothing was spelled wrong.
            let is_unset = other.is_some_and(|it| it.is_nil()) && !arguments.is_empty();
            let given = if is_unset { NoHandler::Nothing } else { NoHandler::Other };
            return Err(mlua::Error::external(names::no_handler(name, kind, given)));
        }
    };
    let options = match arguments.back() {
        Some(LuaValue::Table(table)) => options(lua, world, name, table)?,
        Some(_) | None => Vec::new(),
    };
    if let Some(LuaValue::Table(_)) = arguments.back() {
        arguments.pop_back();
    }
    if options.is_empty() {
        world.declaring.take();
    }
    let selectors = arguments.iter().map(|it| argument(lua, world, "the selector", it));
    let selectors = selectors.collect::<mlua::Result<_>>()?;
    let function = world.refer(&function, &name_of(lua, &function));
    Ok(Declaration { kind, selectors, options, function, location: caller(lua) })
}

/// The options of a function of `kopf`.
pub(super) fn options(
    lua: &Lua,
    world: &World,
    name: &str,
    table: &Table,
) -> mlua::Result<Vec<(String, Argument)>> {
    /// More than there are.
    const OPTIONS_MAX: usize = 100;
    let mut options = Vec::new();
    world.declaring.take();
    table.for_each(|key: LuaValue, value: LuaValue| {
        if options.len() >= OPTIONS_MAX {
            return Err(mlua::Error::runtime(format!("kopf.{name}: too many options")));
        }
        let LuaValue::String(key) = key else {
            return Err(mlua::Error::runtime(format!(
                "kopf.{name}: options are named, not listed"
            )));
        };
        let key = key.to_str()?.to_owned();
        let value = argument(lua, world, &key, &value)?;
        options.push((key, value));
        Ok(())
    })?;
    // Tables have no order of their own.
    options.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(options)
}

/// A value of a declaration; `name` is for messages.
pub(super) fn argument(
    lua: &Lua,
    world: &World,
    name: &str,
    value: &LuaValue,
) -> mlua::Result<Argument> {
    match value {
        LuaValue::Nil => Ok(Argument::Absent),
        LuaValue::Function(_) => callback(lua, name, value).map(Argument::Callback),
        LuaValue::UserData(object) => of_object(name, object),
        LuaValue::Table(table) => match world.read(value, None) {
            Ok(data) => counted(world, data),
            Err(refused) if refused.is_bound() => Err(mlua::Error::runtime(refused.at(name))),
            Err(_) => entries(lua, world, name, table),
        },
        LuaValue::Boolean(_)
        | LuaValue::LightUserData(_)
        | LuaValue::Integer(_)
        | LuaValue::Number(_)
        | LuaValue::Vector(_)
        | LuaValue::String(_)
        | LuaValue::Thread(_)
        | LuaValue::Buffer(_)
        | LuaValue::Error(_)
        | LuaValue::Other(_) => counted(world, world.read_as(name, value)?),
    }
}

/// Data of a declaration, if it is not too much with those that were read before.
fn counted(world: &World, data: Value) -> mlua::Result<Argument> {
    let (bytes, depth) = world.declaring.get();
    let bytes = bytes.saturating_add(limits::weight(&data));
    world.declaring.set((bytes, depth));
    let max = world.limits.sandbox.string_size;
    if bytes > max {
        return Err(mlua::Error::runtime(limits::too_large_as_text("the declaration", max)));
    }
    Ok(Argument::Value(data))
}

fn of_object(name: &str, object: &AnyUserData) -> mlua::Result<Argument> {
    if let Ok(marker) = object.borrow::<MarkerValue>() {
        return Ok(Argument::Marker(marker.0));
    }
    match object.borrow::<CallbackValue>() {
        Ok(combined) => Ok(Argument::Callback(combined.0.clone())),
        Err(_) => Err(mlua::Error::runtime(format!("{name}: an object of the host is no option"))),
    }
}

/// A table with functions or markers inside.
fn entries(lua: &Lua, world: &World, name: &str, table: &Table) -> mlua::Result<Argument> {
    let (bytes, depth) = world.declaring.get();
    if depth >= DEPTH_MAX {
        return Err(mlua::Error::runtime(Refused::too_deep().at(name)));
    }
    world.declaring.set((bytes, depth + 1));
    let read = read_entries(lua, world, name, table);
    world.declaring.set((world.declaring.get().0, depth));
    read
}

fn read_entries(lua: &Lua, world: &World, name: &str, table: &Table) -> mlua::Result<Argument> {
    if table.raw_len() > 0 {
        let items = table.sequence_values::<LuaValue>();
        let items = items.map(|it| argument(lua, world, name, &it?));
        return items.collect::<mlua::Result<_>>().map(Argument::List);
    }
    let mut map = Vec::new();
    table.for_each(|key: String, value: LuaValue| {
        let value = argument(lua, world, &format!("{name}.{key}"), &value)?;
        map.push((key, value));
        Ok(())
    })?;
    map.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Argument::Map(map))
}

fn callbacks(lua: &Lua, name: &str, arguments: MultiValue) -> mlua::Result<Vec<Callback>> {
    // Both `kopf.all_(f, g)` and, as in Kopf, a list of functions.
    let listed = match arguments.front() {
        Some(LuaValue::Table(list)) if arguments.len() == 1 => {
            list.sequence_values().collect::<mlua::Result<Vec<LuaValue>>>()?
        }
        Some(_) | None => arguments.into_iter().collect(),
    };
    listed.iter().map(|it| callback(lua, name, it)).collect()
}

fn callback(lua: &Lua, name: &str, value: &LuaValue) -> mlua::Result<Callback> {
    if let LuaValue::Function(function) = value {
        let world = World::of(lua)?;
        let name = name_of(lua, function);
        return Ok(Callback::Function(world.refer(function, &name)));
    }
    if let LuaValue::UserData(object) = value
        && let Ok(combined) = object.borrow::<CallbackValue>()
    {
        return Ok(combined.0.clone());
    }
    Err(mlua::Error::runtime(names::no_callbacks(name)))
}

/// The name a function was defined with, else the global it is in, else nothing.
fn name_of(lua: &Lua, function: &LuaFunction) -> String {
    let own = function.info().name.filter(|it| !it.is_empty());
    own.or_else(|| {
        // Only the script's own globals: those of the host are one level further.
        let mut names = Vec::new();
        let walked = lua.globals().for_each(|name: LuaValue, value: LuaValue| {
            if let (LuaValue::String(name), LuaValue::Function(value)) = (name, value)
                && value == *function
            {
                names.push(name.to_string_lossy());
            }
            Ok(())
        });
        walked.ok().and_then(|()| names.into_iter().min())
    })
    .unwrap_or_default()
}

/// `file:line` of the script's line that called the host, maybe through the prelude.
pub(super) fn caller(lua: &Lua) -> String {
    /// The prelude and the host are a few frames, the script's own come right after.
    const FRAMES_MAX: usize = 8;
    let place = |level| {
        lua.inspect_stack(level, |frame| {
            let file = frame.source().short_src.map(std::borrow::Cow::into_owned);
            let line = frame.current_line();
            file.zip(line)
                .filter(|(file, _)| file != "kopf")
                .map(|(file, line)| format!("{file}:{line}"))
        })
    };
    (1..FRAMES_MAX).find_map(|level| place(level).flatten()).unwrap_or_default()
}
