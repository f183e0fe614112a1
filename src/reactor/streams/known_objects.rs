//! The objects that a stream has seen and whose deletion it has not seen, to detect deletions during a gap in the watch.
//!
//! There may be many thousands, so little is kept of each: its names, and the labels and annotations that filters of `on_event`
//! use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use crate::heap;
use crate::logic::{
    generation::Version,
    handlers::handler::Handler,
    object::{Header, Object, resource::Resource},
};
use crate::reactor::object::memory::Key;

/// The known objects of one stream.
#[derive(Debug)]
pub(in crate::reactor) struct KnownObjects {
    resource: Arc<Resource>,
    /// Objects seen in or after the latest list.
    listed: BTreeMap<Key, KnownObject>,
    /// Objects seen only before the latest list.
    unlisted: BTreeMap<Key, KnownObject>,
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

/// The stored part of an object.
#[derive(Debug)]
struct KnownObject {
    /// `namespace/name`, or the name alone: one allocation instead of two.
    path: Box<str>,
    /// The version of the handlers to which the object was shown, or will be by an event in its queue.
    shown: Version,
    /// The stored labels and annotations, if any.
    tags: Option<Box<Tags>>,
}

#[derive(Debug)]
struct Tags {
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl KnownObjects {
    /// Creates an empty set. Stores the labels and annotations that filters of these handlers use.
    pub(super) fn new(resource: Arc<Resource>, handlers: &[Arc<Handler>]) -> Self {
        let mut known = KnownObjects {
            resource,
            listed: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            labels: BTreeSet::new(),
            annotations: BTreeSet::new(),
        };
        known.keep_tags(handlers);
        known
    }

    /// Sets which labels and annotations of later objects are stored: those that filters of these handlers use.
    pub(in crate::reactor) fn keep_tags(&mut self, handlers: &[Arc<Handler>]) {
        let filters = || handlers.iter().map(|it| &it.filters);
        let labels = filters().flat_map(|it| &it.labels).map(|(key, _)| key.clone());
        self.labels = labels.collect();
        let annotations = filters().flat_map(|it| &it.annotations).map(|(key, _)| key.clone());
        self.annotations = annotations.collect();
    }

    /// Returns the keys of all objects.
    pub(in crate::reactor) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.listed.keys().chain(self.unlisted.keys())
    }

    /// Returns the version to which an object was shown; `None` for an unknown object.
    pub(in crate::reactor) fn shown(&self, key: &Key) -> Option<Version> {
        self.listed.get(key).or_else(|| self.unlisted.get(key)).map(|it| it.shown)
    }

    /// Notes that an object was shown to the handlers of this version.
    pub(in crate::reactor) fn show(&mut self, key: &Key, shown: Version) {
        if let Some(known) = self.get_mut(key) {
            known.shown = known.shown.max(shown);
        }
    }

    /// Takes over the objects of the previous stream.
    pub(super) fn inherit(&mut self, before: KnownObjects) {
        (self.listed, self.unlisted) = (before.listed, before.unlisted);
    }

    /// Notes that a list has started.
    pub(super) fn begin_list(&mut self) {
        // An aborted list does not show which objects exist.
        self.unlisted.append(&mut self.listed);
    }

    /// Notes that an object exists, and that it is shown to the handlers of this version.
    pub(super) fn note(&mut self, key: &Key, header: &Header, shown: Version) {
        self.unlisted.remove(key);
        heap::lasting(|| self.listed.insert(key.clone(), self.of(header, shown)));
    }

    /// Updates an object that did not come from the stream itself, and does not count it as listed. Returns whether the object is known.
    pub(in crate::reactor) fn refresh(&mut self, key: &Key, header: &Header) -> bool {
        let Some(shown) = self.shown(key) else { return false };
        let fresh = heap::lasting(|| self.of(header, shown));
        self.get_mut(key).map(|it| *it = fresh).is_some()
    }

    fn get_mut(&mut self, key: &Key) -> Option<&mut KnownObject> {
        self.listed.get_mut(key).or_else(|| self.unlisted.get_mut(key))
    }

    fn of(&self, header: &Header, shown: Version) -> KnownObject {
        let path = match (&header.namespace, &header.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
            (_, name) => name.clone().unwrap_or_default().into(),
        };
        let pick = |all: &Map<String, Value>, keys: &BTreeSet<String>| {
            keys.iter().filter_map(|it| Some((it.clone(), all.get(it)?.clone()))).collect()
        };
        let tags = Tags {
            labels: pick(&header.labels, &self.labels),
            annotations: pick(&header.annotations, &self.annotations),
        };
        let is_tagged = !tags.labels.is_empty() || !tags.annotations.is_empty();
        KnownObject { path, shown, tags: is_tagged.then(|| Box::new(tags)) }
    }

    /// Drops an object whose deletion was seen.
    pub(super) fn forget(&mut self, key: &Key) {
        self.listed.remove(key);
        self.unlisted.remove(key);
    }

    /// Notes that a list is complete. Returns the objects that were missing from it, as far as they were stored.
    pub(super) fn end_list(&mut self) -> Vec<(Key, Object)> {
        let missed = std::mem::take(&mut self.unlisted);
        self.restored(missed)
    }

    /// Drops all objects, and returns them as far as they were stored.
    pub(super) fn drain(&mut self) -> Vec<(Key, Object)> {
        self.begin_list();
        self.end_list()
    }

    fn restored(
        &self,
        objects: impl IntoIterator<Item = (Key, KnownObject)>,
    ) -> Vec<(Key, Object)> {
        let restore = |(key, known)| {
            let object = self.restore(&key, known);
            (key, object)
        };
        objects.into_iter().map(restore).collect()
    }

    /// Builds an object from its stored parts.
    fn restore(&self, key: &Key, known: KnownObject) -> Object {
        let (namespace, name) = match known.path.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &*known.path),
        };
        let mut metadata = Map::from_iter([("name".to_owned(), name.into())]);
        let mut add = |key: &str, value: Value| drop(metadata.insert(key.into(), value));
        if let Some(namespace) = namespace {
            add("namespace", namespace.into());
        }
        if let Some(uid) = key.uid() {
            add("uid", uid.into());
        }
        if let Some(Tags { labels, annotations }) = known.tags.map(|it| *it) {
            add("labels", labels.into());
            add("annotations", annotations.into());
        }
        Object::from_value(json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "metadata": metadata,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{Key, KnownObjects, Version};
    use crate::logic::object::{Object, resource::Resource};

    const UID: &str = "a70153bc-47c0-43b0-8acd-de145afbe6c4";

    fn empty() -> KnownObjects {
        let resource = Resource { version: "v1".into(), kind: "Pod".into(), ..Resource::default() };
        KnownObjects::new(Arc::new(resource), &[])
    }

    fn note(known: &mut KnownObjects, uid: &str, name: &str) {
        let body = json!({ "metadata": { "uid": uid, "name": name, "namespace": "ns1" } });
        let object = Object::from_value(body);
        known.note(&Key::of(object.header()), object.header(), Version::FIRST);
    }

    #[test]
    fn an_object_missing_from_a_complete_list_is_gone() {
        let mut known = empty();
        known.begin_list();
        note(&mut known, UID, "a");
        note(&mut known, "odd", "b");
        assert!(known.end_list().is_empty());
        note(&mut known, "later", "c");
        known.begin_list();
        note(&mut known, "odd", "b");
        let gone = known.end_list();
        let names = gone.iter().map(|(_, it)| it.header().name.clone().unwrap());
        assert_eq!(
            names.collect::<std::collections::BTreeSet<_>>(),
            ["a", "c"].map(String::from).into()
        );
        let (key, object) =
            gone.iter().find(|(_, it)| it.header().name.as_deref() == Some("a")).unwrap();
        assert_eq!(*key, Key::of(object.header()));
        assert_eq!(
            **object.body(),
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "ns1", "uid": UID } })
        );
    }

    #[test]
    fn an_aborted_list_proves_nothing() {
        let mut known = empty();
        known.begin_list();
        note(&mut known, UID, "a");
        // The next list starts before this one is complete.
        known.begin_list();
        assert_eq!(known.end_list().len(), 1, "the object was deleted between the lists");
    }

    #[test]
    fn an_object_seen_only_by_the_previous_stream_is_missed() {
        let (mut old, mut new) = (empty(), empty());
        old.begin_list();
        note(&mut old, UID, "a");
        new.inherit(old);
        new.begin_list();
        assert_eq!(new.end_list().len(), 1);
    }
}
