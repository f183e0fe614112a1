//! Detects a second operator with the same handlers: holds a Lease, or reports its holder. `logic/replicas/duplicates.rs` decides.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::logic::{
    object::resource::Resource,
    replicas::{
        duplicates::{Look, News, Observer, PERIOD},
        leadership::leases,
    },
};
use crate::ports::{Address, ApiError, Clock, Cluster, ErrorClass, NewObject};
use crate::telemetry::{Health, HealthState};

/// The log target: the same as for peering.
const TARGET: &str = "kopf.peering";
/// The name of the part in the health report; it exists while there is a second operator.
const PART: &str = "duplicate";
/// The part that exists while this operator pauses.
const PAUSE: &str = "pause";
/// Time limit of releasing the lease. If it fails, it expires.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// A watcher for a second operator.
pub struct Duplicates {
    /// The cluster that contains the lease.
    pub cluster: Arc<dyn Cluster>,
    /// The name of the lease.
    pub name: String,
    /// The identity of this process.
    pub identity: String,
    /// The clock for the times in the lease.
    pub clock: Clock,
    /// Where a second operator is reported.
    pub health: Health,
}

impl Duplicates {
    /// Watches until `stop`, then releases the lease. Ends early if the access is denied.
    pub async fn watch(self, stop: CancellationToken) {
        let mut observer = Observer::new(self.identity.clone(), self.name.clone());
        let resource = leases();
        let watching = async {
            loop {
                if let Err(error) = self.look(&mut observer, &resource).await {
                    tracing::debug!(target: TARGET, "Cannot look for a second operator: {error}");
                    if error.class == ErrorClass::Denied {
                        return;
                    }
                }
                time::sleep(PERIOD).await;
            }
        };
        let is_stopped = tokio::select! {
            biased; // the end first
            () = stop.cancelled() => true,
            () = watching => false,
        };
        if is_stopped {
            let released = self.release(&observer, &resource);
            if let Ok(Err(error)) = time::timeout(RELEASE_TIMEOUT, released).await {
                tracing::debug!(target: TARGET, "Cannot release the lease '{}': {error}", self.name);
            }
        }
    }

    async fn look(&self, observer: &mut Observer, resource: &Resource) -> Result<(), ApiError> {
        let address = self.address(resource);
        let found = match self.cluster.get(address).await {
            Ok(lease) => Some(Value::clone(lease.body())),
            Err(error) if error.class == ErrorClass::Missing => None,
            Err(error) => return Err(error),
        };
        let pauses = self.health.parts().contains_key(PAUSE);
        let now = (self.clock.uptime(), self.clock.now());
        let Look { write, news } = observer.look(found.as_ref(), now, pauses);
        if let Some(news) = news {
            self.report(&news);
        }
        let Some(lease) = write else { return Ok(()) };
        let payload = Bytes::from(lease.to_string());
        let written = if found.is_some() {
            self.cluster.replace(address, payload).await
        } else {
            let namespace = address.namespace;
            let new = NewObject { resource, namespace, payload, backoffs: Some(&[]) };
            self.cluster.create(new).await
        };
        match written {
            // Another process was faster: the next check shows it.
            Err(error) if error.class == ErrorClass::Conflict => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    fn report(&self, news: &News) {
        match news {
            News::Second(holder, together) => {
                let text = format!(
                    "another operator with the same resources, namespaces and finalizer is running: {holder}"
                );
                self.health.note(PART, HealthState::Ready, &text);
                tracing::warn!(
                    target: TARGET,
                    "Another operator with the same resources, namespaces and finalizer has been running for {} s: {}. \
                     Both call their handlers for each object. Stop one of them, or run both with --leader-elect or with peering.",
                    together.as_secs(),
                    holder.escape_debug(),
                );
            }
            News::Ended(holder) => {
                self.health.forget(PART);
                let holder = holder.escape_debug();
                tracing::info!(target: TARGET, "The other operator has stopped: {holder}.");
            }
        }
    }

    async fn release(&self, observer: &Observer, resource: &Resource) -> Result<(), ApiError> {
        let address = self.address(resource);
        let lease = self.cluster.get(address).await?;
        if let Some(released) = observer.release(lease.body()) {
            self.cluster.replace(address, Bytes::from(released.to_string())).await?;
        }
        Ok(())
    }

    fn address<'a>(&'a self, resource: &'a Resource) -> Address<'a> {
        let namespace = Some(self.cluster.default_namespace());
        Address { resource, namespace, name: &self.name }
    }
}
