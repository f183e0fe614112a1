//! `ctx.settings`: every setting by group and name.

use std::sync::Arc;

use mlua::{
    Function as LuaFunction, IntoLua as _, Lua, MetaMethod, UserData, UserDataFields,
    UserDataMethods, Value as LuaValue,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::step;
use crate::scripting::{
    lua::{push::Style, world::World},
    settings_access::{Found, SettingsAccess, marker_key, selector_key},
    text,
};
use crate::settings::Settings;

/// All settings, one group of them, or a setting that is a map.
pub(super) struct SettingsView(SettingsAccess);

impl SettingsView {
    /// All settings.
    pub(super) fn root(settings: Arc<Mutex<Settings>>) -> Self {
        SettingsView(SettingsAccess::new(settings))
    }

    /// All values from here on.
    pub(super) fn json(&self) -> Value {
        self.0.json()
    }

    /// What `pairs` gives.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let names = match self.json() {
            Value::Object(fields) => fields.into_iter().map(|(name, _)| name).collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Vec::new(),
        };
        let names = std::cell::RefCell::new(names.into_iter());
        let view = SettingsView(self.0.clone());
        let next = lua.create_function(move |lua, _: mlua::MultiValue| {
            let Some(name) = names.borrow_mut().next() else {
                return Ok((LuaValue::Nil, LuaValue::Nil));
            };
            let name = name.into_lua(lua)?;
            let value = view.get(lua, &name)?;
            // A nil would end the loop of some readers: an absent value is the null that it is.
            Ok((name, if value.is_nil() { LuaValue::NULL } else { value }))
        })?;
        Ok((next, LuaValue::Nil))
    }

    fn get(&self, lua: &Lua, name: &LuaValue) -> mlua::Result<LuaValue> {
        match self.0.get(&key(lua, name)?).map_err(mlua::Error::runtime)? {
            Found::Place(place) => lua.create_userdata(SettingsView(place)).map(LuaValue::UserData),
            Found::Value(value) => World::of(lua)?.push(lua, &value, Style::Frozen),
        }
    }

    fn set(&self, lua: &Lua, name: &LuaValue, value: &LuaValue) -> mlua::Result<()> {
        let name = key(lua, name)?;
        let value = World::of(lua)?.read_as(&format!("settings: {name}"), value)?;
        self.0.set(&name, value).map_err(mlua::Error::runtime)
    }
}

/// A name, or a resource selector as the key of a map.
fn key(lua: &Lua, key: &LuaValue) -> mlua::Result<String> {
    if key.is_table() {
        let parts = World::of(lua)?.read_as("the key", key)?;
        return selector_key(&parts).map_err(mlua::Error::runtime);
    }
    if key.is_userdata() {
        return marker_key(&key.to_string()?).map_err(mlua::Error::runtime);
    }
    step(key)
}

impl UserData for SettingsView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "settings");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods
            .add_meta_method(MetaMethod::Index, |lua, view, name: LuaValue| view.get(lua, &name));
        methods.add_meta_method(
            MetaMethod::NewIndex,
            |lua, view, (name, value): (LuaValue, LuaValue)| view.set(lua, &name, &value),
        );
        methods
            .add_meta_method(MetaMethod::ToString, |_, view, ()| Ok(text::of_patch(&view.json())));
    }
}
