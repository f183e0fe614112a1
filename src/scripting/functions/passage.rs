//! Limits the memory of pending requests of one script: requests that wait, and responses that have not arrived yet.
//!
//! Thousands of calls of a script may wait at the same time. Each would keep its request, which is as large as the script makes it,
//! and then its response. So a call is admitted when there is room for both; until then, its arguments stay in the memory of the script.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Call;
use crate::logic::object::measure;
use crate::scripting::functions::outcome::Datum;

/// Maximum bytes, as JSON, of the pending calls of one script to one library.
pub(crate) const PENDING_BYTES_MAX: usize = 16 << 20;
/// Minimum room of a call: 32 of them at the same time.
const CALL_BYTES_MIN: usize = 512 << 10;
/// Minimum room of a list, whose parts are larger than an object: four of them at the same time.
const LIST_BYTES_MIN: usize = 4 << 20;
/// The bytes of one permit.
const UNIT: usize = 1 << 10;

/// The rooms of one script, by library.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<BTreeMap<&'static str, Arc<Semaphore>>>);

/// The room that a call holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Passage {
    room: Arc<Semaphore>,
    permit: OwnedSemaphorePermit,
}

/// A wait for the room that a call needs.
#[derive(Debug)]
pub(crate) struct PassageQueue {
    room: Arc<Semaphore>,
    units: u32,
}

impl Rooms {
    fn of(&self, library: &'static str) -> Arc<Semaphore> {
        let make = || Arc::new(Semaphore::new(PENDING_BYTES_MAX / UNIT));
        Arc::clone(self.0.lock().entry(library).or_insert_with(make))
    }
}

impl PassageQueue {
    /// Waits for the room, in order of arrival. Returns `None` if the semaphore is closed.
    pub(crate) async fn wait(self) -> Option<Passage> {
        let PassageQueue { room, units } = self;
        let permit = Arc::clone(&room).acquire_many_owned(units).await.ok()?;
        Some(Passage { room, permit })
    }
}

impl Passage {
    /// Extends the room to `bytes`. Returns whether there is enough.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let has = self.permit.num_permits();
        if has >= PENDING_BYTES_MAX / UNIT {
            // It is alone: only the limit of the library applies.
            return true;
        }
        let more = units(bytes).saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
        let taken = Arc::clone(&self.room).try_acquire_many_owned(more);
        taken.map(|it| self.permit.merge(it)).is_ok()
    }

    /// Releases the room, and waits until no other call has any.
    pub(super) async fn alone(self) -> Option<Passage> {
        let Passage { room, permit } = self;
        drop(permit);
        PassageQueue { room, units: units(PENDING_BYTES_MAX) }.wait().await
    }
}

impl Call {
    /// Admits the call if there is room for it.
    ///
    /// # Errors
    /// The wait for the room; its arguments must be read again afterwards.
    pub(crate) fn pass(self, library: &'static str, function: &str) -> Result<Call, PassageQueue> {
        let room = self.surroundings.rooms.of(library);
        let least = if function == "list" { LIST_BYTES_MIN } else { CALL_BYTES_MIN };
        let answer = self.value("size").as_u64().and_then(|it| usize::try_from(it).ok());
        let bytes = self.weight().saturating_add(answer.unwrap_or_default());
        let units = units(bytes.max(least));
        match Arc::clone(&room).try_acquire_many_owned(units) {
            Ok(permit) => Ok(self.passing(Passage { room, permit })),
            Err(_) => Err(PassageQueue { room, units }),
        }
    }

    /// Returns the call with the room that it has waited for.
    pub(crate) fn passing(self, passage: Passage) -> Call {
        Call { passage: Some(passage), ..self }
    }

    fn weight(&self) -> usize {
        let arguments = self.arguments.iter().map(|(_, it)| it);
        let bytes = |it: &Datum| match it {
            Datum::Json(value) => measure::bytes(value),
            Datum::Bytes(bytes) => bytes.len(),
            Datum::Map(parts) => parts.iter().map(|(key, it)| key.len() + it.len()).sum(),
        };
        arguments.map(bytes).sum()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.min(PENDING_BYTES_MAX).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;
    use crate::scripting::functions::{Given, Surroundings, find};

    fn call(of: &Arc<Surroundings>, bytes: usize) -> Call {
        let kube = find("kube").unwrap();
        let create = kube.functions.iter().find(|it| it.name == "create").unwrap();
        let object = json!({ "kind": "X", "data": "x".repeat(bytes) });
        let given = vec![Given::Datum(Datum::Json(object))];
        Call::new((kube, create), given, Arc::clone(of), None).unwrap()
    }

    #[test]
    fn calls_beyond_the_room_of_a_script_wait() {
        let script = Arc::<Surroundings>::default();
        let pass = |bytes| call(&script, bytes).pass("kube", "create");
        let mut small: Vec<_> = (0..32).map(|_| pass(10).unwrap()).collect();
        let queue = pass(10).unwrap_err();
        assert!(pass(10).unwrap_err().wait().now_or_never().is_none());
        // Each library has a separate room.
        assert!(call(&script, 10).pass("http", "get").is_ok());
        small.pop();
        assert!(queue.wait().now_or_never().is_some());
        drop(small);
        let large: Vec<_> = (0..4).map(|_| pass(3_900_000).unwrap()).collect();
        assert!(pass(3_900_000).is_err());
        drop(large);
        // A call that is larger than the whole room is admitted alone.
        let alone = pass(40 << 20).unwrap();
        assert!(pass(10).is_err());
        drop(alone);
        assert!(pass(10).is_ok());
    }

    #[test]
    fn lists_that_grow_wait_until_they_are_alone() {
        let script = Arc::<Surroundings>::default();
        let list = || call(&script, 10).pass("kube", "list").unwrap().passage.unwrap();
        let (mut one, mut two) = (list(), list());
        assert!(one.grow(3 << 20) && two.grow(3 << 20));
        assert!(one.grow(11 << 20));
        assert!(!two.grow(11 << 20));
        let mut waits = Box::pin(two.alone());
        assert!(waits.as_mut().now_or_never().is_none());
        drop(one);
        let mut alone = waits.now_or_never().flatten().unwrap();
        assert!(alone.grow(64 << 20));
    }
}
