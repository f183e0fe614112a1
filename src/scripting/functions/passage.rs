//! What one script has on its way to others and back: requests that wait, and answers that it does not have yet.
//!
//! Thousands of calls of a script may wait at the same time. Each of them would keep its request, which is as large as the
//! script makes it, and then its answer. So a call passes when there is room for both, and until then its arguments stay where
//! they are: in the memory of the script.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Call;
use crate::scripting::{functions::outcome::Datum, values::limits};

/// Bytes, as JSON, of what one script has on its way through one library.
pub(crate) const ON_THEIR_WAY_MAX: usize = 16 << 20;
/// A call takes at least so much: 32 of them at the same time.
const LEAST: usize = 512 << 10;
/// A list comes in parts that are larger than an object: four of them at the same time.
const LEAST_OF_LIST: usize = 4 << 20;
/// Permits are counted in these.
const UNIT: usize = 1 << 10;

/// The rooms of one script, by library.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<BTreeMap<&'static str, Arc<Semaphore>>>);

/// The room that a call has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Passage {
    room: Arc<Semaphore>,
    permit: OwnedSemaphorePermit,
}

/// The room that a call needs and that is not there yet.
#[derive(Debug)]
pub(crate) struct Queue {
    room: Arc<Semaphore>,
    units: u32,
}

impl Rooms {
    fn of(&self, library: &'static str) -> Arc<Semaphore> {
        let make = || Arc::new(Semaphore::new(ON_THEIR_WAY_MAX / UNIT));
        Arc::clone(self.0.lock().entry(library).or_insert_with(make))
    }
}

impl Queue {
    /// Waits for the room, in the order of those who wait. Nothing if the script is gone.
    pub(crate) async fn wait(self) -> Option<Passage> {
        let Queue { room, units } = self;
        let permit = Arc::clone(&room).acquire_many_owned(units).await.ok()?;
        Some(Passage { room, permit })
    }
}

impl Passage {
    /// Makes room for so many bytes; whether there is as much.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let has = self.permit.num_permits();
        if has >= ON_THEIR_WAY_MAX / UNIT {
            // It is alone: its own limit is that of the library.
            return true;
        }
        let more = units(bytes).saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
        let taken = Arc::clone(&self.room).try_acquire_many_owned(more);
        taken.map(|it| self.permit.merge(it)).is_ok()
    }

    /// Gives the room back, and waits until there are no others.
    pub(super) async fn alone(self) -> Option<Passage> {
        let Passage { room, permit } = self;
        drop(permit);
        Queue { room, units: units(ON_THEIR_WAY_MAX) }.wait().await
    }
}

impl Call {
    /// Lets the call pass if there is room for it.
    ///
    /// # Errors
    /// What it has to wait for; its arguments are to be read again then.
    pub(crate) fn pass(self, library: &'static str, function: &str) -> Result<Call, Queue> {
        let room = self.surroundings.rooms.of(library);
        let least = if function == "list" { LEAST_OF_LIST } else { LEAST };
        let answer = self.value("size").as_u64().and_then(|it| usize::try_from(it).ok());
        let bytes = self.weight().saturating_add(answer.unwrap_or_default());
        let units = units(bytes.max(least));
        match Arc::clone(&room).try_acquire_many_owned(units) {
            Ok(permit) => Ok(self.passing(Passage { room, permit })),
            Err(_) => Err(Queue { room, units }),
        }
    }

    /// The same call with the room that it has waited for.
    pub(crate) fn passing(self, passage: Passage) -> Call {
        Call { passage: Some(passage), ..self }
    }

    fn weight(&self) -> usize {
        let arguments = self.arguments.iter().map(|(_, it)| it);
        let bytes = |it: &Datum| match it {
            Datum::Json(value) => limits::weight(value),
            Datum::Bytes(bytes) => bytes.len(),
            Datum::Map(parts) => parts.iter().map(|(key, it)| key.len() + it.len()).sum(),
        };
        arguments.map(bytes).sum()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.min(ON_THEIR_WAY_MAX).div_ceil(UNIT)).unwrap_or(u32::MAX)
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
    fn a_script_has_so_much_on_its_way_and_the_rest_waits() {
        let script = Arc::<Surroundings>::default();
        let pass = |bytes| call(&script, bytes).pass("kube", "create");
        let mut small: Vec<_> = (0..32).map(|_| pass(10).unwrap()).collect();
        let queue = pass(10).unwrap_err();
        assert!(pass(10).unwrap_err().wait().now_or_never().is_none());
        // Each library has its own.
        assert!(call(&script, 10).pass("http", "get").is_ok());
        small.pop();
        assert!(queue.wait().now_or_never().is_some());
        drop(small);
        let large: Vec<_> = (0..4).map(|_| pass(3_900_000).unwrap()).collect();
        assert!(pass(3_900_000).is_err());
        drop(large);
        // What is larger than all of it goes alone.
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
