//! Restricts the objects of a resource that the server returns: `settings.watching.*_selectors`.

use std::sync::Arc;

use super::Selector;
use crate::logic::object::{fields, resource::Resource};
use crate::settings::{
    FieldPath, HiddenFields, PersistenceSettings, Selectors, Settings, WatchingSettings,
};

/// The query parameters that restrict lists and watches of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// `labelSelector`
    pub labels: Option<String>,
    /// `fieldSelector`
    pub fields: Option<String>,
    /// `shardSelector`
    pub shard: Option<String>,
}

impl Restrictions {
    /// Returns the restrictions that the settings define for a resource.
    ///
    /// All matching label and field selectors are combined; of the shard selectors, the first that was defined is used.
    pub fn of(resource: &Resource, watching: &WatchingSettings) -> Self {
        let all = |selectors: &Selectors| {
            let mut texts = matching(selectors, resource).collect::<Vec<_>>();
            texts.sort_unstable();
            texts.dedup();
            (!texts.is_empty()).then(|| texts.join(","))
        };
        Restrictions {
            labels: all(&watching.label_selectors),
            fields: all(&watching.field_selectors),
            shard: matching(&watching.shard_selectors, resource).next().map(str::to_owned),
        }
    }

    /// Returns the query parameters, in their order.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, String)> {
        let named = [
            ("labelSelector", &self.labels),
            ("fieldSelector", &self.fields),
            ("shardSelector", &self.shard),
        ];
        named.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)))
    }
}

/// Returns the settings for one resource: with its fields whose values are neither stored nor logged.
pub fn settings_of(resource: &Resource, settings: &Arc<Settings>) -> Arc<Settings> {
    let paths = hidden_fields(resource, &settings.persistence);
    if paths.is_empty() {
        return Arc::clone(settings);
    }
    let mut own = Settings::clone(settings);
    let key = own.persistence.digest_key.clone();
    own.persistence.hidden = Some(Arc::new(HiddenFields { paths, key }));
    Arc::new(own)
}

/// Returns the fields of a resource whose values are neither stored nor logged.
fn hidden_fields(resource: &Resource, persistence: &PersistenceSettings) -> Vec<FieldPath> {
    let named = matching(&persistence.sensitive_fields, resource);
    let named = named.flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty());
    let mut all: Vec<_> = named.map(fields::split).collect();
    if resource.group.is_empty() && resource.plural == "secrets" && !persistence.plain_secrets {
        all.extend(["data", "stringData"].map(fields::split));
    }
    all.sort();
    // A path comes after its own beginning.
    all.dedup_by(|path, before| path.starts_with(before));
    all
}

/// Returns the keys that are not valid resource selectors, with the errors.
pub fn misspelled(watching: &WatchingSettings) -> Vec<String> {
    let groups = [
        ("label_selectors", &watching.label_selectors),
        ("field_selectors", &watching.field_selectors),
        ("shard_selectors", &watching.shard_selectors),
    ];
    let problems = groups.into_iter().flat_map(|(name, selectors)| {
        selectors.keys().filter_map(move |key| {
            let problem = Selector::of_text(key).err()?;
            Some(format!("settings.watching.{name}: {key:?} is ignored: {problem}"))
        })
    });
    problems.collect()
}

/// Returns the values that apply to the resource, in the order of definition.
fn matching<'a>(selectors: &'a Selectors, resource: &Resource) -> impl Iterator<Item = &'a str> {
    let concerns =
        |key: &str| Selector::of_text(key).is_ok_and(|it| it.check(resource, &|_, _| false));
    selectors.iter().filter(move |(key, _)| concerns(key)).map(|(_, text)| text.as_str())
}
