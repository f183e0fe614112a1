//! `ctx.stopped` of daemons and timers.
//!
//! It is made anew each time it is read, and equal to itself: of the many that wait, each would keep what is kept for it.
//! Every object is true in Lua, this one too: `if ctx.stopped()` asks, `if ctx.stopped` does not.

use std::time::Duration;

use futures::FutureExt as _;
use mlua::{
    Function as LuaFunction, Lua, MetaMethod, MultiValue, UserData, UserDataFields,
    UserDataMethods, UserDataRef, Value as LuaValue,
};
use serde_json::Value;

use crate::logic::stopping::{StopReason, StopReasons};
use crate::ports::Stopped;
use crate::scripting::{
    lua::{push::Style, world::World},
    stopped,
};

/// The stop flag.
pub(in crate::scripting::lua) struct StoppedView(pub(super) Stopped);

/// `ctx.stopped.reason`
pub(super) struct ReasonsView(StopReasons);

impl UserData for StoppedView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "stopped");
        fields
            .add_field_method_get("wait", |lua, _| Ok(World::of(lua)?.wait_method.get().cloned()));
        fields.add_field_method_get("reason", |_, view| {
            Ok(stopped::reasons(&view.0).map(ReasonsView))
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("is_set", |_, view, ()| Ok(view.0.is_set()));
        methods.add_meta_method(MetaMethod::Call, |_, view, ()| Ok(view.0.is_set()));
        methods.add_meta_method(MetaMethod::Eq, |_, view, other: UserDataRef<StoppedView>| {
            Ok(view.0.is_same(&other.0))
        });
        methods.add_meta_method(MetaMethod::ToString, |_, view, ()| Ok(stopped::shown(&view.0)));
    }
}

/// What the method `wait` begins with; the prelude does the rest.
pub(in crate::scripting::lua) fn wait(
    lua: &Lua,
    (view, timeout): (UserDataRef<StoppedView>, LuaValue),
) -> mlua::Result<()> {
    let timeout = timeout_of(lua, &timeout)?;
    let waited = stopped::wait(&view.0, timeout);
    World::of(lua)?.wait_for(waited.map(|it| Ok(MultiValue::from_iter([LuaValue::Boolean(it)]))));
    Ok(())
}

/// The argument of `wait`.
fn timeout_of(lua: &Lua, value: &LuaValue) -> mlua::Result<Option<Duration>> {
    let value = World::of(lua)?.read_as("stopped.wait", value)?;
    stopped::timeout(&value).map_err(mlua::Error::runtime)
}

impl ReasonsView {
    /// The names.
    pub(super) fn json(&self) -> Value {
        stopped::listed(self.0)
    }

    /// Over the names, as a list.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let names = World::of(lua)?.push(lua, &self.json(), Style::Frozen)?;
        Ok((lua.globals().get("next")?, names))
    }
}

impl UserData for ReasonsView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "stop reasons");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("contains", |_, view, name: String| {
            stopped::contains(view.0, &name).map_err(mlua::Error::runtime)
        });
        methods.add_meta_method(MetaMethod::Index, |_, view, place: LuaValue| {
            let place = place.as_usize().and_then(|it| it.checked_sub(1));
            Ok(place.and_then(|it| view.0.iter().nth(it)).map(StopReason::as_str))
        });
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| Ok(view.0.iter().count()));
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
        methods.add_meta_method(MetaMethod::ToString, |_, view, ()| Ok(view.0.to_string()));
        methods.add_meta_function(MetaMethod::Concat, |_, (a, b): (LuaValue, LuaValue)| {
            Ok(format!("{}{}", a.to_string()?, b.to_string()?))
        });
    }
}
