//! Writes a condition to objects whose handlers fail, if a setting names its type: False while a handler fails, True afterwards.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use crate::call::EventQueue;
use crate::logic::{
    background::failures::{GAVE_UP, RETRIED},
    object::conditions::{self, Condition, ConditionChange, ConditionStatus},
};
use crate::ports::{Address, ApiError, Clock, Cluster, ErrorClass, PatchKind, PatchRequest};
use crate::telemetry::{DueCondition, OperatorFailures};

/// The pause between two objects: at most 10 per second, with two requests each.
const PACE: Duration = Duration::from_millis(100);
/// The pause before a condition that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Maximum number of attempts while others change the object.
const CONFLICTS_MAX: usize = 5;
/// The reason of a condition when no handler fails any more.
const SUCCEEDED: &str = "HandlersSucceeded";

/// Writes conditions; never completes.
pub(super) async fn run(
    failures: OperatorFailures,
    posts: &EventQueue,
    cluster: &Arc<dyn Cluster>,
    clock: Clock,
) {
    // The resources that have no conditions, or whose status the operator may not change.
    let mut muted = BTreeSet::<String>::new();
    loop {
        let due = failures.next_condition().await;
        let uid = due.about.uid.clone();
        let settings = posts.settings();
        let Some(kind) = settings.condition.filter(|_| !muted.contains(&due.resource.to_string()))
        else {
            failures.forget_condition(&uid);
            continue;
        };
        match write(&**cluster, &due, &kind, clock).await {
            Ok(true) => {}
            Ok(false) => {
                muted.insert(due.resource.to_string());
                tracing::warn!(
                    target: "kopf.events",
                    "The schema of {} has no status.conditions, so its objects do not show failures of handlers (posting.condition).",
                    due.resource
                );
            }
            Err(error) if error.is_missing(Some(&due.about.name)) => {
                failures.forget_condition(&uid);
            }
            Err(error) if matches!(error.class, ErrorClass::Denied | ErrorClass::Invalid) => {
                muted.insert(due.resource.to_string());
                tracing::warn!(
                    target: "kopf.events",
                    "Objects of {} do not show failures of handlers (posting.condition): {error}",
                    due.resource
                );
            }
            Err(error) => {
                tracing::debug!(target: "kopf.events", "A condition was not written: {error}");
                failures.postpone_condition(due, Instant::now() + RETRY);
            }
        }
        time::sleep(PACE).await;
    }
}

/// Writes one condition to the latest version of the object. Returns whether the server has stored it.
async fn write(
    cluster: &dyn Cluster,
    due: &DueCondition,
    kind: &str,
    clock: Clock,
) -> Result<bool, ApiError> {
    let DueCondition { about, resource, failure } = due;
    let namespace = about.namespace.as_deref();
    let address = Address { resource, namespace, name: &about.name };
    let mut attempt = 1;
    loop {
        let latest = cluster.get(address).await?;
        let body = latest.body();
        let is_same = latest.header().uid.as_deref() == Some(&*about.uid);
        let is_absent = conditions::find(body, kind).is_none();
        if !is_same || (failure.is_none() && is_absent) {
            return Ok(true);
        }
        let mut changed = Value::clone(body);
        let (status, reason) = match failure {
            Some(failure) if failure.gave_up => (ConditionStatus::False, GAVE_UP),
            Some(_) => (ConditionStatus::False, RETRIED),
            None => (ConditionStatus::True, SUCCEEDED),
        };
        let text = failure.as_ref().map(|it| it.text.as_str());
        let condition = Condition {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: conditions::message(text, "All handlers have succeeded."),
            observed_generation: body.pointer("/metadata/generation").and_then(Value::as_i64),
            now: clock.now(),
        };
        ConditionChange::Set(condition).apply(&mut changed);
        if changed == **body {
            return Ok(true);
        }
        let merge = json!({
            "metadata": { "resourceVersion": body.pointer("/metadata/resourceVersion") },
            "status": { "conditions": changed.pointer("/status/conditions") },
        });
        let request = PatchRequest {
            resource,
            namespace,
            name: &about.name,
            subresource: resource.subresources.contains("status").then_some("status"),
            kind: PatchKind::Merge,
            payload: Bytes::from(merge.to_string()),
            interrupt: None,
        };
        match cluster.patch(request).await {
            Ok(stored) => return Ok(conditions::find(stored.body(), kind).is_some()),
            Err(error) if error.class == ErrorClass::Conflict && attempt < CONFLICTS_MAX => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
