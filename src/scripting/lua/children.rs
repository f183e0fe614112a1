//! `kopf.execute`, `kopf.lifecycles`, `kopf.set_default_lifecycle`.

use mlua::{IntoLuaMulti as _, Lua, MultiValue, Table, Value as LuaValue};

use super::{declare, raised::HandlerError, world::World};
use crate::call::ExecuteError;
use crate::logic::handlers::{
    declare::{Execution, chooser},
    lifecycle::Lifecycle,
};
use crate::scripting::functions::{children, names};

/// Adds the names that are for scripts to `kopf`, and those for the prelude to `host`.
pub(super) fn install(lua: &Lua, kopf: &Table, host: &Table) -> mlua::Result<()> {
    host.set("execute", lua.create_function(|lua, options: LuaValue| execute(lua, &options))?)?;
    let set_default = |lua: &Lua, lifecycle: LuaValue| {
        let world = World::of(lua)?;
        if world.declared.borrow().is_none() {
            return Err(mlua::Error::external(names::too_late("set_default_lifecycle")));
        }
        let argument = declare::argument(lua, &world, "lifecycle", &lifecycle)?;
        let chooser = chooser("kopf.set_default_lifecycle", argument);
        world.lifecycles.borrow_mut().push(chooser.map_err(mlua::Error::external)?);
        Ok(())
    };
    kopf.set("set_default_lifecycle", lua.create_function(set_default)?)?;
    let lifecycles = lua.create_table()?;
    for (name, _) in Lifecycle::ALL {
        lifecycles.set(name, name)?;
    }
    let meta = lua.create_table()?;
    let missing = |_: &Lua, (_, name): (Table, LuaValue)| -> mlua::Result<LuaValue> {
        Err(mlua::Error::runtime(names::unknown_lifecycle(&name.to_string()?)))
    };
    meta.set("__index", lua.create_function(missing)?)?;
    meta.set("__metatable", "kopf.lifecycles")?;
    lifecycles.set_metatable(Some(meta))?;
    lifecycles.set_readonly(true);
    kopf.set("lifecycles", lifecycles)
}

/// Lets the call wait for its sub-handlers. Gives what is to be raised; the prelude does that, since then it is raised at the
/// script's line.
fn execute(lua: &Lua, options: &LuaValue) -> mlua::Result<()> {
    let world = World::of(lua)?;
    let children = children::of_call(world.present.borrow().as_deref(), "execute");
    let children = children.map_err(mlua::Error::external)?;
    let options = match options.as_table() {
        Some(table) => declare::options(lua, &world, "execute", table)?,
        None if options.is_nil() => Vec::new(),
        None => return Err(mlua::Error::external(names::no_options("execute"))),
    };
    let execution = Execution::parse(options, &declare::caller(lua));
    let execution = execution.map_err(mlua::Error::external)?;
    // Weak: a wait that never begins must not keep the VM.
    let lua = lua.weak();
    world.wait_for(async move {
        match children.execute(execution).await {
            Ok(()) => Ok(MultiValue::new()),
            Err(ExecuteError::Declared(error)) => Err(mlua::Error::external(error)),
            Err(ExecuteError::Raised(raised)) => {
                let error = HandlerError { kind: raised.kind, message: raised.message };
                let lua = lua.try_upgrade();
                lua.map_or_else(|| Ok(MultiValue::new()), |it| error.into_lua_multi(&it))
            }
        }
    });
    Ok(())
}
