//! `kopf.event`, `kopf.info`, `kopf.warn`, `kopf.exception`.

use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use super::{
    declare::ARGUMENTS_MAX,
    raised::{self, HandlerError},
    world::World,
};
use crate::scripting::posting::{self, Arguments, EXC, Function};

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
    let objects = world.read_as(&format!("{place}: the object"), &objects)?;
    let (mut rest, mut error) = (Vec::new(), None);
    for (index, argument) in arguments.iter().enumerate() {
        let place = format!("{place}: `{}`", function.argument(index));
        let options = argument.as_table().filter(|_| function == Function::Exception);
        let names = options.map(names_of).transpose()?;
        // An error of the host is recognised anywhere.
        let is_raised = function == Function::Exception && is_raised(argument);
        if is_raised || function.is_error(rest.len(), names.as_deref()) {
            let described = || raised::described(world, argument);
            error = (!argument.is_nil()).then(described).or(error);
            continue;
        }
        let exc = options.map(|it| it.raw_get::<LuaValue>(EXC)).transpose()?;
        let (Some(options), Some(exc)) = (options, exc.filter(|it| !it.is_nil())) else {
            rest.push(world.read_as(&place, argument)?);
            continue;
        };
        // An error is no data: it is taken out, and the rest is read.
        error = Some(raised::described(world, &exc));
        let mut fields = serde_json::Map::new();
        options.for_each(|key: String, value: LuaValue| {
            if key != EXC {
                fields.insert(key, world.read_as(&place, &value)?);
            }
            Ok(())
        })?;
        rest.push(fields.into());
    }
    Ok(Arguments { objects, rest, error })
}

fn names_of(options: &Table) -> mlua::Result<Vec<String>> {
    /// More than there are options.
    const NAMES_MAX: usize = 10;
    let keys = options.pairs::<LuaValue, LuaValue>().take(NAMES_MAX);
    keys.map(|it| it.and_then(|(key, _)| key.to_string())).collect()
}

fn is_raised(value: &LuaValue) -> bool {
    value.is_error() || value.as_userdata().is_some_and(mlua::AnyUserData::is::<HandlerError>)
}
