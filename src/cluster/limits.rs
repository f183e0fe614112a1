//! Limits the number of concurrent requests.
//!
//! Requests for leases, peering and discovery (CRDs included) need no permit: waiting would lose what depends on them. All others
//! need a permit of their resource, so that slow requests of one kind do not delay another kind, and for their first second one of
//! all resources: a burst of objects must not become a burst of connections, each with a TLS handshake.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use super::failure::Action;
use crate::logic::{
    object::resource::Resource,
    replicas::{leadership, peering},
};

/// Maximum number of concurrent requests younger than [`SLOW_AFTER`]: each may open a connection, and one TLS handshake costs as
/// much as several requests.
pub(super) const REQUESTS_MAX: usize = 32;

/// The part of [`REQUESTS_MAX`] that one resource may take.
pub(super) const RESOURCE_REQUESTS_MAX: usize = 24;

/// The same limits for requests of scripts, which are separate: a script that sends many must not delay the operator.
const SCRIPT_REQUESTS_MAX: usize = 16;
const SCRIPT_RESOURCE_REQUESTS_MAX: usize = 12;

/// Maximum number of slow requests that do not count for their resource: each keeps a connection.
pub(super) const SLOW_REQUESTS_MAX: usize = 128;

/// A request without a response for this long is slow. Its connection exists, so it no longer counts for a burst.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of semaphores of resources before unused ones are removed.
const RESOURCES_KEPT: usize = 64;

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// The operator itself, for its handlers and its own state.
    Operator,
    /// A call of the library `kube` by a script.
    Script,
}

/// The limits of one connection to a cluster.
pub(super) struct RequestLimits {
    operator: OriginLimits,
    scripts: OriginLimits,
    slow: Arc<SlowRequests>,
}

/// The limit of slow requests.
struct SlowRequests {
    permits: Arc<Semaphore>,
    /// Notifies the present requests that another one waits for a permit.
    wanted: Notify,
}

/// The limits of one origin.
struct OriginLimits {
    all: Arc<Semaphore>,
    resource_max: usize,
    /// By group and plural.
    resources: Mutex<BTreeMap<(String, String), Arc<Semaphore>>>,
}

/// The permit of one request; dropping it permits the next one.
#[derive(Default)]
pub(super) struct Permit {
    /// When the request counts as slow; `None` until it is sent.
    slow_at: Option<Instant>,
    all: Option<OwnedSemaphorePermit>,
    resource: Option<OwnedSemaphorePermit>,
    /// Replaces `resource` once the request is slow.
    slow: Option<OwnedSemaphorePermit>,
    /// `None` if the request needs no permit.
    slow_requests: Option<Arc<SlowRequests>>,
}

impl RequestLimits {
    pub(super) fn new() -> Self {
        RequestLimits {
            operator: OriginLimits::new(REQUESTS_MAX, RESOURCE_REQUESTS_MAX),
            scripts: OriginLimits::new(SCRIPT_REQUESTS_MAX, SCRIPT_RESOURCE_REQUESTS_MAX),
            slow: Arc::new(SlowRequests {
                permits: Arc::new(Semaphore::new(SLOW_REQUESTS_MAX)),
                wanted: Notify::new(),
            }),
        }
    }

    /// Waits until a request may be sent.
    pub(super) async fn acquire(&self, origin: RequestOrigin, action: &Action<'_>) -> Permit {
        let Action::Use { resource, .. } = action else { return Permit::default() };
        let limits = match origin {
            RequestOrigin::Operator if is_vital(resource) => return Permit::default(),
            RequestOrigin::Operator => &self.operator,
            RequestOrigin::Script => &self.scripts,
        };
        // The permit of the resource first: those that wait for it must not hold one of all.
        let resource = self.acquire_from(limits.of(resource)).await;
        let all = self.acquire_from(Arc::clone(&limits.all)).await;
        let slow_requests = Some(Arc::clone(&self.slow));
        Permit { all, resource, slow_requests, ..Permit::default() }
    }

    async fn acquire_from(&self, permits: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        if permits.available_permits() == 0 {
            self.slow.wanted.notify_waiters();
        }
        permits.acquire_owned().await.ok()
    }
}

impl OriginLimits {
    fn new(all_max: usize, resource_max: usize) -> Self {
        let all = Arc::new(Semaphore::new(all_max));
        OriginLimits { all, resource_max, resources: Mutex::default() }
    }

    fn of(&self, resource: &Resource) -> Arc<Semaphore> {
        let mut resources = self.resources.lock();
        if resources.len() > RESOURCES_KEPT {
            resources.retain(|_, it| Arc::strong_count(it) > 1);
        }
        let key = (resource.group.clone(), resource.plural.clone());
        let new = || Arc::new(Semaphore::new(self.resource_max));
        Arc::clone(resources.entry(key).or_insert_with(new))
    }
}

impl Permit {
    /// Runs a part of the request to its end; releases the permit early if the request is slow. The caller pins the work, as for
    /// [`while_acting`](crate::ports::Leadership::while_acting).
    pub(super) async fn during<T>(&mut self, mut work: impl Future<Output = T> + Unpin) -> T {
        tokio::select! {
            biased; // a finished request was not slow
            done = &mut work => return done,
            () = self.give_back_when_slow() => {}
        }
        work.await
    }

    async fn give_back_when_slow(&mut self) {
        let Some(slow_requests) = self.slow_requests.clone() else { return };
        let slow_at = *self.slow_at.get_or_insert_with(|| Instant::now() + SLOW_AFTER);
        // Most requests end before others wait: they need no timer, which would be the next one of the process and wake its runtime.
        let wanted = slow_requests.wanted.notified();
        if !self.is_last() {
            wanted.await;
        }
        sleep_until(slow_at).await;
        self.all = None;
        if self.slow.is_none() {
            self.slow = Arc::clone(&slow_requests.permits).acquire_owned().await.ok();
        }
        self.resource = None;
    }

    /// Returns whether another request would have to wait for one of these permits.
    fn is_last(&self) -> bool {
        let mut held = [&self.all, &self.resource].into_iter().flatten();
        held.any(|it| it.semaphore().available_permits() == 0)
    }
}

/// Returns whether requests for this resource need no permit, because a delay would lose more than time.
fn is_vital(resource: &Resource) -> bool {
    leadership::is_lease(resource)
        || peering::is_peering(resource)
        || (resource.group == "apiextensions.k8s.io"
            && resource.plural == "customresourcedefinitions")
}

#[cfg(test)]
mod tests {
    use std::{future, pin::pin};

    use super::{
        Action, Duration, Instant, RESOURCE_REQUESTS_MAX, RequestLimits, RequestOrigin, Resource,
        SLOW_AFTER,
    };

    async fn acquire(limits: &RequestLimits, resource: &Resource) -> super::Permit {
        let (verb, namespace, name, subresource) = ("get", None, None, None);
        let action = Action::Use { verb, resource, namespace, name, subresource };
        limits.acquire(RequestOrigin::Operator, &action).await
    }

    /// Sends as many requests as permits, which never end, and waits for one more permit after this time. Returns when it is there.
    async fn one_more_after(pause: Duration) -> Duration {
        let (limits, resource) = (RequestLimits::new(), Resource::default());
        let begun = Instant::now();
        let stuck = future::pending::<()>;
        let requests = (0..RESOURCE_REQUESTS_MAX).map(async |_| {
            acquire(&limits, &resource).await.during(pin!(stuck())).await;
        });
        let one_more = async {
            tokio::time::sleep(pause).await;
            acquire(&limits, &resource).await;
            begun.elapsed()
        };
        tokio::select! {
            biased; // the others first: they never end
            _never = futures::future::join_all(requests) => Duration::MAX,
            took = one_more => took,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_request_gives_its_permit_to_the_next_one() {
        let tick = Duration::from_millis(2); // timers are precise to 1 ms
        for pause in [0, 300, 999].map(Duration::from_millis) {
            let took = one_more_after(pause).await;
            assert!((SLOW_AFTER..SLOW_AFTER + tick).contains(&took), "{pause:?}: {took:?}");
        }
        let late = 5 * SLOW_AFTER;
        let took = one_more_after(late).await;
        assert!((late..late + tick).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_nobody_waits_for_keeps_its_permit() {
        let (limits, resource) = (RequestLimits::new(), Resource::default());
        let mut permit = acquire(&limits, &resource).await;
        let slow = tokio::time::sleep(60 * SLOW_AFTER);
        permit.during(pin!(slow)).await;
        let free = limits.operator.of(&resource).available_permits();
        assert_eq!(free, RESOURCE_REQUESTS_MAX - 1);
    }
}
