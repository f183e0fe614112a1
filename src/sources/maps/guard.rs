//! Loads the scripts of an edited `ConfigMap` before the edit is stored.

use std::sync::Arc;

use super::content::Map;
use crate::checker;
use crate::logic::{admission::guard::Guarded, change::registry::Registry, object::Object};
use crate::ports::{BoxFuture, ScriptGuard};
use crate::scripting::{ScriptHost, Terms};

/// The guard of the maps of one operator.
pub struct MapGuard {
    terms: Terms,
    guarded: Vec<Guarded>,
}

impl MapGuard {
    /// Creates the guard of these maps. Their scripts are loaded with these terms.
    pub fn new(guarded: Vec<Guarded>, terms: Terms) -> Self {
        MapGuard { terms, guarded }
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
            let host = ScriptHost::new(self.terms.clone()).inspecting(checker::inspect);
            let prepared = host.prepare(sources).await.map_err(|errors| {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                texts.join("")
            })?;
            Registry::new(prepared.handlers).map(drop).map_err(|it| it.to_string())
        })
    }
}
