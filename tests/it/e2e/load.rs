//! Requests to a real API server while something changes: requests that must be denied, and requests that must not fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use ::kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::namespace::Namespace;
use super::until;

/// Number of concurrent requests.
pub(super) const CLIENTS: usize = 4;

/// Returns a client of the API server, with the permissions of an administrator.
pub(super) async fn client(namespace: &Namespace) -> Client {
    let kubeconfig = Kubeconfig::read_from(namespace.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

/// Sends a request. Returns the object, or the error of the server.
pub(super) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, String> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = request.body(body).expect("a request");
    client.request::<Value>(request).await.map_err(|it| it.to_string())
}

/// Requests that are sent until the end: those for large `ConfigMap`s must be denied, all others admitted.
pub(super) struct Load {
    tasks: JoinSet<()>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    /// The number of requests that were admitted or denied as expected.
    right: AtomicUsize,
    /// The number of large ones that were admitted.
    unchecked: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Load {
    pub(super) fn start(client: &Client, namespace: &str) -> Self {
        let (mut tasks, seen) = (JoinSet::new(), Arc::<Seen>::default());
        for task in 0..CLIENTS {
            let (client, seen, namespace) =
                (client.clone(), Arc::clone(&seen), namespace.to_owned());
            tasks.spawn(async move {
                while !seen.stop.load(Ordering::Relaxed) {
                    for size in ["small", "large"] {
                        let sent = create(&client, &namespace, &format!("load-{task}"), size).await;
                        seen.note(size, sent);
                    }
                }
            });
        }
        Load { tasks, seen }
    }

    /// Waits until this many more requests have ended as expected.
    pub(super) async fn until_more(&self, count: usize) {
        let target = self.seen.right.load(Ordering::Relaxed) + count;
        until("more requests end as they should", async || {
            let right = self.seen.right.load(Ordering::Relaxed);
            let failures = || format!("{right} of {target}: {:?}", self.seen.failures.lock());
            if right >= target { Ok(()) } else { Err(failures()) }
        })
        .await;
    }

    /// Returns the failures so far.
    pub(super) fn failures(&self) -> Vec<String> {
        self.seen.failures.lock().clone()
    }

    /// Ends the requests. Returns the failures; panics if a large one was admitted.
    pub(super) async fn end(mut self) -> Vec<String> {
        self.seen.stop.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        assert_eq!(self.seen.unchecked.load(Ordering::Relaxed), 0, "large ones were admitted");
        self.failures()
    }
}

impl Seen {
    fn note(&self, size: &str, sent: Result<Value, String>) {
        match (size, sent) {
            ("small", Ok(_)) => self.right.fetch_add(1, Ordering::Relaxed),
            (_, Ok(_)) => self.unchecked.fetch_add(1, Ordering::Relaxed),
            ("large", Err(why)) if why.contains("too large") => {
                self.right.fetch_add(1, Ordering::Relaxed)
            }
            (_, Err(why)) => {
                self.failures.lock().push(why);
                0
            }
        };
    }
}

/// Creates a `ConfigMap`, in a dry run. Returns it with the changes of the webhooks.
pub(super) async fn create(
    client: &Client,
    namespace: &str,
    name: &str,
    size: &str,
) -> Result<Value, String> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "size": size },
        "metadata": { "name": name },
    });
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    send(client, "POST", &path, &object).await
}
