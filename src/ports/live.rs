//! The object of daemons and timers: replaced by each of its events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::logic::{
    object::{Header, Object, ObjectRef},
    resource::Resource,
};

/// An object as its latest event showed it. Clones share it.
///
/// Nobody may look at it for days, and there may be many thousands: while nobody does, it is the bytes that it came in,
/// without those that no script sees.
#[derive(Clone, Debug)]
pub struct LiveObject(Arc<Living>);

#[derive(Debug)]
struct Living {
    /// What it is one of, if that is known.
    resource: Option<Arc<Resource>>,
    latest: Mutex<Latest>,
}

#[derive(Debug)]
struct Latest {
    /// Empty if there is only a tree.
    raw: Box<[u8]>,
    /// Made of the bytes, while somebody looks.
    object: Option<Arc<Object>>,
    /// Another one for each state.
    version: u32,
}

impl LiveObject {
    /// An object that is there anyway, and is shown for a moment.
    pub fn new(object: Arc<Object>) -> Self {
        let latest = Latest { raw: Box::default(), object: Some(object), version: 0 };
        LiveObject(Arc::new(Living { resource: None, latest: Mutex::new(latest) }))
    }

    /// For somebody who keeps it long.
    pub fn kept(object: &Arc<Object>, resource: &Arc<Resource>) -> Self {
        let (resource, latest) = (Some(Arc::clone(resource)), Mutex::new(Latest::of(object, 0)));
        LiveObject(Arc::new(Living { resource, latest }))
    }

    /// The latest state. It is kept for the next who asks, until [`LiveObject::rest`].
    pub fn get(&self) -> Arc<Object> {
        let mut latest = self.lock();
        let Latest { raw, object, .. } = &mut *latest;
        let made = object.get_or_insert_with(|| {
            let parsed = Object::parse(Bytes::copy_from_slice(raw));
            // They were parsed before.
            Arc::new(parsed.unwrap_or_else(|_| Object::from_value(serde_json::Value::Null)))
        });
        Arc::clone(made)
    }

    /// The identity for logs. It is made anew for each who asks, as few do.
    pub fn reference(&self) -> ObjectRef {
        let latest = self.lock();
        let read;
        let header = match &latest.object {
            Some(object) => object.header(),
            None => {
                // They were parsed before.
                read = Header::read(&latest.raw).unwrap_or_default();
                &read
            }
        };
        match &self.0.resource {
            Some(resource) => header.reference_in(resource),
            None => header.reference(),
        }
    }

    /// Tells the states apart.
    pub fn version(&self) -> u32 {
        self.lock().version
    }

    /// A newer state.
    pub fn set(&self, object: &Arc<Object>) {
        let latest = Latest::of(object, 0);
        let mut present = self.lock();
        let version = present.version.wrapping_add(1);
        *present = Latest { version, ..latest };
    }

    /// Nobody looks for now.
    pub fn rest(&self) {
        let mut latest = self.lock();
        if !latest.raw.is_empty() {
            latest.object = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Each change is one assignment.
        self.0.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latest {
    fn of(object: &Arc<Object>, version: u32) -> Self {
        let raw = object.essential_bytes().into_boxed_slice();
        let object = raw.is_empty().then(|| Arc::clone(object));
        Latest { raw, object, version }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::LiveObject;
    use crate::logic::{object::Object, resource::Resource};

    fn object(number: u32) -> Arc<Object> {
        let text = format!(
            r#"{{"metadata":{{"managedFields":[1],"name":"n","labels":{{"a":"b"}}}},"spec":{number}}}"#
        );
        Arc::new(Object::parse(text.into()).unwrap())
    }

    #[test]
    fn it_shows_the_latest_state_also_after_a_rest() {
        let live = LiveObject::kept(&object(1), &Arc::default());
        let clone = live.clone();
        assert_eq!(live.get().body()["spec"], 1);
        let version = live.version();
        clone.set(&object(2));
        assert_ne!(live.version(), version);
        let seen = live.get();
        assert!(Arc::ptr_eq(&seen, &live.get()), "made once for those who look");
        live.rest();
        assert!(!Arc::ptr_eq(&seen, &live.get()));
        assert_eq!(seen.body(), live.get().body());
        assert_eq!(seen.header(), object(2).header());
    }

    #[test]
    fn its_identity_is_known_also_at_rest() {
        let resource = Resource { kind: "Pod".into(), version: "v1".into(), ..Resource::default() };
        let live = LiveObject::kept(&object(1), &Arc::new(resource));
        let at_rest = live.reference();
        assert_eq!((&*at_rest.name, &*at_rest.kind, &*at_rest.api_version), ("n", "Pod", "v1"));
        let _seen = live.get();
        assert_eq!(live.reference(), at_rest);
    }

    #[test]
    fn an_object_without_bytes_is_kept() {
        let tree = Arc::new(Object::from_value(json!({ "spec": 1 })));
        let live = LiveObject::kept(&tree, &Arc::default());
        live.rest();
        assert!(Arc::ptr_eq(&live.get(), &tree));
    }
}
