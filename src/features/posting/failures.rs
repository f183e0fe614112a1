//! Posts Kubernetes events about handlers that fail: one per object and handler, changed with each failure, at a limited rate.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{self, Instant};

use super::dispatcher::events;
use crate::call::EventQueue;
use crate::logic::background::failures::FailureEvent;
use crate::ports::{ApiError, Cluster, ErrorClass, NewObject, PatchKind, PatchRequest};
use crate::telemetry::OperatorFailures;

/// The pause between two requests: at most 20 per second.
const PACE: Duration = Duration::from_millis(50);

/// The pause in posting after the server has denied a request.
const DENIED: Duration = Duration::from_mins(10);

/// Posts events about failures; never completes.
pub(super) async fn run(
    failures: OperatorFailures,
    posts: &EventQueue,
    cluster: &Arc<dyn Cluster>,
) {
    let mut muted: Option<Instant> = None;
    loop {
        let (handler, event) = failures.next_event().await;
        let settings = posts.settings();
        let is_muted = muted.is_some_and(|it| it > Instant::now());
        if is_muted || !settings.enabled || !settings.failures {
            failures.not_posted(&event.about.uid, &handler);
            continue;
        }
        let default = Some(cluster.default_namespace()).filter(|it| !it.is_empty());
        let Some(new) = event.compose(&settings, default) else { continue };
        let posted = if event.is_posted {
            change(&**cluster, &event, &new.namespace).await
        } else {
            let resource = events();
            let request = NewObject {
                resource: &resource,
                namespace: Some(&new.namespace),
                payload: Bytes::from(new.body.to_string()),
                backoffs: Some(&[]),
            };
            cluster.create(request).await.map(|_created| ())
        };
        if let Err(error) = posted {
            failures.not_posted(&event.about.uid, &handler);
            if error.class == ErrorClass::Denied {
                muted = Some(Instant::now() + DENIED);
            }
            report(&error);
        }
        time::sleep(PACE).await;
    }
}

/// Changes an event that exists. An expired event is created again with the next failure.
async fn change(
    cluster: &dyn Cluster,
    event: &FailureEvent,
    namespace: &str,
) -> Result<(), ApiError> {
    let resource = events();
    let request = PatchRequest {
        resource: &resource,
        namespace: Some(namespace),
        name: &event.name(),
        subresource: None,
        kind: PatchKind::Merge,
        payload: Bytes::from(event.changes().to_string()),
        interrupt: None,
    };
    cluster.patch(request).await.map(|_patched| ())
}

fn report(error: &ApiError) {
    match error.class {
        ErrorClass::Denied => tracing::warn!(
            target: "kopf.events",
            "Failures of handlers are not reported as Kubernetes events for {} min: {error}. Allow the operator to create \
             and patch events, or set posting.failures to false.",
            DENIED.as_secs() / 60
        ),
        // An expired event, or an object in a namespace that is being deleted.
        ErrorClass::Missing => {}
        ErrorClass::Retry
        | ErrorClass::Conflict
        | ErrorClass::Outdated
        | ErrorClass::Invalid
        | ErrorClass::Expired
        | ErrorClass::Fatal => {
            tracing::debug!(target: "kopf.events", "A failure was not reported as an event: {error}");
        }
    }
}
