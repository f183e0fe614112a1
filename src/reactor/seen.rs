//! The objects that a stream has seen and that were not gone then: so that those which go while nobody looks are missed.
//!
//! There may be many thousands, so little is kept of each: its names, and of its labels and annotations what filters of
//! `on_event` look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::{memory::Key, serving::Turn};
use crate::logic::{
    handler::Handler,
    object::{Header, Object},
    resource::Resource,
};

/// The objects of one stream.
#[derive(Debug)]
pub(super) struct Seen {
    resource: Arc<Resource>,
    objects: BTreeMap<Key, Glimpse>,
    /// The number of the latest listing.
    listing: u32,
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

/// What is kept of an object.
#[derive(Debug)]
struct Glimpse {
    /// `namespace/name`, or the name alone: one allocation instead of two.
    path: Box<str>,
    /// The listing in or after which it was seen last.
    listing: u32,
    /// The latest handlers that it has come to, or is on its way to.
    shown: Turn,
    /// If there are any to keep.
    tags: Option<Box<Tags>>,
}

#[derive(Debug)]
struct Tags {
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl Seen {
    /// Nothing yet. Of labels and annotations those are kept that filters of these handlers look at.
    pub(super) fn new(resource: Arc<Resource>, handlers: &[Arc<Handler>]) -> Self {
        let mut seen = Seen {
            resource,
            objects: BTreeMap::new(),
            listing: 0,
            labels: BTreeSet::new(),
            annotations: BTreeSet::new(),
        };
        seen.look_for(handlers);
        seen
    }

    /// From now on those labels and annotations are kept that filters of these handlers look at.
    pub(super) fn look_for(&mut self, handlers: &[Arc<Handler>]) {
        let filters = || handlers.iter().map(|it| &it.filters);
        let labels = filters().flat_map(|it| &it.labels).map(|(key, _)| key.clone());
        self.labels = labels.collect();
        let annotations = filters().flat_map(|it| &it.annotations).map(|(key, _)| key.clone());
        self.annotations = annotations.collect();
    }

    /// The keys of all objects.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    /// The latest handlers that an object has come to; nothing of an unknown one.
    pub(super) fn shown(&self, key: &Key) -> Option<Turn> {
        self.objects.get(key).map(|it| it.shown)
    }

    /// An object has come to these handlers.
    pub(super) fn show(&mut self, key: &Key, shown: Turn) {
        if let Some(glimpse) = self.objects.get_mut(key) {
            glimpse.shown = glimpse.shown.max(shown);
        }
    }

    /// Takes over what another one knows. Turns are counted anew.
    pub(super) fn inherit(&mut self, other: Seen) {
        self.objects = other.objects;
        self.objects.values_mut().for_each(|it| it.shown = 0);
        self.listing = other.listing;
    }

    /// A listing begins.
    pub(super) fn begin(&mut self) {
        self.listing = self.listing.wrapping_add(1);
    }

    /// An object is there, and comes to these handlers.
    pub(super) fn note(&mut self, key: &Key, header: &Header, shown: Turn) {
        let glimpse = self.glimpse(header, self.listing, shown);
        self.objects.insert(key.clone(), glimpse);
    }

    /// An object was seen otherwise than by the stream, which proves nothing for its listings; tells whether it is known.
    pub(super) fn retouch(&mut self, key: &Key, header: &Header) -> bool {
        let Some(known) = self.objects.get(key) else { return false };
        let glimpse = self.glimpse(header, known.listing, known.shown);
        self.objects.insert(key.clone(), glimpse);
        true
    }

    fn glimpse(&self, header: &Header, listing: u32, shown: Turn) -> Glimpse {
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
        Glimpse { path, listing, shown, tags: is_tagged.then(|| Box::new(tags)) }
    }

    /// An object is gone, and its end was seen.
    pub(super) fn forget(&mut self, key: &Key) {
        self.objects.remove(key);
    }

    /// A listing is complete: gives the objects that were not in it, as far as they are known.
    pub(super) fn complete(&mut self) -> Vec<(Key, Object)> {
        let listing = self.listing;
        let missed = self.objects.extract_if(.., |_, it| it.listing != listing).collect::<Vec<_>>();
        self.restored(missed)
    }

    /// All objects, as far as they are known.
    pub(super) fn drain(&mut self) -> Vec<(Key, Object)> {
        let all = std::mem::take(&mut self.objects);
        self.restored(all)
    }

    fn restored(&self, objects: impl IntoIterator<Item = (Key, Glimpse)>) -> Vec<(Key, Object)> {
        let restore = |(key, glimpse)| {
            let object = self.restore(&key, glimpse);
            (key, object)
        };
        objects.into_iter().map(restore).collect()
    }

    /// An object of what was kept of it.
    fn restore(&self, key: &Key, glimpse: Glimpse) -> Object {
        let (namespace, name) = match glimpse.path.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &*glimpse.path),
        };
        let mut metadata = Map::from_iter([("name".to_owned(), name.into())]);
        let mut add = |key: &str, value: Value| drop(metadata.insert(key.into(), value));
        if let Some(namespace) = namespace {
            add("namespace", namespace.into());
        }
        if let Some(uid) = key.uid() {
            add("uid", uid.into());
        }
        if let Some(Tags { labels, annotations }) = glimpse.tags.map(|it| *it) {
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

    use super::{Key, Seen};
    use crate::logic::{object::Object, resource::Resource};

    const UID: &str = "a70153bc-47c0-43b0-8acd-de145afbe6c4";

    fn seen() -> Seen {
        let resource = Resource { version: "v1".into(), kind: "Pod".into(), ..Resource::default() };
        Seen::new(Arc::new(resource), &[])
    }

    fn note(seen: &mut Seen, uid: &str, name: &str) {
        let body = json!({ "metadata": { "uid": uid, "name": name, "namespace": "ns1" } });
        let object = Object::from_value(body);
        seen.note(&Key::of(object.header()), object.header(), 1);
    }

    #[test]
    fn what_a_complete_listing_lacks_is_gone() {
        let mut seen = seen();
        seen.begin();
        note(&mut seen, UID, "a");
        note(&mut seen, "odd", "b");
        assert!(seen.complete().is_empty());
        note(&mut seen, "later", "c");
        seen.begin();
        note(&mut seen, "odd", "b");
        let gone = seen.complete();
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
    fn a_listing_that_was_broken_off_proves_nothing() {
        let mut seen = seen();
        seen.begin();
        note(&mut seen, UID, "a");
        // The next one begins before this is complete.
        seen.begin();
        assert_eq!(seen.complete().len(), 1, "it went between the two");
    }

    #[test]
    fn what_another_stream_has_seen_is_missed_by_its_heir() {
        let (mut old, mut new) = (seen(), seen());
        old.begin();
        note(&mut old, UID, "a");
        new.inherit(old);
        new.begin();
        assert_eq!(new.complete().len(), 1);
    }
}
