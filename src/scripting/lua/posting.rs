//! `kopf.event`, `kopf.info`, `kopf.warn`, `kopf.exception`.

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use super::{
    declare::ARGUMENTS_MAX,
    raised::{self, HandlerError},
    world::World,
};
use crate::scripting::posting::{self, Arguments, Function};

/// Adds the functions to the `kopf` table.
pub(super) fn install(lua: &Lua, kopf: &Table) -> mlua::Result<()> {
    for (name, function) in posting::FUNCTIONS {
        let post = move |lua: &Lua, arguments: MultiValue| {
            let world = World::of(lua)?;
            let arguments = read(&world, name, *function, arguments)?;
            let present = world.present.borrow();
            posting::post(*function, arguments, present.as_deref()).map_err(mlua::Error::runtime)
        };
        kopf.set(*name, lua.create_function(post)?)?;
    }
    Ok(())
}

fn read(
    world: &World,
    name: &str,
    function: Function,
    mut arguments: MultiValue,
) -> mlua::Result<Arguments> {
    let place = format!("kopf.{name}");
    if arguments.len() > ARGUMENTS_MAX {
        return Err(mlua::Error::runtime(format!("{place}: more than {ARGUMENTS_MAX} arguments")));
    }
    let objects = arguments.pop_front().unwrap_or(LuaValue::Nil);
    let objects = world.read_as(&place, &objects)?;
    let (mut rest, mut error) = (Vec::new(), None);
    for argument in arguments {
        if function == Function::Exception && is_error(&argument) {
            error = Some(raised::described(world, &argument));
            continue;
        }
        let Some(options) = argument.as_table().filter(|_| function == Function::Exception) else {
            rest.push(world.read_as(&place, &argument)?);
            continue;
        };
        // An error is no data: it is taken out, and the rest is read.
        let others = Table::clone(options);
        let exc: LuaValue = others.raw_get("exc")?;
        if exc.is_nil() {
            rest.push(world.read_as(&place, &argument)?);
            continue;
        }
        error = Some(raised::described(world, &exc));
        let mut fields = serde_json::Map::new();
        others.for_each(|key: String, value: LuaValue| {
            if key != "exc" {
                fields.insert(key, world.read_as(&place, &value)?);
            }
            Ok(())
        })?;
        rest.push(fields.into());
    }
    Ok(Arguments { objects, rest, error })
}

fn is_error(value: &LuaValue) -> bool {
    value.is_error() || value.as_userdata().is_some_and(mlua::AnyUserData::is::<HandlerError>)
}
