//! What a script has been told of the objects that it watches, so that a list that was taken again tells only what is new.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::logic::{object::Header, reason::EventType};

/// The objects that a watch has told of.
#[derive(Debug, Default)]
pub struct Sight {
    seen: BTreeMap<Key, Seen>,
    /// While a list is taken: what was not in it so far.
    missing: Option<BTreeSet<Key>>,
}

/// Namespace and name.
type Key = (Option<String>, Option<String>);

#[derive(Debug, PartialEq)]
struct Seen {
    uid: Option<String>,
    version: Option<String>,
    api_version: String,
    kind: String,
}

/// What to tell of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// With the object as it came.
    Told(EventType),
    /// It went while nobody watched: only its identity is known.
    Gone(Value),
}

impl Sight {
    /// A list begins.
    pub fn begin(&mut self) {
        self.missing = Some(self.seen.keys().cloned().collect());
    }

    /// An object comes, from a list if without a type. What to tell, in order.
    pub fn see(&mut self, kind: Option<EventType>, header: &Header) -> Vec<Change> {
        let key = (header.namespace.clone(), header.name.clone());
        if let Some(missing) = &mut self.missing {
            missing.remove(&key);
        }
        if kind == Some(EventType::Deleted) {
            self.seen.remove(&key);
            return vec![Change::Told(EventType::Deleted)];
        }
        let now = Seen {
            uid: header.uid.clone(),
            version: header.resource_version.clone(),
            api_version: header.api_version.clone(),
            kind: header.kind.clone(),
        };
        let before = self.seen.get(&key);
        let changes = match before {
            None => vec![Change::Told(EventType::Added)],
            Some(before) if before.uid != now.uid => {
                vec![Change::Gone(identity(&key, before)), Change::Told(EventType::Added)]
            }
            Some(before) if before.version == now.version => Vec::new(),
            Some(_) => vec![Change::Told(EventType::Modified)],
        };
        self.seen.insert(key, now);
        changes
    }

    /// The list is complete: what was not in it is gone.
    pub fn end(&mut self) -> Vec<Change> {
        let missing = self.missing.take().unwrap_or_default();
        let gone = missing.into_iter().filter_map(|key| {
            let before = self.seen.remove(&key)?;
            Some(Change::Gone(identity(&key, &before)))
        });
        gone.collect()
    }
}

fn identity((namespace, name): &Key, seen: &Seen) -> Value {
    let mut metadata = serde_json::Map::new();
    for (field, value) in [("name", name), ("namespace", namespace), ("uid", &seen.uid)] {
        metadata.extend(value.clone().map(|it| (field.to_owned(), it.into())));
    }
    json!({ "apiVersion": seen.api_version, "kind": seen.kind, "metadata": metadata })
}
