//! The requests of one member: one at a time, concurrently with the watch, so that a slow one holds nothing up.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time;

use super::Common;
use crate::logic::{
    object::Object,
    replicas::peering::{self, PeeringRecord, PeeringScope},
};
use crate::ports::{Address, ApiError, BoxFuture, PatchKind, PatchRequest};

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RequestPurpose {
    /// Renew the record of this operator.
    Announce,
    /// Remove the records of these identities.
    Remove(Vec<String>),
    /// Read the peering object, without changing it.
    Read,
}

/// A request in progress.
pub(super) type PeeringRequest = BoxFuture<'static, PeeringReply>;

/// A request that has ended.
pub(super) struct PeeringReply {
    /// The purpose that the request had.
    pub(super) purpose: RequestPurpose,
    /// The response; `None` if it did not arrive in time.
    pub(super) answer: Option<Result<Arc<Object>, ApiError>>,
}

/// Returns a request that ends after this limit at the latest. It is sent when it is first polled.
pub(super) fn begin(
    common: &Common,
    place: &PeeringScope,
    purpose: RequestPurpose,
    limit: Duration,
) -> PeeringRequest {
    let (common, place) = (common.clone(), place.clone());
    Box::pin(async move {
        let answer = time::timeout(limit, send(&common, &place, &purpose)).await.ok();
        PeeringReply { purpose, answer }
    })
}

async fn send(
    common: &Common,
    place: &PeeringScope,
    purpose: &RequestPurpose,
) -> Result<Arc<Object>, ApiError> {
    let settings = &common.settings.peering;
    match purpose {
        RequestPurpose::Announce => {
            let record = PeeringRecord {
                priority: settings.priority,
                lifetime: settings.lifetime,
                message: None,
            };
            let now = common.clock.now();
            patch(common, place, &peering::announcement(&common.identity, &record, now)).await
        }
        RequestPurpose::Remove(identities) => {
            let identities = identities.iter().map(String::as_str);
            patch(common, place, &peering::removal(identities)).await
        }
        RequestPurpose::Read => {
            let (resource, namespace) = place;
            let namespace = namespace.as_deref();
            let address = Address { resource, namespace, name: &settings.name };
            common.cluster.get(address).await.map(Arc::new)
        }
    }
}

async fn patch(
    common: &Common,
    place: &PeeringScope,
    payload: &Value,
) -> Result<Arc<Object>, ApiError> {
    let (resource, namespace) = place;
    let request = PatchRequest {
        resource,
        namespace: namespace.as_deref(),
        name: &common.settings.peering.name,
        subresource: resource.subresources.contains("status").then_some("status"),
        kind: PatchKind::Merge,
        payload: payload.to_string().into(),
        interrupt: None,
    };
    Arc::clone(&common.cluster).patch(request).await
}
