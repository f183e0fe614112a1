//! `ctx.settings`: every setting by group and name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, Value as LuaValue};

use super::step;
use crate::scripting::{
    lua::{push::Style, world::World},
    settings_access,
};
use crate::settings::Settings;

/// All settings, or one group of them.
pub(super) struct SettingsView {
    settings: Arc<Mutex<Settings>>,
    group: Option<String>,
}

impl SettingsView {
    /// All settings.
    pub(super) fn root(settings: Arc<Mutex<Settings>>) -> Self {
        SettingsView { settings, group: None }
    }

    fn get(&self, lua: &Lua, name: &LuaValue) -> mlua::Result<LuaValue> {
        let name = step(name)?;
        let Some(group) = &self.group else {
            if !settings_access::is_group(&name) {
                return Err(mlua::Error::runtime(settings_access::unknown(&name, "")));
            }
            let view = SettingsView { settings: Arc::clone(&self.settings), group: Some(name) };
            return lua.create_userdata(view).map(LuaValue::UserData);
        };
        let value = settings_access::get(&self.lock(), group, &name);
        let value =
            value.ok_or_else(|| mlua::Error::runtime(settings_access::unknown(group, &name)))?;
        World::of(lua)?.push(lua, &value, Style::Frozen)
    }

    fn set(&self, lua: &Lua, name: &LuaValue, value: &LuaValue) -> mlua::Result<()> {
        let name = step(name)?;
        let group = self.group.as_ref().ok_or_else(|| {
            mlua::Error::runtime("assign single settings: ctx.settings.group.name = value")
        })?;
        let value = World::of(lua)?.read_as(&format!("settings.{group}.{name}"), value)?;
        settings_access::set(&mut self.lock(), group, &name, value).map_err(mlua::Error::runtime)
    }

    fn lock(&self) -> MutexGuard<'_, Settings> {
        // A panic while the lock was held cannot leave a setting half-written.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    }
}
