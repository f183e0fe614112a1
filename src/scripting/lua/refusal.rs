//! Errors of servers as values of Lua: see `scripting/functions/refusal.rs`.

use mlua::{LuaString, MetaMethod, UserData, UserDataFields, UserDataMethods, Value as LuaValue};

use super::{push::Style, world::World};
use crate::scripting::functions::Refusal;

/// What a server refused. Can be read by field, printed and joined to texts.
#[derive(Clone, Debug)]
pub(super) struct ServerError(pub(super) Box<Refusal>);

impl UserData for ServerError {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "error");
        for name in Refusal::FIELDS {
            fields.add_field_method_get(*name, |lua, refused| {
                World::of(lua)?.push(lua, &refused.0.field(name), Style::Mutable)
            });
        }
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, it, ()| Ok(it.0.message.clone()));
        methods.add_meta_function(MetaMethod::Concat, |lua, (a, b): (LuaValue, LuaValue)| {
            let text = |value: &LuaValue| -> mlua::Result<LuaString> {
                lua.create_string(value.to_string()?)
            };
            let (a, b) = (text(&a)?, text(&b)?);
            lua.create_string([&*a.as_bytes(), &*b.as_bytes()].concat())
        });
    }
}
