//! Limits the number of concurrent requests.
//!
//! Requests for leases, peering and discovery (CRDs included) need no permit: waiting would lose what depends on them. All others
//! need a permit of their resource, so that slow requests of one kind do not delay another kind, and for their first second one of
//! all resources: a burst of objects must not become a burst of connections, each with a TLS handshake.

use std::{collections::BTreeMap, future::Future, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
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
    slow: Arc<Semaphore>,
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
    slow_requests: Option<Arc<Semaphore>>,
}

impl RequestLimits {
    pub(super) fn new() -> Self {
        RequestLimits {
            operator: OriginLimits::new(REQUESTS_MAX, RESOURCE_REQUESTS_MAX),
            scripts: OriginLimits::new(SCRIPT_REQUESTS_MAX, SCRIPT_RESOURCE_REQUESTS_MAX),
            slow: Arc::new(Semaphore::new(SLOW_REQUESTS_MAX)),
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
        let resource = limits.of(resource).acquire_owned().await.ok();
        let all = Arc::clone(&limits.all).acquire_owned().await.ok();
        let slow_requests = Some(Arc::clone(&self.slow));
        Permit { all, resource, slow_requests, ..Permit::default() }
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
    /// Runs a part of the request to its end; releases the permit early if the request is slow.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
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
        sleep_until(slow_at).await;
        self.all = None;
        if self.slow.is_none() {
            self.slow = slow_requests.acquire_owned().await.ok();
        }
        self.resource = None;
    }
}

/// Returns whether requests for this resource need no permit, because a delay would lose more than time.
fn is_vital(resource: &Resource) -> bool {
    leadership::is_lease(resource)
        || peering::is_peering(resource)
        || (resource.group == "apiextensions.k8s.io"
            && resource.plural == "customresourcedefinitions")
}
