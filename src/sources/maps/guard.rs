//! Loads the scripts of an edited `ConfigMap` before the edit is stored.

use std::sync::Arc;

use super::{Map, MapOption, Maps};
use crate::logic::{
    admission::guard::{Guarded, GuardedMaps},
    change::registry::Registry,
    object::Object,
};
use crate::ports::{BoxFuture, ScriptGuard};
use crate::scripting::{Modules, ScriptHost, Source, Terms};

/// Guards the maps of one operator.
pub struct MapGuard {
    terms: Terms,
    guarded: Vec<Guarded>,
}

impl MapGuard {
    /// Guards these maps. Their scripts are loaded with these terms.
    pub fn new(maps: &Maps, terms: Terms) -> Self {
        let guarded = maps.wanted.iter().map(|it| Guarded {
            namespace: it.namespace.clone(),
            maps: match &it.option {
                MapOption::Named { name, .. } => GuardedMaps::Named(name.clone()),
                MapOption::Labelled(labels) => GuardedMaps::Labelled(labels.clone()),
            },
        });
        MapGuard { terms, guarded: guarded.collect() }
    }
}

impl ScriptGuard for MapGuard {
    fn guarded(&self) -> Vec<Guarded> {
        self.guarded.clone()
    }

    fn check(&self, object: Arc<Object>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let map = Map::of(&object);
            if !self.guarded.iter().any(|it| it.covers(&map.namespace, &map.name)) {
                return Ok(());
            }
            let sources = map.sources().map_err(|it| it.to_string())?;
            // Dropped at the end: nothing of it runs.
            let host = ScriptHost::new(self.terms.clone());
            let prepared = host.prepare(sources).await.map_err(|errors| {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                texts.join("")
            })?;
            Registry::new(prepared.handlers).map(drop).map_err(|it| it.to_string())
        })
    }
}

impl Map {
    /// Returns the scripts, which can load all texts of the map as modules.
    ///
    /// # Errors
    /// Fails if there are none, or if one is binary.
    pub(super) fn sources(&self) -> Result<Vec<Source>, super::Error> {
        let texts = || self.data.iter().map(|(key, text)| (key.into(), text.clone())).collect();
        let scripts = self.scripts()?.into_iter();
        let source = |(name, text): (String, &str)| Source {
            name,
            text: text.to_owned(),
            modules: Modules::of_texts(texts()),
        };
        Ok(scripts.map(source).collect())
    }
}
