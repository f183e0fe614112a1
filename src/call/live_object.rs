//! The object of daemons and timers: each of its events replaces it.

use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use super::ObjectPacker;
use crate::heap;
use crate::logic::object::{Header, Object, ObjectRef};

/// An object as its latest event showed it. Clones share it.
///
/// There may be many thousands of these, unread for days. While unread, an object is kept as compressed JSON, without the parts
/// that scripts never see.
#[derive(Clone, Debug)]
pub struct LiveObject(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Compresses objects of this resource; only for objects that are kept long.
    packer: Option<Arc<ObjectPacker>>,
    latest: Mutex<Latest>,
    /// The version made by the operator's last request; zero if the version is not a number.
    own_version: AtomicU64,
}

#[derive(Debug)]
struct Latest {
    /// Empty if the object has no bytes, only a tree.
    packed: Box<[u8]>,
    /// Parsed from the bytes when the object is read.
    object: Option<Arc<Object>>,
    /// A different number for each state.
    version: u32,
}

impl LiveObject {
    /// Wraps an object that exists anyway and is shown briefly.
    pub fn new(object: Arc<Object>) -> Self {
        let latest = Latest { packed: Box::default(), object: Some(object), version: 0 };
        LiveObject::share(latest, None)
    }

    /// Wraps an object that is kept for a long time, compressed.
    pub fn kept(object: &Arc<Object>, packer: &Arc<ObjectPacker>) -> Self {
        let latest = Latest::of(object, Some(packer));
        heap::lasting(|| LiveObject::share(latest, Some(Arc::clone(packer))))
    }

    fn share(latest: Latest, packer: Option<Arc<ObjectPacker>>) -> Self {
        let (latest, own_version) = (Mutex::new(latest), AtomicU64::default());
        LiveObject(Arc::new(Shared { packer, latest, own_version }))
    }

    /// Returns the latest state. The parsed object is kept until [`LiveObject::rest`].
    pub fn get(&self) -> Arc<Object> {
        let mut latest = self.lock();
        let Latest { packed, object, .. } = &mut *latest;
        let made = object.get_or_insert_with(|| {
            let parsed = Object::parse(Bytes::from(self.unpack(packed)));
            // These bytes were parsed before.
            Arc::new(parsed.unwrap_or_else(|_| Object::from_value(serde_json::Value::Null)))
        });
        Arc::clone(made)
    }

    /// Returns the identity for logs. Built for each call, because calls are rare.
    pub fn reference(&self) -> ObjectRef {
        let latest = self.lock();
        let read;
        let header = if let Some(object) = &latest.object {
            object.header()
        } else {
            // These bytes were parsed before.
            read = Header::read(&self.unpack(&latest.packed)).unwrap_or_default();
            &read
        };
        match &self.0.packer {
            Some(packer) => packer.resource().reference_to(header),
            None => header.reference(),
        }
    }

    /// Returns a number that differs between states.
    pub fn version(&self) -> u32 {
        self.lock().version
    }

    /// Returns the version made by the operator's last request. The event of that version may come later.
    pub fn own_version(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.0.own_version.load(Ordering::Relaxed))
    }

    /// Stores the version made by the operator's last request.
    pub fn note_own_version(&self, version: Option<NonZeroU64>) {
        self.0.own_version.store(version.map_or(0, NonZeroU64::get), Ordering::Relaxed);
    }

    /// Replaces the object with a newer state.
    pub fn set(&self, object: &Arc<Object>) {
        let latest = Latest::of(object, self.0.packer.as_deref());
        let mut present = self.lock();
        let version = present.version.wrapping_add(1);
        *present = Latest { version, ..latest };
    }

    /// Drops the parsed object; the compressed bytes stay.
    pub fn rest(&self) {
        let mut latest = self.lock();
        if !latest.packed.is_empty() {
            latest.object = None;
        }
    }

    fn unpack(&self, packed: &[u8]) -> Vec<u8> {
        self.0.packer.as_ref().map(|it| it.unpack(packed)).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Each change is one assignment.
        self.0.latest.lock()
    }
}

impl Latest {
    fn of(object: &Arc<Object>, packer: Option<&ObjectPacker>) -> Self {
        let text = object.essential_bytes();
        let packed = packer.filter(|_| !text.is_empty()).map(|it| it.pack(&text));
        let packed: Box<[u8]> =
            packed.map(|it| heap::lasting(|| it.as_ref().into())).unwrap_or_default();
        let object = packed.is_empty().then(|| Arc::clone(object));
        Latest { packed, object, version: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::ObjectPacker;
    use crate::call::LiveObject;
    use crate::logic::object::{Object, resource::Resource};

    fn packer() -> Arc<ObjectPacker> {
        let resource = Resource { kind: "Pod".into(), version: "v1".into(), ..Resource::default() };
        Arc::new(ObjectPacker::of(Arc::new(resource)))
    }

    fn object(number: u32) -> Arc<Object> {
        let text = format!(
            r#"{{"metadata":{{"managedFields":[1],"name":"n","labels":{{"a":"b"}}}},"spec":{number}}}"#
        );
        Arc::new(Object::parse(text.into()).unwrap())
    }

    #[test]
    fn a_live_object_returns_the_latest_state_also_after_a_rest() {
        let live = LiveObject::kept(&object(1), &packer());
        let clone = live.clone();
        assert_eq!(live.get().body()["spec"], 1);
        let version = live.version();
        clone.set(&object(2));
        assert_ne!(live.version(), version);
        let seen = live.get();
        assert!(Arc::ptr_eq(&seen, &live.get()), "parsed once for all readers");
        live.rest();
        assert!(!Arc::ptr_eq(&seen, &live.get()));
        assert_eq!(seen.body(), live.get().body());
        assert_eq!(seen.header(), object(2).header());
    }

    #[test]
    fn the_identity_of_a_packed_object_is_known() {
        let live = LiveObject::kept(&object(1), &packer());
        let at_rest = live.reference();
        assert_eq!((&*at_rest.name, &*at_rest.kind, &*at_rest.api_version), ("n", "Pod", "v1"));
        let _seen = live.get();
        assert_eq!(live.reference(), at_rest);
    }

    #[test]
    fn an_object_without_bytes_is_kept() {
        let tree = Arc::new(Object::from_value(json!({ "spec": 1 })));
        let live = LiveObject::kept(&tree, &packer());
        live.rest();
        assert!(Arc::ptr_eq(&live.get(), &tree));
    }
}
