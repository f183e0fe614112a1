//! All handlers of one generation of scripts: never changed, only replaced.
//!
//! The contract is `tests/vectors/handler-selection.json`.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::selection::{Selected, without_repeats};
use crate::logic::{
    handlers::{
        handler::{Category, Handler, Kind},
        selector::{Picks, Selector},
    },
    object::resource::Resource,
};
use crate::settings::FieldPath;
use crate::sorted::CollectSorted as _;

/// Handlers in the order of declaration.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    handlers: Vec<Arc<Handler>>,
}

/// The handlers of one resource, by category.
#[derive(Clone, Debug, Default)]
pub struct ResourceHandlers {
    /// `on_event`
    pub watching: Selected,
    /// `on_create` and the like. One function under one id may occur here for several reasons.
    pub changing: Selected,
    /// `index`
    pub indexing: Selected,
    /// `daemon`, `timer`
    pub spawning: Selected,
    /// `on_validate`, `on_mutate`, `on_convert`
    pub admission: Selected,
    /// Fields that handlers watch, which are therefore part of the essence.
    pub extra_fields: BTreeSet<FieldPath>,
}

/// The error for two functions that share one id, and thus the progress, for one resource and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateId {
    /// The id of both.
    pub id: Arc<str>,
    /// The kind of declaration that both share.
    pub kind: Kind,
    /// Where the first was declared.
    pub first: Arc<str>,
    /// Where the second was declared.
    pub second: Arc<str>,
}

impl Registry {
    /// Creates a registry of the handlers of all scripts, in order. Fails at the first duplicate id.
    pub fn new(handlers: Vec<Handler>) -> Result<Self, DuplicateId> {
        if let Some(duplicate) = Registry::duplicates(&handlers).next() {
            return Err(duplicate);
        }
        let with_relations = |it: Handler| {
            let relations = it.relations();
            [it].into_iter().chain(relations)
        };
        Ok(Registry {
            handlers: handlers.into_iter().flat_map(with_relations).map(Arc::new).collect(),
        })
    }

    /// Returns the duplicate ids, each with the locations of both declarations.
    pub fn duplicates(handlers: &[Handler]) -> impl Iterator<Item = DuplicateId> {
        handlers.iter().enumerate().filter_map(|(index, second)| {
            let clash = |first: &&Handler| {
                first.id == second.id
                    && first.kind == second.kind
                    && first.selector == second.selector
                    && first.function != second.function
            };
            let first = handlers.iter().take(index).find(clash)?;
            Some(DuplicateId {
                id: Arc::clone(&second.id),
                kind: second.kind,
                first: Arc::clone(&first.location),
                second: Arc::clone(&second.location),
            })
        })
    }

    /// Returns all handlers, in the order of declaration.
    pub fn handlers(&self) -> &[Arc<Handler>] {
        &self.handlers
    }

    /// Returns the handlers of one activity.
    pub fn activities(&self, kind: Kind) -> Selected {
        without_repeats(self.handlers.iter().filter(|it| it.kind == kind).cloned())
    }

    /// Returns the ids of all indexes. Several handlers may fill one.
    pub fn indexes(&self) -> BTreeSet<Arc<str>> {
        let indexing = self.handlers.iter().filter(|it| it.kind == Kind::Index);
        indexing.map(|it| Arc::clone(&it.id)).collect_set()
    }

    /// Returns whether there is any index.
    pub fn has_indexes(&self) -> bool {
        self.handlers.iter().any(|it| it.kind == Kind::Index)
    }

    /// Returns the handlers of these categories that have a selector, with the selector.
    pub fn selectors(&self, categories: &[Category]) -> Vec<(&Arc<Handler>, &Selector)> {
        self.handlers
            .iter()
            .filter(|it| categories.contains(&it.kind.category()))
            .filter_map(|it| Some((it, it.selector.as_ref()?)))
            .collect()
    }

    /// Returns the API groups that handlers select; `None` if any handler selects no group, so that all must be read.
    pub fn groups(&self) -> Option<BTreeSet<String>> {
        let selectors = self.handlers.iter().filter_map(|it| it.selector.as_ref());
        selectors.map(|it| it.group.clone()).collect()
    }

    /// Returns the handlers whose selector matches a resource.
    pub fn for_resource(&self, resource: &Resource, picks: Picks<'_>) -> ResourceHandlers {
        ResourceHandlers::among(&self.handlers, resource, picks)
    }
}

impl ResourceHandlers {
    /// Returns those of the handlers whose selector matches a resource.
    pub fn among(handlers: &[Arc<Handler>], resource: &Resource, picks: Picks<'_>) -> Self {
        let is_of = |it: &&Arc<Handler>| {
            it.selector.as_ref().is_some_and(|selector| selector.check(resource, picks))
        };
        let mut found = ResourceHandlers::default();
        for handler in handlers.iter().filter(is_of).cloned() {
            let (list, has_essence) = match handler.kind.category() {
                Category::Watching => (&mut found.watching, true),
                Category::Changing => (&mut found.changing, true),
                Category::Spawning => (&mut found.spawning, true),
                Category::Indexing => (&mut found.indexing, false),
                Category::Admission | Category::Conversion => (&mut found.admission, false),
                Category::Activity => continue,
            };
            if has_essence {
                found.extra_fields.extend(handler.filters.field.clone());
            }
            list.push(handler);
        }
        found
    }

    /// Returns whether both have the same handlers, including all options and the loaded script.
    pub fn are(&self, other: &ResourceHandlers) -> bool {
        let lists = |it: &'_ ResourceHandlers| {
            let ResourceHandlers { watching, changing, indexing, spawning, admission, .. } = it;
            [watching, changing, indexing, spawning, admission].map(Selected::clone)
        };
        lists(self) == lists(other)
    }

    /// Returns the change handlers, each function and id once.
    pub fn owned(&self) -> Selected {
        without_repeats(self.changing.iter().cloned())
    }
}

impl fmt::Display for DuplicateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declared_by = self.kind.declared_by();
        write!(
            f,
            "two functions of {declared_by} for one resource have the id '{}', at {} and at {}: give one of them an `id`",
            self.id, self.first, self.second
        )
    }
}

impl std::error::Error for DuplicateId {}
