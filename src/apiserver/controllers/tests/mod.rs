//! Controllers on virtual time, compared as transcripts: one line for each object that a batch has changed.

mod garbage;
mod jobs;
mod kubelet;
mod namespaces;
mod pure;
mod services;
mod workloads;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use expect_test::Expect;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{Controllers, cache::ObjectKey, run};
use crate::{
    ApiServer, ResourceDef,
    object::{self, text},
};

/// The time at which tests start, in seconds since 1970.
const START: i64 = 1_767_225_600;

/// A server with its controllers, and a task that records what happens.
struct TestCluster {
    server: ApiServer,
    recorded: Arc<Mutex<Vec<String>>>,
    /// Ends with the test.
    _tasks: JoinSet<()>,
}

impl TestCluster {
    fn new(options: Controllers) -> Self {
        let start = Instant::now();
        let clock = move || {
            let seconds = i64::try_from(start.elapsed().as_secs()).expect("a short test");
            let now = Timestamp::from_second(START + seconds).expect("a time");
            now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        let mut builder = ApiServer::builder().clock(clock);
        for def in resources() {
            builder = builder.resource(def);
        }
        let server = builder.build();
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(server.clone(), Arc::clone(&recorded), start));
        tasks.spawn(run(server.clone(), options));
        Self { server, recorded, _tasks: tasks }
    }

    /// Advances the time by seconds, and compares what has happened.
    async fn check(&self, seconds: u64, expected: Expect) {
        tokio::time::sleep(Duration::from_millis(seconds * 1000 + 5)).await;
        let recorded: Vec<String> = self.recorded.lock().drain(..).collect();
        expected.assert_eq(&recorded.join("\n"));
    }

    /// Advances the time without recording.
    async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_millis(seconds * 1000 + 5)).await;
        self.recorded.lock().clear();
    }

    fn create(&self, resource: &str, body: Value) -> Value {
        self.server.create(resource, body).expect("a new object")
    }

    fn get(&self, resource: &str, name: &str) -> Value {
        self.server.get(resource, "ns", name).expect("an object")
    }

    fn merge(&self, resource: &str, name: &str, patch: Value) {
        self.server.merge(resource, "ns", name, patch).expect("a change");
    }

    fn delete(&self, resource: &str, name: &str) {
        self.server.delete(resource, "ns", name).expect("a deletion");
    }

    /// Returns the names of the objects of a resource.
    fn names(&self, resource: &str) -> Vec<String> {
        let all = self.server.list(resource);
        all.iter().map(|it| object::meta(it, "name").to_owned()).collect()
    }

    /// Makes all Pods ready, as a kubelet does.
    fn make_ready(&self) {
        for pod in self.server.list("pods") {
            let now = self.server.now();
            let condition = json!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
            let status =
                json!({ "phase": "Running", "podIP": "10.1.0.1", "conditions": [condition] });
            if !super::conditions::holds(&pod, "Ready") {
                self.merge("pods", object::meta(&pod, "name"), json!({ "status": status }));
            }
        }
    }
}

/// Returns the resources that the controllers use. Here they are plain ones; the rules of the native kinds have separate tests.
fn resources() -> Vec<ResourceDef> {
    let def = |group: &str, plural: &str, kind: &str| ResourceDef {
        status_subresource: true,
        ..ResourceDef::new(group, "v1", plural, kind)
    };
    let wide = |it: ResourceDef| ResourceDef { namespaced: false, ..it };
    vec![
        def("", "serviceaccounts", "ServiceAccount"),
        def("", "services", "Service"),
        def("", "endpoints", "Endpoints"),
        def("", "persistentvolumeclaims", "PersistentVolumeClaim"),
        wide(def("", "persistentvolumes", "PersistentVolume")),
        wide(def("", "nodes", "Node")),
        def("apps", "deployments", "Deployment"),
        def("apps", "replicasets", "ReplicaSet"),
        def("apps", "statefulsets", "StatefulSet"),
        def("apps", "daemonsets", "DaemonSet"),
        def("apps", "controllerrevisions", "ControllerRevision"),
        def("batch", "jobs", "Job"),
        def("batch", "cronjobs", "CronJob"),
        def("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    ]
}

/// Records each batch: `+` is new, `~` changed, `-` deleted.
async fn listen(server: ApiServer, recorded: Arc<Mutex<Vec<String>>>, start: Instant) {
    // A new server has no changes yet.
    let mut seen = 0;
    let mut known: BTreeMap<ObjectKey, String> = BTreeMap::new();
    loop {
        server.moved(seen).await;
        // Virtual time advances only when all tasks are idle, so the order of tasks makes no difference.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let (changes, revision) = server.changes(seen).expect("not too many changes");
        seen = revision;
        let mut told_of = BTreeSet::new();
        for change in changes {
            let key = ObjectKey::new(&change.resource, &change.namespace, &change.name);
            if !told_of.insert(key.clone()) {
                continue;
            }
            let object = server.get(&key.resource, &key.namespace, &key.name);
            let brief = object
                .map(|it| format!("{key} {}", brief(&key.resource, &it)).trim_end().to_owned());
            let line = match (known.remove(&key), brief) {
                (None, None) => continue,
                (None, Some(new)) => {
                    known.insert(key, new.clone());
                    format!("+ {new}")
                }
                (Some(old), Some(new)) => {
                    known.insert(key, new.clone());
                    if old == new {
                        continue;
                    }
                    format!("~ {new}")
                }
                (Some(_), None) => format!("- {key}"),
            };
            let at = start.elapsed().as_secs();
            recorded.lock().push(format!("{at} {line}"));
        }
    }
}

/// Returns the fields of an object that matter in a transcript.
fn brief(resource: &str, object: &Value) -> String {
    let status = |fields: &[&str]| {
        let all = fields.iter().filter_map(|it| {
            let value = object.get("status")?.get(it)?;
            Some(format!("{it}={value}"))
        });
        all.collect::<Vec<_>>().join(" ")
    };
    let conditions = || {
        let all = super::conditions::all(object);
        let all = all.iter().map(|it| {
            format!("{}={} {}", text(it, "/type"), text(it, "/status"), text(it, "/reason"))
        });
        all.map(|it| it.trim().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let mut parts = match resource {
        "pods" => {
            let waiting =
                text(object, "/status/containerStatuses/0/state/waiting/reason").to_owned();
            let ready = if super::workloads::pods::ready(object) { "ready" } else { "" };
            vec![
                text(object, "/spec/nodeName").into(),
                text(object, "/status/phase").into(),
                waiting,
                ready.into(),
            ]
        }
        "replicasets.apps" => vec![
            format!("wants {}", object.pointer("/spec/replicas").unwrap_or(&Value::Null)),
            status(&["replicas", "readyReplicas", "availableReplicas"]),
        ],
        "deployments.apps" => vec![
            status(&[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ]),
            conditions(),
        ],
        "statefulsets.apps" => {
            vec![status(&["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"])]
        }
        "daemonsets.apps" => vec![status(&[
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberUnavailable",
        ])],
        "jobs.batch" => vec![status(&["active", "succeeded", "failed"]), conditions()],
        "cronjobs.batch" => vec![status(&["lastScheduleTime", "lastSuccessfulTime"])],
        "namespaces" => vec![text(object, "/status/phase").into(), conditions()],
        "persistentvolumeclaims" | "persistentvolumes" => {
            vec![text(object, "/status/phase").into()]
        }
        "endpoints" => vec![object.get("subsets").map(Value::to_string).unwrap_or_default()],
        _ => vec![],
    };
    let finalizers = object::finalizers(object);
    if !finalizers.is_empty() {
        parts.push(format!("held by {}", finalizers.join(", ")));
    }
    if object::deleting(object) {
        parts.push("deleting".into());
    }
    parts.retain(|it| !it.is_empty());
    parts.join("; ")
}

/// Returns the metadata of an object in the namespace of the tests.
fn meta(name: &str) -> Value {
    json!({ "name": name, "namespace": "ns" })
}

/// Returns a reference to an owner.
fn owned_by(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

/// Returns a Pod template with this label and one container.
fn template(label: &str, image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": label } },
        "spec": { "containers": [{ "name": "c", "image": image }] },
    })
}
