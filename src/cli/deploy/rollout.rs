//! Waits for the pods of an operator: until they run the current version, or until they have stopped.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::api::{Api, Location};
use crate::cli::report::Report;

/// The interval between two checks of the pods.
const PAUSE: Duration = Duration::from_millis(500);
const POD: (&str, &str) = ("v1", "Pod");

/// The pods of an operator.
pub(super) struct Rollout<'a> {
    pub(super) api: &'a Api,
    /// The Deployment that owns the pods.
    pub(super) place: &'a Location,
    pub(super) namespace: &'a str,
    /// The labels of the pods.
    pub(super) labels: &'a str,
    /// Zero: do not wait.
    pub(super) limit: Duration,
}

impl Rollout<'_> {
    /// Waits until all pods run the current version and are available. Returns their number.
    pub(super) async fn until_ready(&self) -> Result<u64, Report> {
        let deadline = Instant::now() + self.limit;
        loop {
            let deployment = self.api.get(self.place).await?.unwrap_or_default();
            if let Some(count) = ready(&deployment) {
                return Ok(count);
            }
            if Instant::now() >= deadline {
                let reason = self.problem().await?.map(|it| format!(": {it}")).unwrap_or_default();
                let place = self.place.shown();
                let problem =
                    format!("{place} is not ready after {} s{reason}", self.limit.as_secs());
                let hint = "`kopf logs` prints the log of the operator; a second `kopf deploy` waits again";
                return Err(Report::failure(problem).with_hint(hint));
            }
            sleep(PAUSE).await;
        }
    }

    /// Scales to zero, and waits until no pod is left.
    pub(super) async fn stop(&self) -> Result<(), Report> {
        if self.api.get(self.place).await?.is_none() {
            return Ok(());
        }
        self.api.merge(self.place, &json!({ "spec": { "replicas": 0 } })).await?;
        let deadline = Instant::now() + self.limit;
        while !self.limit.is_zero() {
            let pods = self.api.list(POD, self.namespace, self.labels).await?;
            if pods.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                let seconds = self.limit.as_secs();
                let problem = format!("{} pods still run after {seconds} s", pods.len());
                let hint = "the operator is scaled to zero, but not deleted: run the command again";
                return Err(Report::failure(problem).with_hint(hint));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns the reason that Kubernetes reports for a pod that does not run.
    async fn problem(&self) -> Result<Option<String>, Report> {
        let pods = self.api.list(POD, self.namespace, self.labels).await?;
        Ok(pods
            .iter()
            .find_map(|(place, pod)| Some(format!("{}: {}", place.shown(), trouble(pod)?))))
    }
}

/// Returns the number of pods if all of them run the current version and are available.
fn ready(deployment: &Value) -> Option<u64> {
    let number = |path: &str| deployment.pointer(path).and_then(Value::as_u64);
    let status = |key: &str| number(&format!("/status/{key}")).unwrap_or(0);
    let wanted = number("/spec/replicas").unwrap_or(1);
    let is_seen = status("observedGeneration") >= number("/metadata/generation")?;
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    (is_seen && counts.iter().all(|it| status(it) == wanted)).then_some(wanted)
}

fn trouble(pod: &Value) -> Option<String> {
    let items = |path: &str| pod.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let said = |it: &Value| {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let reason = text("reason")?;
        Some(text("message").map_or_else(|| reason.to_owned(), |it| format!("{reason}: {it}")))
    };
    let ended = |it: &Value| said(it.pointer("/lastState/terminated")?);
    let waiting = |it: &Value| said(it.pointer("/state/waiting")?);
    let containers = || items("/status/containerStatuses");
    let unscheduled = || {
        let mut all = items("/status/conditions");
        said(all.find(|it| it["type"] == "PodScheduled" && it["status"] == "False")?)
    };
    containers().find_map(ended).or_else(|| containers().find_map(waiting)).or_else(unscheduled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_ready_when_all_pods_run_the_present_version() {
        let deployment = |observed: u64, updated: u64, all: u64| {
            json!({
                "metadata": { "generation": 2 },
                "spec": { "replicas": 2 },
                "status": { "observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": 2 },
            })
        };
        assert_eq!(ready(&deployment(2, 2, 2)), Some(2));
        for old in [deployment(1, 2, 2), deployment(2, 1, 2), deployment(2, 2, 3), json!({})] {
            assert_eq!(ready(&old), None, "{old}");
        }
    }

    #[test]
    fn a_pod_that_does_not_run_says_why() {
        let waiting = json!({ "reason": "ImagePullBackOff", "message": "no such image" });
        let pod =
            json!({ "status": { "containerStatuses": [{ "state": { "waiting": waiting } }] } });
        assert_eq!(trouble(&pod).as_deref(), Some("ImagePullBackOff: no such image"));
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
        let pod = json!({ "status": { "conditions": [condition] } });
        assert_eq!(trouble(&pod).as_deref(), Some("Unschedulable"));
        assert_eq!(trouble(&json!({})), None);
    }
}
