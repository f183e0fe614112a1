//! The names below `kopf`: see `scripting/functions/kopf.rs`.

use std::{future, sync::Arc};

use kopf_luau::push::Style;
use mlua::{
    AnyUserData, Function as LuaFunction, IntoLua as _, IntoLuaMulti as _, Lua, MetaMethod,
    MultiValue, Table, UserData, UserDataFields, UserDataMethods, Value as LuaValue,
};
use serde_json::Value;

use super::{
    host_table::Tools,
    raised,
    views::{self, CtxView, LuaPassed},
    world::World,
};
use crate::call::Invocation;
use crate::logic::handlers::{
    declare::{Argument as Part, DeclareError},
    function::Function,
};
use crate::ports::BoxFuture;
use crate::scripting::{
    functions::{
        declaring::TopLevel,
        kopf::{Argument, Caller, Done, HostFunction, Visit, place_of},
        locking,
        names::{self, MARKERS, Words},
    },
    handles::AnyHandle,
    values::{
        Filter, Nested,
        errors::{CallError, Described, ErrorValue},
    },
};

/// More than any function of `kopf` takes.
const ARGUMENTS_MAX: usize = 16;

impl UserData for Filter {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, it, ()| Ok(it.text()));
    }
}

impl UserData for ErrorValue {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "error");
        for name in ErrorValue::FIELDS {
            fields.add_field_method_get(name, |lua, error| {
                World::of(lua)?.push(lua, &error.field(name), Style::Mutable)
            });
        }
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, it, ()| Ok(it.message.clone()));
        methods.add_meta_function(MetaMethod::Concat, views::concat);
    }
}

/// Fills the `kopf` table and makes it read-only.
pub(super) fn install(lua: &Lua, kopf: &Table, tools: &Tools) -> mlua::Result<()> {
    let on = lua.create_table()?;
    for (table, functions) in
        [(kopf, HostFunction::all().collect::<Vec<_>>()), (&on, HostFunction::short().collect())]
    {
        for function in functions {
            table.set(function.name, native(lua, function, tools)?)?;
        }
    }
    on.set_readonly(true);
    kopf.set("on", on)?;
    for (name, marker) in MARKERS {
        kopf.set(name, Filter(Part::Marker(marker)))?;
    }
    for (name, words) in Words::ALL {
        let table = lua.create_table_from(words.entries())?;
        close(lua, &table, &format!("kopf.{name}"), move |it| words.get(it).err())?;
        kopf.set(name, table)?;
    }
    close(lua, kopf, "kopf", |it| Some(names::unknown(it)))
}

/// Makes a table read-only. Reading an unknown name raises an error that suggests the right one, instead of returning nil.
pub(super) fn close(
    lua: &Lua,
    table: &Table,
    name: &str,
    unknown: impl Fn(&str) -> Option<String> + 'static,
) -> mlua::Result<()> {
    let missing = move |_: &Lua, (_, name): (Table, LuaValue)| -> mlua::Result<LuaValue> {
        Err(mlua::Error::runtime(unknown(&name.to_string()?).unwrap_or_default()))
    };
    let meta = lua.create_table()?;
    meta.set("__index", lua.create_function(missing)?)?;
    meta.set("__metatable", name)?;
    table.set_metatable(Some(meta))?;
    table.set_readonly(true);
    Ok(())
}

fn native(lua: &Lua, function: HostFunction, tools: &Tools) -> mlua::Result<LuaFunction> {
    let (raises, waits, calls) = (function.raises(), function.waits(), function.calls());
    if calls && !waits {
        return Ok(tools.trying.clone());
    }
    let native = lua.create_function(move |lua, given: MultiValue| {
        let ended = call(lua, &function, &given)?;
        if raises { ended.into_lua_multi(lua) } else { ended.1.into_lua_multi(lua) }
    })?;
    let native = if waits { tools.pausing.call(native)? } else { native };
    let native = if raises { tools.raising.call(native)? } else { native };
    if calls {
        let free = lua.create_function(|lua, number: u64| {
            locking::locks_of(World::of(lua)?.present.borrow().as_ref()).free(number);
            Ok(())
        })?;
        return tools.locking.call((native, free));
    }
    Ok(native)
}

/// The error to raise, and the result.
pub(super) type Ended = (LuaValue, LuaValue);

fn call(lua: &Lua, function: &HostFunction, given: &MultiValue) -> mlua::Result<Ended> {
    if given.len() > ARGUMENTS_MAX {
        let told = format!("kopf.{}: more than {ARGUMENTS_MAX} arguments", function.name);
        return Err(mlua::Error::runtime(told));
    }
    let world = World::of(lua)?;
    let arguments: Vec<_> =
        given.iter().map(|value| LuaPassed { lua, world: &world, value }).collect();
    let arguments: Vec<_> = arguments.iter().map(|it| it as &dyn Argument).collect();
    let called = function.call(&arguments, &LuaCaller { lua, world: &world });
    let done = match called {
        Ok(done) => done,
        // The wrapper of a waiting function ignores its results, and raises the error of the wait instead.
        Err(failed @ CallError::Raised(_)) if function.waits() => {
            wait_for(lua, &world, Box::pin(future::ready(Err(failed))), None);
            return Ok((LuaValue::Nil, LuaValue::Nil));
        }
        Err(failed) => return raise(lua, failed),
    };
    let first = given.front().unwrap_or(&LuaValue::Nil);
    let result = match done {
        Done::Value(value) => views::native(lua, value, Style::Mutable)?,
        Done::Changed { before, after } => {
            update(lua, &world, first, (&before, &after))?;
            first.clone()
        }
        Done::Listed => {
            let items = first.as_table().cloned().map_or_else(|| lua.create_table(), Ok)?;
            items.set_metatable(Some(world.shapes.array.clone()))?;
            LuaValue::Table(items)
        }
        Done::Below(path) => below(lua, first, &path, given.get(2))?,
        Done::Wait(wait) => {
            wait_for(lua, &world, wait, None);
            LuaValue::Nil
        }
        Done::Lock(number, wait) => {
            wait_for(lua, &world, wait, Some(number));
            LuaValue::Nil
        }
    };
    Ok((LuaValue::Nil, result))
}

/// Makes the call wait, and returns this result to it.
fn wait_for(
    lua: &Lua,
    world: &World,
    wait: BoxFuture<'static, Result<(), CallError>>,
    result: Option<u64>,
) {
    // Weak: a wait that never begins must not keep the VM.
    let lua = lua.weak();
    world.wait_for(async move {
        let ended = wait.await;
        let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
        match ended {
            Ok(()) => (LuaValue::Nil, result).into_lua_multi(&lua),
            Err(failed) => raise(&lua, failed)?.into_lua_multi(&lua),
        }
    });
}

/// Returns the error that the prelude raises for a failed call.
fn raise(lua: &Lua, failed: CallError) -> mlua::Result<Ended> {
    match failed {
        CallError::Told(error) => Err(mlua::Error::external(error)),
        CallError::Raised(error) => Ok((error.into_lua(lua)?, LuaValue::Nil)),
    }
}

/// Returns the value at a path below `value`, or the default.
fn below(
    lua: &Lua,
    value: &LuaValue,
    path: &[Value],
    default: Option<&LuaValue>,
) -> mlua::Result<LuaValue> {
    let plain = |value: LuaValue| match value.as_userdata() {
        Some(object) => views::plain(lua, object).map(|it| it.unwrap_or(LuaValue::Nil)),
        None => Ok(value),
    };
    let mut value = value.clone();
    for step in path {
        if let Some(item) = value.as_userdata().and_then(|it| views::item(lua, it, step)) {
            value = item?;
            continue;
        }
        let LuaValue::Table(table) = plain(value)? else {
            value = LuaValue::Nil;
            break;
        };
        World::of(lua)?.levels.fill(&table)?;
        value = match place_of(step).filter(|_| table.raw_len() > 0) {
            Some(place) => table.get(place + 1)?,
            None => table.get(World::of(lua)?.push(lua, step, Style::Frozen)?)?,
        };
    }
    let found = plain(value)?;
    let is_there = !found.is_nil() && found != LuaValue::NULL;
    Ok(if is_there { found } else { default.cloned().unwrap_or(LuaValue::Nil) })
}

/// The calling script, in its VM.
struct LuaCaller<'a> {
    lua: &'a Lua,
    world: &'a World,
}

impl Caller for LuaCaller<'_> {
    fn present(&self) -> Option<Arc<Invocation>> {
        self.world.present.borrow().clone()
    }

    fn top_level(&self) -> &TopLevel {
        &self.world.top_level
    }

    fn location(&self) -> String {
        location(self.lua)
    }

    fn string_size(&self) -> usize {
        self.world.limits.sandbox.string_size
    }
}

/// Returns `FILE:LINE` of the script's line that called the host, maybe through the prelude.
pub(super) fn location(lua: &Lua) -> String {
    /// Only a few frames of the prelude and the host are above those of the script.
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

impl Argument for LuaPassed<'_> {
    fn is_left_out(&self) -> bool {
        self.value.is_nil()
    }

    fn call(&self) -> Option<Arc<Invocation>> {
        let ctx = self.value.as_userdata()?.borrow::<CtxView>().ok()?;
        Some(Arc::clone(ctx.invocation()))
    }

    fn handle(&self) -> Option<AnyHandle> {
        views::handle(self.value.as_userdata()?)
    }

    fn filter(&self) -> Option<Filter> {
        let filter = self.value.as_userdata()?.borrow::<Filter>().ok()?;
        Some(filter.clone())
    }

    fn library(&self) -> Option<&'static str> {
        None // A function of the script comes before a library of its name.
    }

    fn function(&self, _is_handler: bool) -> Result<Option<Function>, DeclareError> {
        let function = self.value.as_function();
        Ok(function.map(|it| self.world.refer(it, &name_of(self.lua, it))))
    }

    fn is_raised(&self) -> bool {
        let is_ours = self.value.as_userdata().is_some_and(AnyUserData::is::<ErrorValue>);
        self.value.is_error() || is_ours
    }

    fn described(&self) -> Described {
        raised::described(self.world, self.value)
    }

    fn text(&self) -> Result<String, String> {
        if self.value.is_nil() {
            return Ok(String::new());
        }
        self.value.to_string().map_err(|it| it.to_string())
    }

    fn inside(&self) -> Option<Nested> {
        let table = self.value.as_table()?;
        // If the memory is full, the next step of the script fails, too.
        self.world.levels.fill(table).ok()?;
        let is_list = table.raw_len() > 0
            || table.metatable().is_some_and(|it| it == self.world.shapes.array);
        Some(if is_list { Nested::List } else { Nested::Map })
    }

    fn visit(&self, visit: &mut Visit<'_>) -> Result<(), CallError> {
        let Some(table) = self.value.as_table() else { return Ok(()) };
        self.world.levels.fill(table).map_err(|it| it.to_string())?;
        let mut visited = Ok(());
        let mut one = |key: &LuaValue, value: &LuaValue| {
            let name = key.as_string().and_then(|it| it.to_str().ok());
            let value = LuaPassed { value, ..*self };
            visited = visit(name.as_deref(), &value);
            if visited.is_ok() { Ok(()) } else { Err(mlua::Error::runtime("")) }
        };
        let walked = if self.inside() == Some(Nested::List) {
            let mut items = table.sequence_values::<LuaValue>();
            let listed = items.try_for_each(|it| one(&LuaValue::Nil, &it?));
            // A list may have fields, too: `{ "configmaps", map = f }`.
            listed.and_then(|()| {
                table.for_each(
                    |key: LuaValue, value: LuaValue| {
                        if key.is_string() { one(&key, &value) } else { Ok(()) }
                    },
                )
            })
        } else {
            table.for_each(|key: LuaValue, value: LuaValue| one(&key, &value))
        };
        visited.and_then(|()| walked.map_err(|it| it.to_string().into()))
    }
}

/// Returns the name that a function was defined with, else the global that holds it, else an empty string.
fn name_of(lua: &Lua, function: &LuaFunction) -> String {
    let own = function.info().name.filter(|it| !it.is_empty());
    own.or_else(|| {
        // Only the script's own globals: those of the host are in the metatable.
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

/// Changes a table so that it reads as `after`. Equal parts are left untouched.
fn update(
    lua: &Lua,
    world: &World,
    target: &LuaValue,
    (before, after): (&Value, &Value),
) -> mlua::Result<()> {
    let Some(table) = target.as_table() else { return Ok(()) };
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            for (place, pair) in (1..).zip(before.iter().zip(after)) {
                update(lua, world, &table.get(place)?, pair)?;
            }
        }
        (Value::Object(before), Value::Object(after)) => {
            for (key, new) in after {
                let old = before.get(key);
                match old {
                    Some(old) if old == new => {}
                    Some(old @ Value::Object(_)) if new.is_object() => {
                        update(lua, world, &table.get(key.as_str())?, (old, new))?;
                    }
                    // At the top, null would become nil, which removes the field.
                    Some(_) | None if new.is_null() => table.set(key.as_str(), LuaValue::NULL)?,
                    Some(_) | None => {
                        table.set(key.as_str(), world.push(lua, new, Style::Mutable)?)?;
                    }
                }
            }
            for key in before.keys().filter(|it| !after.contains_key(*it)) {
                table.set(key.as_str(), LuaValue::Nil)?;
            }
        }
        // The helpers change the content of maps and lists, never the type of a value.
        (_, _) => {}
    }
    Ok(())
}
