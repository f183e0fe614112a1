//! `ctx.settings`: every setting by group and name.

use serde_json::{Map, Value};

use super::{Handle, HandleKeys, HandleType};
use crate::scripting::{
    handles::settings_access::{SettingNode, SettingsAccess, marker_key, selector_key},
    values::{HostValue, LookupKey, Nested, Passed, account::Account, refused::Refused, text},
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

    fn get(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        Ok(match self.at_name(&name(key)?)? {
            SettingNode::Place(place) => HostValue::Handle(place.into()),
            SettingNode::Value(value) => HostValue::some(value),
        })
    }

    fn set(&self, key: &LookupKey<'_>, value: &dyn Passed) -> Result<(), String> {
        let name = name(key)?;
        self.change(&name, value.data(&format!("settings: {name}"))?)
    }

    /// Returns whether a setting exists, even without a value.
    fn has(&self, key: &LookupKey<'_>) -> Result<bool, String> {
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
    const KEYS: HandleKeys = HandleKeys::Selectors;

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
fn name(key: &LookupKey<'_>) -> Result<String, String> {
    match key {
        LookupKey::Data(parts) => selector_key(parts),
        LookupKey::Marker(printed) => marker_key(printed),
        LookupKey::Name(_) | LookupKey::Place(..) | LookupKey::Other(_) => {
            key.name().map(Into::into)
        }
    }
}
