//! An example on a real API server, with the built binary.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard},
    time,
};

use super::{Part, Place};
use crate::e2e::{
    namespace::Namespace,
    operator::{Ended, Operator, file, kopf},
};

const POLL: Duration = Duration::from_millis(100);
/// Two minutes, because the machine may be busy.
const PATIENCE: u32 = 1200;

/// Operators of the whole cluster would handle each other's objects: only one runs at a time.
static CLUSTER: Mutex<()> = Mutex::const_new(());

/// A namespace of the shared server, and the operator.
pub(super) struct Real {
    /// Its lock on the whole cluster, if it needs that.
    _turn: Option<MutexGuard<'static, ()>>,
    part: Part,
    script: PathBuf,
    pub(super) server: Namespace,
    pub(super) operator: Operator,
}

impl Real {
    /// Starts the operator of an example, or returns `None` and prints a line if there is no server.
    pub(super) async fn start(part: Part, language: &str) -> Option<Self> {
        let test = format!("example-{}-{language}", part.directory);
        let server = Namespace::for_test(&test).await?;
        let turn = if part.everywhere { Some(CLUSTER.lock().await) } else { None };
        let own = format!("examples/{}/crd.yaml", part.directory);
        if file(&own).exists() {
            server.define(&own).await;
        }
        let script = file(&format!("examples/{}/handlers.{language}", part.directory));
        let operator = launch(part, &server, &script);
        Some(Real { _turn: turn, part, script, server, operator })
    }
}

impl Real {
    /// Writes a status. Old versions of kubectl cannot patch one, but write a whole object to any path.
    async fn write_status(&self, resource: &str, name: &str, status: &Value) {
        let mut told = String::new();
        for _ in 0..PATIENCE {
            let mut object = self.get(resource, name).await.expect("the object is there");
            for (key, value) in status.as_object().expect("a map") {
                object["status"][key] = value.clone();
            }
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            let api = text(&object["apiVersion"]);
            let root = if api.contains('/') { "apis" } else { "api" };
            let (namespace, name) =
                (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
            let plural = resource.split('.').next().unwrap_or_default();
            let url = format!("/{root}/{api}/namespaces/{namespace}/{plural}/{name}/status");
            match self.replace(&url, &object).await {
                Ok(_) => return,
                // Another writer was faster.
                Err(problem) => told = problem,
            }
            self.pause().await;
        }
        panic!("the status of {resource} {name} cannot be written: {told}");
    }

    async fn replace(&self, url: &str, object: &Value) -> Result<String, String> {
        self.server.try_kubectl(&["replace", "--raw", url, "-f", "-"], &object.to_string()).await
    }
}

fn launch(part: Part, server: &Namespace, script: &PathBuf) -> Operator {
    // Kopf's messages, and no more events than Kopf posts: the same steps are checked on the embedded server.
    let quiet = ["--log-format=kopf", "--set=posting.failures=false"];
    let mut command = kopf(&server.kubeconfig(), &["--standalone", "--verbose"]);
    command.args(quiet);
    if part.everywhere {
        command.arg("-A");
    } else {
        command.args(["-n", &server.name]);
    }
    Operator::start(command.arg(file("tests/e2e/quick.lua")).arg(script))
}

impl Place for Real {
    const IS_REAL: bool = true;

    fn namespace(&self) -> &str {
        &self.server.name
    }

    async fn until_says_times(&self, text: &str, times: usize) {
        self.operator.until_says_times(text, times).await;
    }

    async fn until_prints(&self, text: &str) {
        self.operator.until_says(text).await;
    }

    async fn create(&self, object: &Value) {
        let Some(namespace) = object["metadata"]["namespace"].as_str() else {
            return self.server.create(object).await;
        };
        let args = ["create", "--namespace", namespace, "-f", "-"];
        let created = self.server.try_kubectl(&args, &object.to_string()).await;
        created.unwrap_or_else(|told| panic!("{object} is refused: {told}"));
    }

    async fn get(&self, resource: &str, name: &str) -> Result<Value, String> {
        let (place, name) = placed(name);
        let args = [&["get", resource, name, "-o", "json"], &place[..]].concat();
        let text = self.server.try_kubectl(&args, "").await?;
        Ok(serde_json::from_str(&text).expect("kubectl prints JSON"))
    }

    async fn list(&self, resource: &str) -> Vec<Value> {
        let text = self.server.kubectl(&["get", resource, "-o", "json"]).await;
        let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn patch(&self, resource: &str, name: &str, patch: &Value) {
        if let Some(status) = patch.get("status") {
            return self.write_status(resource, name, status).await;
        }
        let (place, name) = placed(name);
        let text = patch.to_string();
        let args = [&["patch", resource, name, "--type=merge", "-p", &text], &place[..]].concat();
        self.server.kubectl(&args).await;
    }

    async fn delete(&self, resource: &str, name: &str) {
        let (place, name) = placed(name);
        let args = [&["delete", resource, name, "--wait=false"], &place[..]].concat();
        self.server.kubectl(&args).await;
    }

    async fn restart(&mut self) -> Ended {
        let next = launch(self.part, &self.server, &self.script);
        std::mem::replace(&mut self.operator, next).stop().await
    }

    async fn stop(self) -> Ended {
        let ended = self.operator.stop().await;
        ended.assert_count("Signal SIGTERM is received. Operator is stopping.", 1);
        ended
    }

    async fn finish_namespace(&self, name: &str) {
        let url = format!("/api/v1/namespaces/{name}/finalize");
        for _ in 0..PATIENCE {
            let Ok(mut namespace) = self.get("namespaces", name).await else { return };
            if namespace["metadata"]["deletionTimestamp"].is_string() {
                namespace["spec"]["finalizers"] = json!([]);
                // A controller may be faster.
                drop(self.replace(&url, &namespace).await);
            }
            self.pause().await;
        }
        panic!("the namespace {name} is not deleted");
    }

    async fn finish_job(&self, name: &str) {
        self.until("jobs.batch", name, "it is made", |_| true).await;
        let now = "2026-01-01T00:00:00Z";
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": "CompletionsReached", "message": "done",
                "lastProbeTime": now, "lastTransitionTime": now,
            })
        };
        let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
        let status = json!({
            "succeeded": 1, "startTime": now, "completionTime": now, "conditions": conditions,
        });
        self.write_status("jobs.batch", name, &status).await;
    }

    async fn until_job_deleted(&self, name: &str) {
        self.until_gone("jobs.batch", name).await;
    }

    async fn create_or_leave(&self, object: &Value) {
        // Another test may be faster.
        drop(self.server.try_kubectl(&["create", "-f", "-"], &object.to_string()).await);
    }

    async fn pause(&self) {
        time::sleep(POLL).await;
    }

    fn patience(&self) -> u32 {
        PATIENCE
    }
}

/// Returns the arguments for the namespace, and the name alone.
fn placed(name: &str) -> (Vec<&str>, &str) {
    match name.split_once('/') {
        Some((namespace, name)) => (vec!["--namespace", namespace], name),
        None => (Vec::new(), name),
    }
}
