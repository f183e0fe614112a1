//! `ctx.settings`: every setting by group and name.

use serde_json::{Map, Value};

use super::{Handle, HandleType, Keys};
use crate::scripting::{
    handles::settings_access::{SettingNode, SettingsAccess, marker_key, selector_key},
    values::{HostValue, Key, Nested, Passed, account::Account, refused::Refused, text},
};

impl Handle for SettingsAccess {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::Map)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy(&self.json(), depth)
    }

    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        let copied = self.copy(account, 0);
        copied.map(|it| text::of_patch(&it)).map_err(|it| it.at("the settings"))
    }

    fn get(&self, key: &Key<'_>) -> Result<HostValue, String> {
        Ok(match self.at_name(&name(key)?)? {
            SettingNode::Place(place) => HostValue::Handle(place.into()),
            SettingNode::Value(value) => HostValue::some(value),
        })
    }

    fn set(&self, key: &Key<'_>, value: &dyn Passed) -> Result<(), String> {
        let name = name(key)?;
        self.change(&name, value.data(&format!("settings: {name}"))?)
    }

    /// Returns whether a setting exists, even without a value.
    fn has(&self, key: &Key<'_>) -> Result<bool, String> {
        self.get(key).map(|_| true)
    }

    fn keys(&self) -> Box<dyn Iterator<Item = Value>> {
        Box::new(self.fields().into_iter().map(|(name, _)| name.into()))
    }

    fn len(&self) -> usize {
        self.fields().len()
    }
}

impl HandleType for SettingsAccess {
    const TYPE: &'static str = "settings";
    const KEYS: Keys = Keys::Selectors;

    fn is(&self, other: &Self) -> bool {
        self.is_at(other)
    }
}

impl SettingsAccess {
    fn fields(&self) -> Map<String, Value> {
        match self.json() {
            Value::Object(fields) => fields,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        }
    }
}

/// Returns a name, or the key for a resource selector.
fn name(key: &Key<'_>) -> Result<String, String> {
    match key {
        Key::Data(parts) => selector_key(parts),
        Key::Marker(printed) => marker_key(printed),
        Key::Name(_) | Key::Place(..) | Key::Other(_) => key.name().map(Into::into),
    }
}
