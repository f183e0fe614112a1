//! The objects that a watch has reported to a script, so that a repeated list reports only what is new.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::logic::object::{Header, reason::EventType};
use crate::sorted::CollectSorted as _;

/// The objects that a watch has reported.
#[derive(Debug, Default)]
pub struct WatchCache {
    seen: BTreeMap<CacheKey, Seen>,
    /// While a list is read: the objects that it has not contained so far.
    missing: Option<BTreeSet<CacheKey>>,
}

/// Namespace and name.
type CacheKey = (Option<String>, Option<String>);

#[derive(Debug, PartialEq)]
struct Seen {
    uid: Option<String>,
    version: Option<String>,
    api_version: String,
    kind: String,
}

/// A change to report.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// An event, with the object of the event.
    Event(EventType),
    /// The object was deleted while no watch was running: only its identity is known.
    Gone(Value),
}

impl WatchCache {
    /// Begins a list: known objects count as missing until it has contained them.
    pub fn begin(&mut self) {
        self.missing = Some(self.seen.keys().cloned().collect_set());
    }

    /// Takes an object, from a list if without an event type. Returns the changes to report, in order.
    pub fn see(&mut self, kind: Option<EventType>, header: &Header) -> Vec<Delta> {
        let key = (header.namespace.clone(), header.name.clone());
        if let Some(missing) = &mut self.missing {
            missing.remove(&key);
        }
        if kind == Some(EventType::Deleted) {
            self.seen.remove(&key);
            return vec![Delta::Event(EventType::Deleted)];
        }
        let now = Seen {
            uid: header.uid.clone(),
            version: header.resource_version.clone(),
            api_version: header.api_version.clone(),
            kind: header.kind.clone(),
        };
        let before = self.seen.get(&key);
        let changes = match before {
            None => vec![Delta::Event(EventType::Added)],
            Some(before) if before.uid != now.uid => {
                vec![Delta::Gone(identity(&key, before)), Delta::Event(EventType::Added)]
            }
            Some(before) if before.version == now.version => Vec::new(),
            Some(_) => vec![Delta::Event(EventType::Modified)],
        };
        self.seen.insert(key, now);
        changes
    }

    /// Ends a list. Returns the objects that were not in it: they are gone.
    pub fn end(&mut self) -> Vec<Delta> {
        let missing = self.missing.take().unwrap_or_default();
        let gone = missing.into_iter().filter_map(|key| {
            let before = self.seen.remove(&key)?;
            Some(Delta::Gone(identity(&key, &before)))
        });
        gone.collect()
    }
}

fn identity((namespace, name): &CacheKey, seen: &Seen) -> Value {
    let mut metadata = serde_json::Map::new();
    for (field, value) in [("name", name), ("namespace", namespace), ("uid", &seen.uid)] {
        metadata.extend(value.clone().map(|it| (field.to_owned(), it.into())));
    }
    json!({ "apiVersion": seen.api_version, "kind": seen.kind, "metadata": metadata })
}
