//! `ctx.settings` as both languages see it: groups, their settings, and the items of those that are maps.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

use crate::logic::configure::{self, Outdated, Setting, SettingShape};
use crate::settings::{EVERYTHING, Settings};

/// A position in the settings.
#[derive(Clone, Debug)]
pub(crate) struct SettingsAccess {
    settings: Arc<Mutex<Settings>>,
    place: SettingPlace,
}

#[derive(Clone, Copy, Debug)]
enum SettingPlace {
    All,
    Group(&'static str),
    Map(&'static Setting),
}

/// The content of a name.
pub(crate) enum SettingNode {
    /// A group, or a map.
    Place(SettingsAccess),
    /// The value of a setting.
    Value(Value),
}

impl SettingsAccess {
    /// Returns the position of all settings.
    pub(crate) fn new(settings: Arc<Mutex<Settings>>) -> Self {
        SettingsAccess { settings, place: SettingPlace::All }
    }

    /// Returns whether both are the same position of the same settings.
    pub(crate) fn is_at(&self, other: &SettingsAccess) -> bool {
        let is_place = match (self.place, other.place) {
            (SettingPlace::All, SettingPlace::All) => true,
            (SettingPlace::Group(one), SettingPlace::Group(other)) => one == other,
            (SettingPlace::Map(one), SettingPlace::Map(other)) => std::ptr::eq(one, other),
            (SettingPlace::All | SettingPlace::Group(_) | SettingPlace::Map(_), _) => false,
        };
        is_place && Arc::ptr_eq(&self.settings, &other.settings)
    }

    /// Returns the content of this name; the error names the known ones.
    pub(crate) fn at_name(&self, name: &str) -> Result<SettingNode, String> {
        match self.place {
            SettingPlace::All => configure::group(name).map(|it| self.at(SettingPlace::Group(it))),
            SettingPlace::Group(group) => {
                let (setting, outdated) = configure::find(group, name)?;
                warn(outdated.as_ref());
                Ok(match setting.shape {
                    SettingShape::Map => self.at(SettingPlace::Map(setting)),
                    SettingShape::Plain | SettingShape::Text => {
                        SettingNode::Value(setting.get(&self.lock()))
                    }
                })
            }
            SettingPlace::Map(setting) => {
                let item = setting.get(&self.lock()).get(name).cloned();
                Ok(SettingNode::Value(item.unwrap_or_default()))
            }
        }
    }

    /// Changes the setting of this name.
    pub(crate) fn change(&self, name: &str, value: Value) -> Result<(), String> {
        match self.place {
            SettingPlace::All => {
                let group = configure::group(name)?;
                Err(format!("settings.{group} is a group: assign its settings one by one"))
            }
            SettingPlace::Group(group) => {
                let (setting, outdated) = configure::find(group, name)?;
                warn(outdated.as_ref());
                if !setting.by_scripts {
                    return Err(format!(
                        "settings.{group}.{name} is a limit for scripts, so scripts cannot change it: set it in kopf.yaml, or with --set {group}.{name}=…"
                    ));
                }
                setting.set(&mut self.lock(), &value)
            }
            SettingPlace::Map(setting) => setting.set_item(&mut self.lock(), name, value),
        }
    }

    /// Returns all values from here on.
    pub(crate) fn json(&self) -> Value {
        let settings = self.lock();
        let of_group = |group: &str| -> Map<String, Value> {
            let own = configure::TABLE.iter().filter(|it| it.group == group);
            own.map(|it| (it.name.to_owned(), it.get(&settings))).collect()
        };
        match self.place {
            SettingPlace::All => {
                let groups = configure::groups();
                groups.map(|it| (it.to_owned(), Value::Object(of_group(it)))).collect()
            }
            SettingPlace::Group(group) => Value::Object(of_group(group)),
            SettingPlace::Map(setting) => setting.get(&settings),
        }
    }

    fn at(&self, place: SettingPlace) -> SettingNode {
        SettingNode::Place(SettingsAccess { settings: Arc::clone(&self.settings), place })
    }

    fn lock(&self) -> MutexGuard<'_, Settings> {
        // A panic while the lock was held cannot leave a setting half-written.
        self.settings.lock()
    }
}

/// Returns the key of a resource selector that is written as a list: `["v1", "pods"]`.
pub(crate) fn selector_key(parts: &Value) -> Result<String, String> {
    let items = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
    match texts {
        Some(texts) if !texts.is_empty() => Ok(texts.join("/")),
        Some(_) | None => Err(format!("a key must be a string or a list of strings, not {parts}")),
    }
}

/// Returns the key of the selector that prints as this string.
pub(crate) fn marker_key(printed: &str) -> Result<String, String> {
    if printed == "kopf.EVERYTHING" {
        Ok(EVERYTHING.to_owned())
    } else {
        Err(format!("a key must be a string or kopf.EVERYTHING, not {printed}"))
    }
}

fn warn(outdated: Option<&Outdated>) {
    if let Some(Outdated(text)) = outdated {
        tracing::warn!(target: "kopf.settings", "{text}");
    }
}
