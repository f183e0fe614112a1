//! One setting: its name, its documentation, and how it is read and changed.

use serde_json::{Map, Value};

use crate::settings::Settings;

/// One setting, as users see it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The group: `settings.GROUP.name`.
    pub group: &'static str,
    /// The name within the group: `settings.group.NAME`.
    pub name: &'static str,
    /// Its description, as in the reference.
    pub doc: &'static str,
    /// The accepted values, as the end of "expected …".
    pub takes: &'static str,
    /// The kind of value it takes.
    pub shape: SettingShape,
    /// Whether start-up handlers may change it. They cannot change the limits of scripts.
    pub by_scripts: bool,
    pub(super) get: fn(&Settings) -> Value,
    pub(super) set: fn(&mut Settings, &Value) -> Result<(), String>,
}

/// The kind of value that a setting takes, where that affects how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingShape {
    /// A number, a boolean, a duration or a list.
    Plain,
    /// A string, even if it looks like a number.
    Text,
    /// A map whose items can be set separately.
    Map,
}

impl Setting {
    /// Returns its current value.
    pub fn get(&self, settings: &Settings) -> Value {
        (self.get)(settings)
    }

    /// Changes it. The error names the setting and lists the accepted values.
    pub fn set(&self, settings: &mut Settings, value: &Value) -> Result<(), String> {
        let (group, name) = (self.group, self.name);
        (self.set)(settings, value).map_err(|problem| format!("settings.{group}.{name}: {problem}"))
    }

    /// Changes one item of a map; null removes it.
    pub fn set_item(&self, settings: &mut Settings, key: &str, value: Value) -> Result<(), String> {
        let mut items = match self.get(settings) {
            Value::Object(items) => items,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        if value.is_null() {
            items.shift_remove(key);
        } else if !value.is_string() {
            let (group, name) = (self.group, self.name);
            return Err(format!(
                "settings.{group}.{name}[{key:?}]: expected a string, got {value}"
            ));
        } else {
            items.insert(key.to_owned(), value);
        }
        self.set(settings, &Value::Object(items))
    }
}
