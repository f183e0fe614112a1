//! A lease after its release.

use std::sync::Arc;

use tokio::time;

use crate::logic::replicas::leadership::{Terms, leases};
use crate::ports::{Address, ApiError, Cluster};

/// Number of reads of the lease, in two retry periods. Standbys read it once in each period, plus some jitter: each has read it by then.
const LOOKS: u32 = 4;

/// A lease that this replica has released.
pub struct Released {
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) terms: Terms,
}

impl Released {
    /// Returns whether no other replica takes the lease in two retry periods: then this replica is the last one. Returns `false` if the
    /// lease cannot be read.
    pub async fn is_left(&self) -> bool {
        let Terms { retry_period, renew_deadline, .. } = &self.terms;
        for _ in 0..LOOKS {
            time::sleep(*retry_period / 2).await;
            let read = time::timeout(*renew_deadline, self.holder()).await;
            let Ok(Ok(None)) = read else { return false };
        }
        true
    }

    async fn holder(&self) -> Result<Option<String>, ApiError> {
        let Terms { name, namespace, .. } = &self.terms;
        let address = Address { resource: &leases(), namespace: Some(namespace), name };
        let lease = self.cluster.get(address).await?;
        let holder = lease.body().pointer("/spec/holderIdentity").and_then(|it| it.as_str());
        Ok(holder.filter(|it| !it.is_empty()).map(str::to_owned))
    }
}
