//! A setting that is changed before the operator starts.

use serde_json::Value;

use crate::logic::configure::Setting;

/// A setting that is changed before the operator starts.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The setting, with its name, group and type.
    pub setting: &'static Setting,
    /// The new value, as JSON.
    pub value: Value,
    /// The source: a location in a file, a variable, an option.
    pub origin: String,
}

impl PartialEq for Assignment {
    fn eq(&self, other: &Self) -> bool {
        let name = |it: &Self| (it.setting.group, it.setting.name);
        name(self) == name(other) && self.value == other.value && self.origin == other.origin
    }
}
