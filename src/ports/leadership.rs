//! The right of this operator to act: checked before every action that other replicas must not take at the same time.

use std::{
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures::FutureExt as _;
use tokio::sync::watch;

use crate::logic::replicas::leadership::ReplicaRole;
use crate::ports::Clock;

/// There is no election, or this replica is a standby: no lease expires.
const NEVER: u64 = u64::MAX;

/// The right of this operator to act. Clones share it. Without an election, the operator always may act.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    role: watch::Sender<ReplicaRole>,
    clock: Clock,
    /// The end of the lease in nanoseconds of [`Clock::uptime`]. The role follows it only when the election task is polled, and a
    /// process that was frozen may resume with any other task first.
    deadline: AtomicU64,
}

impl Default for Leadership {
    fn default() -> Self {
        Leadership::new(Clock::default())
    }
}

impl Leadership {
    /// Returns the leadership of an operator without an election.
    pub fn new(clock: Clock) -> Self {
        let role = watch::Sender::new(ReplicaRole::Leader);
        Leadership(Arc::new(Shared { role, clock, deadline: AtomicU64::new(NEVER) }))
    }

    /// Returns the role of this replica, as published last.
    pub fn role(&self) -> ReplicaRole {
        self.0.role.borrow().clone()
    }

    /// Returns whether this replica leads, as published last.
    pub fn is_leading(&self) -> bool {
        *self.0.role.borrow() == ReplicaRole::Leader
    }

    /// Waits until this replica leads.
    pub async fn until_leading(&self) {
        // The sender is not dropped before `self`, so there is no error.
        drop(self.0.role.subscribe().wait_for(|it| *it == ReplicaRole::Leader).await);
    }

    /// Waits until the leadership is lost; returns the reason.
    pub async fn lost(&self) -> String {
        let mut roles = self.0.role.subscribe();
        loop {
            if let ReplicaRole::Lost(reason) = &*roles.borrow_and_update() {
                return reason.clone();
            }
            if roles.changed().await.is_err() {
                // The sender is not dropped before `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns whether the lease, if there is one, has not expired by the local clock. A standby has no lease: it may run everything that a
    /// standby is allowed to run, such as index functions.
    pub fn may_act(&self) -> bool {
        let deadline = self.0.deadline.load(Ordering::Acquire);
        deadline == NEVER || nanos(self.0.clock.uptime()) < deadline
    }

    /// Polls `work` only while this operator may act. After that this future never completes: its owner drops it when the loss is
    /// noticed. `work` is pinned by the caller: an asynchronous function reserves memory twice for each future that it takes and pins.
    pub async fn while_acting<T>(&self, mut work: impl Future<Output = T> + Unpin) -> T {
        poll_fn(|cx| if self.may_act() { work.poll_unpin(cx) } else { Poll::Pending }).await
    }

    /// Publishes a role. A leader may act until `deadline`, on [`Clock::uptime`].
    pub fn publish(&self, role: &ReplicaRole, deadline: Option<Duration>) {
        let end = match role {
            ReplicaRole::Leader => deadline.map_or(NEVER, nanos),
            ReplicaRole::Standby => NEVER,
            ReplicaRole::Lost(_) => 0,
        };
        // Stored first, because readers of the role may act at once.
        self.0.deadline.store(end, Ordering::Release);
        if *self.0.role.borrow() != *role {
            self.0.role.send_replace(role.clone());
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}
