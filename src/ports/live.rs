//! The object of daemons and timers: replaced by each of its events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::logic::object::Object;

/// An object as its latest event showed it. Clones share it.
///
/// Nobody may look at it for days, and there may be many thousands: while nobody does, it is the bytes that it came in,
/// without those that no script sees.
#[derive(Clone, Debug)]
pub struct LiveObject(Arc<Mutex<Latest>>);

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
        LiveObject(Arc::new(Mutex::new(latest)))
    }

    /// For somebody who keeps it long.
    pub fn kept(object: &Arc<Object>) -> Self {
        LiveObject(Arc::new(Mutex::new(Latest::of(object, 0))))
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::logic::object::Object;

    fn object(number: u32) -> Arc<Object> {
        let text = format!(
            r#"{{"metadata":{{"managedFields":[1],"name":"n","labels":{{"a":"b"}}}},"spec":{number}}}"#
        );
        Arc::new(Object::parse(text.into()).unwrap())
    }

    #[test]
    fn it_shows_the_latest_state_also_after_a_rest() {
        let live = LiveObject::kept(&object(1));
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
    fn an_object_without_bytes_is_kept() {
        let tree = Arc::new(Object::from_value(json!({ "spec": 1 })));
        let live = LiveObject::kept(&tree);
        live.rest();
        assert!(Arc::ptr_eq(&live.get(), &tree));
    }
}
