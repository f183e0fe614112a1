//! The requests for the Lease of the slots.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::{
    sync::{Mutex, Semaphore},
    time,
};

use super::base::Base;
use crate::logic::{
    object::resource::Resource,
    replicas::leadership::leases,
    schedules::slots::{self, LeaseRef, ScheduleSlot, ScheduleSlots},
};
use crate::ports::{Address, ApiError, Clock, Cluster, ErrorClass, NewObject};

/// Maximum number of attempts to write, because others write too.
const ATTEMPTS_MAX: u32 = 20;
/// Maximum number of schedules that read the Lease at the same time.
const READS_MAX: usize = 4;
/// The pause before the second attempt; it grows.
const PAUSE: Duration = Duration::from_millis(50);

/// The Lease of one operator. Clones share it.
#[derive(Clone)]
pub(super) struct Lease(Arc<Inner>);

struct Inner {
    cluster: Arc<dyn Cluster>,
    place: LeaseRef,
    resource: Resource,
    clock: Clock,
    /// The schedules of one process write one after another.
    turn: Mutex<()>,
    /// Few of them read at the same time: each reads the slots of all.
    reads: Semaphore,
}

/// The reason why the Lease cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseProblem(String);

impl fmt::Display for LeaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Lease {
    pub(super) fn new(base: &Base) -> Self {
        Lease(Arc::new(Inner {
            cluster: Arc::clone(&base.cluster),
            place: base.place.clone(),
            resource: leases(),
            clock: base.clock,
            turn: Mutex::new(()),
            reads: Semaphore::new(READS_MAX),
        }))
    }

    /// Reads the last slot of a schedule.
    pub(super) async fn last(&self, key: &str) -> Result<Option<ScheduleSlot>, LeaseProblem> {
        let _permit = self.0.reads.acquire().await;
        let lease = self.0.read().await?;
        Ok(self.0.slots(lease.as_ref())?.remove(key))
    }

    /// Returns the slot at this time, as this process takes it now.
    pub(super) fn slot(&self, slot: Timestamp, schedule: String) -> ScheduleSlot {
        let (started, by) = (self.0.clock.now(), self.0.place.identity.clone());
        ScheduleSlot { slot, started, ended: None, by, schedule }
    }

    /// Takes a slot; returns false if the last slot is not `last` any more: another process was faster.
    pub(super) async fn take(
        &self,
        key: &str,
        last: Option<&ScheduleSlot>,
        slot: &ScheduleSlot,
        known: &BTreeSet<String>,
    ) -> Result<bool, LeaseProblem> {
        let change = |slots: &mut ScheduleSlots| {
            let found = slots.get(key);
            if found == Some(slot) {
                // An earlier attempt whose response was lost.
                return SlotsChange::Stored;
            }
            if found != last {
                return SlotsChange::Refused;
            }
            slots::store(slots, key, slot.clone(), known);
            SlotsChange::Write
        };
        self.0.change(change).await
    }

    /// Records the end of a run, unless another process has taken a later slot.
    pub(super) async fn end(&self, key: &str, slot: &ScheduleSlot) -> Result<bool, LeaseProblem> {
        let ended = self.0.clock.now();
        let change = |slots: &mut ScheduleSlots| match slots.get_mut(key) {
            Some(found) if found == slot => {
                found.ended = Some(ended);
                SlotsChange::Write
            }
            Some(_) | None => SlotsChange::Refused,
        };
        self.0.change(change).await
    }
}

/// The result of a change of the slots.
enum SlotsChange {
    /// The slots are to be written.
    Write,
    /// They are stored already.
    Stored,
    /// They must not be written.
    Refused,
}

impl Inner {
    /// Changes the slots by compare-and-swap; returns whether they were changed.
    async fn change(
        &self,
        change: impl Fn(&mut ScheduleSlots) -> SlotsChange,
    ) -> Result<bool, LeaseProblem> {
        let _turn = self.turn.lock().await;
        let mut failed = None;
        for attempt in 0..ATTEMPTS_MAX {
            time::sleep(PAUSE * attempt).await;
            let lease = self.read().await?;
            let mut slots = self.slots(lease.as_ref())?;
            match change(&mut slots) {
                SlotsChange::Stored => return Ok(true),
                SlotsChange::Refused => return Ok(false),
                SlotsChange::Write => {}
            }
            match self.write(lease.as_ref(), &slots).await {
                Ok(()) => return Ok(true),
                // The request may have succeeded: only reading shows that.
                Err(error) if is_worth_reading(&error) => failed = Some(error),
                Err(error) => return Err(self.problem(&error)),
            }
        }
        Err(failed.map_or_else(|| LeaseProblem(String::new()), |it| self.problem(&it)))
    }

    async fn read(&self) -> Result<Option<Value>, LeaseProblem> {
        match self.cluster.get(self.address()).await {
            Ok(lease) => Ok(Some(Value::clone(lease.body()))),
            Err(error) if error.class == ErrorClass::Missing => Ok(None),
            Err(error) => Err(self.problem(&error)),
        }
    }

    async fn write(&self, lease: Option<&Value>, slots: &ScheduleSlots) -> Result<(), ApiError> {
        let payload = Bytes::from(self.place.lease(lease, slots, self.clock.now()).to_string());
        if lease.is_some() {
            self.cluster.replace(self.address(), payload).await?;
            return Ok(());
        }
        let namespace = Some(self.place.namespace.as_str());
        let new = NewObject { resource: &self.resource, namespace, payload, backoffs: None };
        self.cluster.create(new).await?;
        Ok(())
    }

    fn slots(&self, lease: Option<&Value>) -> Result<ScheduleSlots, LeaseProblem> {
        slots::read(lease).map_err(|problem| LeaseProblem(format!("{self}: {problem}")))
    }

    fn problem(&self, error: &ApiError) -> LeaseProblem {
        let mut text = format!("{self}: {error}");
        if error.class == ErrorClass::Denied {
            text.push_str("; grant the verbs get, create and update on Leases: `kopf rbac generate` prints such a role");
        } else if let Some(hint) = &error.hint {
            text.push_str("; ");
            text.push_str(hint);
        }
        LeaseProblem(text)
    }

    fn address(&self) -> Address<'_> {
        let namespace = Some(self.place.namespace.as_str());
        Address { resource: &self.resource, namespace, name: &self.place.name }
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lease '{}' in '{}'", self.place.name, self.place.namespace)
    }
}

fn is_worth_reading(error: &ApiError) -> bool {
    matches!(error.class, ErrorClass::Conflict | ErrorClass::Missing | ErrorClass::Retry)
}
