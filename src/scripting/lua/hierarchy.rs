//! `kopf.adopt` and its siblings. The tables of the script are changed in place, and given back.

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde_json::Value;

use super::{declare::ARGUMENTS_MAX, push::Style, world::World};
use crate::scripting::hierarchy::{Function, HELPERS, Helper};

/// Adds the functions to the `kopf` table.
pub(super) fn install(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    for helper in HELPERS {
        let call = move |lua: &Lua, arguments: MultiValue| call(lua, helper, arguments);
        kopf.set(helper.name, lua.create_function(call)?)?;
    }
    Ok(())
}

fn call(lua: &Lua, helper: &Helper, mut arguments: MultiValue) -> mlua::Result<LuaValue> {
    let world = World::of(lua)?;
    let place = format!("kopf.{}", helper.name);
    if arguments.len() > ARGUMENTS_MAX {
        return Err(mlua::Error::runtime(format!("{place}: more than {ARGUMENTS_MAX} arguments")));
    }
    let target = arguments.pop_front().unwrap_or(LuaValue::Nil);
    let before = world.read_as(&place, &target)?;
    let read = |it: &LuaValue| (!it.is_nil()).then(|| world.read_as(&place, it)).transpose();
    let rest = arguments.iter().map(read).collect::<mlua::Result<_>>()?;
    let after = helper.call(before.clone(), rest, world.present.borrow().as_deref());
    let after = after.map_err(mlua::Error::runtime)?;
    match helper.function {
        Function::BuildObjectReference | Function::BuildOwnerReference => {
            world.push(lua, &after, Style::Mutable)
        }
        Function::Adopt
        | Function::AppendOwnerReference
        | Function::RemoveOwnerReference
        | Function::HarmonizeNaming
        | Function::AdjustNamespace
        | Function::Label => {
            update(lua, &world, &target, (&before, &after))?;
            Ok(target)
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
