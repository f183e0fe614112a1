//! Whether this operator may act: asked before everything that other replicas must not do at the same time.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::sync::watch;

use super::clock::Clock;
use crate::logic::leadership::Role;

/// No election, or a standby: nothing ends.
const NEVER: u64 = u64::MAX;

/// Whether this operator may act. Clones share it. Without an election it always may.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    role: watch::Sender<Role>,
    clock: Clock,
    /// The end of the lease in nanoseconds of [`Clock::uptime`]. The role follows it, but only when its task is polled: a process that was
    /// frozen goes on with any of its tasks.
    deadline: AtomicU64,
}

impl Default for Leadership {
    fn default() -> Self {
        Leadership::new(Clock::default())
    }
}

impl Leadership {
    /// Returns that of an operator without an election.
    pub fn new(clock: Clock) -> Self {
        let role = watch::Sender::new(Role::Leader);
        Leadership(Arc::new(Shared { role, clock, deadline: AtomicU64::new(NEVER) }))
    }

    /// Returns what this replica is, as published last.
    pub fn role(&self) -> Role {
        self.0.role.borrow().clone()
    }

    /// Returns whether this replica leads, as published last.
    pub fn is_leading(&self) -> bool {
        *self.0.role.borrow() == Role::Leader
    }

    /// Waits until it leads.
    pub async fn until_leading(&self) {
        // The sender lives as long as `self`: there is no error to see.
        drop(self.0.role.subscribe().wait_for(|it| *it == Role::Leader).await);
    }

    /// Waits until the leadership is lost; returns the reason.
    pub async fn lost(&self) -> String {
        let mut roles = self.0.role.subscribe();
        loop {
            if let Role::Lost(reason) = &*roles.borrow_and_update() {
                return reason.clone();
            }
            if roles.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns whether the lease, if there is one, has not expired by our own clock. A standby has none: what it is allowed to run, such
    /// as index functions, it may run.
    pub fn may_act(&self) -> bool {
        let deadline = self.0.deadline.load(Ordering::Acquire);
        deadline == NEVER || nanos(self.0.clock.uptime()) < deadline
    }

    /// Runs something only for as long as this operator may act. From then on it is not polled again, and this never returns: whoever
    /// started it drops it when the loss is noticed.
    pub async fn while_acting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| if self.may_act() { work.as_mut().poll(cx) } else { Poll::Pending }).await
    }

    /// Publishes a role. A leader may act until `deadline`, on [`Clock::uptime`].
    pub fn publish(&self, role: &Role, deadline: Option<Duration>) {
        let end = match role {
            Role::Leader => deadline.map_or(NEVER, nanos),
            Role::Standby => NEVER,
            Role::Lost(_) => 0,
        };
        // First: whoever sees the role may act at once.
        self.0.deadline.store(end, Ordering::Release);
        if *self.0.role.borrow() != *role {
            self.0.role.send_replace(role.clone());
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}
