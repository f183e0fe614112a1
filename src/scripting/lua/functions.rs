//! The functions of `kopf` that take data and return data: see `scripting/functions/kopf.rs`.

use std::sync::Arc;

use mlua::{AnyUserData, Lua, MultiValue, Table, Value as LuaValue};
use serde_json::{Map, Value};

use super::{
    declare::ARGUMENTS_MAX,
    push::Style,
    raised::{self, HandlerError},
    views::{CtxView, LuaPassed},
    world::World,
};
use crate::call::Invocation;
use crate::scripting::{
    functions::{
        kopf::{Argument, HostFunction},
        posting::Described,
    },
    values::HostValue,
};

/// Adds the functions to the `kopf` table.
pub(super) fn install(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    for function in HostFunction::all() {
        let name = function.name;
        let call = move |lua: &Lua, given: MultiValue| call(lua, &function, &given);
        kopf.set(name, lua.create_function(call)?)?;
    }
    Ok(())
}

fn call(lua: &Lua, function: &HostFunction, given: &MultiValue) -> mlua::Result<LuaValue> {
    if given.len() > ARGUMENTS_MAX {
        let told = format!("kopf.{}: more than {ARGUMENTS_MAX} arguments", function.name);
        return Err(mlua::Error::runtime(told));
    }
    let world = World::of(lua)?;
    let given: Vec<_> = given.iter().map(|value| LuaPassed { world: &world, value }).collect();
    let arguments: Vec<_> = given.iter().map(|it| it as &dyn Argument).collect();
    let called = function.call(&arguments, world.present.borrow().as_deref());
    match (called.map_err(mlua::Error::runtime)?, given.first()) {
        (HostValue::Json(value), _) => world.push(lua, &value, Style::Mutable),
        (HostValue::Changed { before, after }, Some(target)) => {
            update(lua, &world, target.value, (&before, &after))?;
            Ok(target.value.clone())
        }
        _ => Ok(LuaValue::Nil),
    }
}

impl Argument for LuaPassed<'_> {
    fn call(&self) -> Option<Arc<Invocation>> {
        let ctx = self.value.as_userdata()?.borrow::<CtxView>().ok()?;
        Some(Arc::clone(ctx.invocation()))
    }

    fn is_raised(&self) -> bool {
        let is_ours = self.value.as_userdata().is_some_and(AnyUserData::is::<HandlerError>);
        self.value.is_error() || is_ours
    }

    fn described(&self) -> Described {
        raised::described(self.world, self.value)
    }

    fn names(&self) -> Option<Vec<String>> {
        /// More than there are options.
        const NAMES_MAX: usize = 10;
        let keys = self.value.as_table()?.pairs::<LuaValue, LuaValue>().take(NAMES_MAX);
        keys.map(|it| it.and_then(|(key, _)| key.to_string())).collect::<mlua::Result<_>>().ok()
    }

    fn split(&self, name: &str, place: &str) -> Result<Option<(Described, Value)>, String> {
        let Some(options) = self.value.as_table() else { return Ok(None) };
        let taken = options.raw_get::<LuaValue>(name).unwrap_or(LuaValue::Nil);
        if taken.is_nil() {
            return Ok(None);
        }
        let mut fields = Map::new();
        let read = options.for_each(|key: String, value: LuaValue| {
            if key != name {
                fields.insert(key, self.world.read_as(place, &value)?);
            }
            Ok(())
        });
        match read {
            Ok(()) => Ok(Some((raised::described(self.world, &taken), fields.into()))),
            Err(mlua::Error::RuntimeError(told)) => Err(told),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Changes a table so that it reads as `after`. What is the same stays as it is.
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
                    // Null is nil at the top, which would be nothing.
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
        // The helpers change what is in maps and lists, never what a value is.
        (_, _) => {}
    }
    Ok(())
}
