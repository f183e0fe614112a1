//! `ctx.conditions`

use mlua::{
    Function as LuaFunction, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods,
    Value as LuaValue, Variadic,
};
use serde_json::Value;

use crate::scripting::{
    conditions::Conditions,
    leftovers::Handle,
    lua::{push::Style, world::World},
    text,
};

/// The conditions of the handled object.
pub(super) struct ConditionsView(pub(super) Handle<Conditions>);

impl ConditionsView {
    /// All of them.
    pub(super) fn json(&self) -> Value {
        self.0.json()
    }

    /// Over a copy of the list as it is now.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let list = World::of(lua)?.push(lua, &self.json(), Style::Frozen)?;
        Ok((lua.globals().get("next")?, list))
    }
}

impl UserData for ConditionsView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "conditions");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("set", |lua, view, given: Variadic<LuaValue>| {
            let mut arguments = <[Value; 4]>::default();
            if given.len() > arguments.len() {
                return Err(mlua::Error::runtime(TOO_MANY));
            }
            for (place, value) in arguments.iter_mut().zip(given.iter()) {
                *place = World::of(lua)?.read_as("ctx.conditions.set", value)?;
            }
            view.0.set(&arguments).map_err(mlua::Error::runtime)
        });
        methods.add_method("get", |lua, view, kind: LuaValue| {
            let kind = World::of(lua)?.read_as("ctx.conditions.get", &kind)?;
            let condition = view.0.get(&kind).map_err(mlua::Error::runtime)?;
            World::of(lua)?.push(lua, &condition, Style::Frozen)
        });
        for name in ["is", "is_true"] {
            methods.add_method(name, |lua, view, kind: LuaValue| {
                let kind = World::of(lua)?.read_as("ctx.conditions.is_true", &kind)?;
                view.0.is(&kind).map_err(mlua::Error::runtime)
            });
        }
        methods.add_method("remove", |lua, view, kind: LuaValue| {
            let kind = World::of(lua)?.read_as("ctx.conditions.remove", &kind)?;
            view.0.remove(&kind).map_err(mlua::Error::runtime)
        });
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| {
            Ok(view.json().as_array().map_or(0, Vec::len))
        });
        methods.add_meta_method(MetaMethod::ToString, |_, view, ()| Ok(text::shown(&view.json())));
    }
}

/// As the arguments are passed by place, one too many is most often a `.` for a `:`.
const TOO_MANY: &str =
    "ctx.conditions.set takes a type, a status, a reason and a message, and no more";
