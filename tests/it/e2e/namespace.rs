//! A separate namespace for each test, and the actions of tests in it.

use std::{path::PathBuf, process::Stdio};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command, sync::Mutex};

use super::operator::file;
use super::server::{Server, server};
use super::until;
use crate::vectors::say;

/// The object of the examples.
pub(crate) const OBJECT: &str = "kopf-example-1";

/// One test at a time defines resources: the definitions of the shared server are those of all tests.
static DEFINITIONS: Mutex<()> = Mutex::const_new(());

/// A namespace on the shared server.
pub(crate) struct Namespace {
    /// The name of the namespace.
    pub(crate) name: String,
    server: &'static Server,
}

impl Namespace {
    /// Creates a namespace; prints a line and returns `None` if there is no server. It is removed with the server.
    pub(crate) async fn for_test(test: &str) -> Option<Self> {
        let found = tokio::task::spawn_blocking(server).await.expect("no panic in the start");
        let Some(server) = found else {
            say(&format!("e2e {test}: skipped"));
            return None;
        };
        let namespace = Namespace { name: test.to_owned(), server };
        namespace.kubectl(&["create", "namespace", test]).await;
        Some(namespace)
    }

    /// Returns the kubeconfig of the administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig.clone()
    }

    /// Runs kubectl in this namespace; returns its output.
    pub(crate) async fn kubectl(&self, args: &[&str]) -> String {
        self.try_kubectl(args, "").await.unwrap_or_else(|told| panic!("kubectl {args:?}: {told}"))
    }

    /// Waits until kubectl prints this.
    pub(crate) async fn until_prints(&self, args: &[&str], expected: &str) {
        until(&format!("{args:?} prints {expected:?}"), async || {
            let printed = self.try_kubectl(args, "").await?;
            if printed.trim() == expected { Ok(()) } else { Err(format!("{printed:?}")) }
        })
        .await;
    }

    /// Runs kubectl with an input; returns its output, or its error output if it fails.
    pub(crate) async fn try_kubectl(&self, args: &[&str], input: &str) -> Result<String, String> {
        let mut child = Command::new(&self.server.kubectl)
            .arg("--kubeconfig")
            .arg(&self.server.kubeconfig)
            .args(["--namespace", &self.name])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).await.expect("kubectl reads");
        drop(stdin);
        let output = child.wait_with_output().await.expect("kubectl ends");
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).expect("text"))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Creates the custom resource definitions of a file, as far as they are not there, and waits until the server serves them.
    pub(crate) async fn define(&self, definitions: &str) {
        let path = file(definitions);
        let path = path.to_str().expect("a path of text");
        {
            // Of two processes of kubectl that find no definition, one would fail to create it.
            let _turn = DEFINITIONS.lock().await;
            self.kubectl(&["apply", "-f", path]).await;
        }
        let wait = ["wait", "--for=condition=established", "--timeout=180s", "-f", path];
        self.kubectl(&wait).await;
    }

    /// Applies the object of the examples, once the server serves its resource.
    pub(crate) async fn apply_object(&self) {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/obj.yaml");
        until("the object is applied", async || self.try_kubectl(&["apply", "-f", file], "").await)
            .await;
    }

    /// Creates an object unchanged, without kubectl's own annotations.
    pub(crate) async fn create(&self, object: &Value) {
        until("the object is created", async || {
            self.try_kubectl(&["create", "-f", "-"], &object.to_string()).await
        })
        .await;
    }

    /// Deletes the object of the examples, and does not wait until it is gone.
    pub(crate) async fn delete_object(&self) {
        self.kubectl(&["delete", "kopfexample", OBJECT, "--wait=false"]).await;
    }

    /// Returns the current state of an object.
    pub(crate) async fn object(&self, name: &str) -> Result<Value, String> {
        let text = self.try_kubectl(&["get", "kopfexample", name, "-o", "json"], "").await?;
        Ok(serde_json::from_str(&text).expect("kubectl prints JSON"))
    }

    /// Waits until an object satisfies `wanted`; returns it.
    pub(crate) async fn until_object(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        until(what, async || {
            let object = self.object(name).await?;
            if wanted(&object) { Ok(object) } else { Err(format!("{object:#}")) }
        })
        .await
    }

    /// Waits until the object of the examples is gone.
    pub(crate) async fn until_gone(&self) {
        until("the object is gone", async || match self.object(OBJECT).await {
            Ok(object) => Err(format!("{object:#}")),
            Err(told) if told.contains("NotFound") => Ok(()),
            Err(told) => Err(told),
        })
        .await;
    }
}

/// Returns the annotations of operators on an object: names without the prefix, and values.
pub(crate) fn annotations(object: &Value) -> Vec<(String, String)> {
    let all = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let ours = all.into_iter().filter_map(|(key, value)| {
        let key = key.strip_prefix("kopf.zalando.org/")?;
        Some((key.to_owned(), value.as_str().unwrap_or_default().to_owned()))
    });
    ours.collect()
}

/// Returns the stored record of a handler, if it exists.
pub(crate) fn record(object: &Value, handler: &str) -> Option<Value> {
    let (_, text) = annotations(object).into_iter().find(|(key, _)| key == handler)?;
    serde_json::from_str(&text).ok()
}

/// Returns whether everything is handled: the essence is stored, and no record is left.
pub(crate) fn is_settled(object: &Value) -> bool {
    // The record of failures stays.
    let mut ours = annotations(object);
    ours.retain(|(name, _)| *name != "kopf-failed");
    ours.len() == 1 && ours[0].0 == "last-handled-configuration"
}
