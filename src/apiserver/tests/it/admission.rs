//! Admission plugins and controllers over time. Single requests are compared with the real server in `differential`.

use kopf_apiserver::controllers::{self, Controllers};
use tokio::task::JoinSet;

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";

/// Returns a complete cluster, with its controllers.
fn cluster(builder: Builder) -> (Cluster, JoinSet<()>) {
    let server = builder.cluster(true).build();
    let mut running = JoinSet::new();
    running.spawn(controllers::run(server.clone(), Controllers::ALL));
    (Cluster { client: client(&server), server, start: Instant::now() }, running)
}

/// Advances the time, so that the controllers act.
async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn pod(name: &str, class: &str) -> Value {
    let mut pod = json!({
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    if !class.is_empty() {
        pod["spec"]["priorityClassName"] = class.into();
    }
    pod
}

fn marked(kind: &str, mark: &str, rest: Value) -> Value {
    let mut class = rest;
    class["metadata"] = json!({ "name": format!("usual-{kind}"), "annotations": { mark: "true" } });
    class
}

async fn create_classes(cluster: &Cluster) {
    let storage = "storageclass.kubernetes.io/is-default-class";
    let storage = marked("storage", storage, json!({ "provisioner": "example.com/disk" }));
    let ingress = "ingressclass.kubernetes.io/is-default-class";
    let ingress =
        marked("ingress", ingress, json!({ "spec": { "controller": "example.com/proxy" } }));
    let high = json!({ "metadata": { "name": "high" }, "value": 1000 });
    let usual = json!({ "metadata": { "name": "usual" }, "value": 7, "globalDefault": true });
    for (path, class) in [
        ("/apis/storage.k8s.io/v1/storageclasses", storage),
        ("/apis/networking.k8s.io/v1/ingressclasses", ingress),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", high),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", usual),
    ] {
        let (status, body) = cluster.post(path, class).await;
        assert_eq!(status, 201, "{body:#}");
    }
}

/// Creates an object of each kind that has a default class. Returns their classes.
async fn classes_of_new_objects(cluster: &Cluster) -> [Value; 4] {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let ingress = json!({ "metadata": { "name": "web" }, "spec": { "defaultBackend": backend } });
    let mut created = Vec::new();
    for (path, object) in [
        (CLAIMS, claim),
        (INGRESSES, ingress),
        (PODS, pod("plain", "")),
        (PODS, pod("named", "high")),
    ] {
        let (status, object) = cluster.post(path, object).await;
        assert_eq!(status, 201, "{object:#}");
        created.push(object);
    }
    [
        created[0]["spec"]["storageClassName"].clone(),
        created[1]["spec"]["ingressClassName"].clone(),
        created[2]["spec"]["priority"].clone(),
        created[3]["spec"]["priority"].clone(),
    ]
}

#[tokio::test(start_paused = true)]
async fn new_objects_get_the_default_classes() {
    let (cluster, _running) = cluster(ApiServer::builder());
    create_classes(&cluster).await;
    let classes = classes_of_new_objects(&cluster).await;
    assert_eq!(classes, [json!("usual-storage"), json!("usual-ingress"), json!(7), json!(1000)]);
}

#[tokio::test(start_paused = true)]
async fn without_admission_nothing_is_added_and_nothing_is_refused() {
    let (cluster, _running) = cluster(ApiServer::builder().admission(false));
    create_classes(&cluster).await;
    let classes = classes_of_new_objects(&cluster).await;
    assert_eq!(classes[..2], [Value::Null, Value::Null]);
    let none = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    assert_eq!(cluster.post(QUOTAS, none).await.0, 201);
    pass(5).await;
    assert_eq!(cluster.post(PODS, pod("more", "")).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_existing_objects_and_admits_others_after_deletions() {
    let (cluster, _running) = cluster(ApiServer::builder());
    let quota = json!({ "metadata": { "name": "few" }, "spec": { "hard": { "pods": "2" } } });
    assert_eq!(cluster.post(QUOTAS, quota).await.0, 201);
    pass(5).await;
    for name in ["one", "two"] {
        assert_eq!(cluster.post(PODS, pod(name, "")).await.0, 201);
    }
    let (status, body) = cluster.post(PODS, pod("three", "")).await;
    assert_eq!(status, 403, "{body:#}");
    pass(5).await;
    let used = async || cluster.get(&format!("{QUOTAS}/few")).await.1["status"]["used"].clone();
    assert_eq!(used().await, json!({ "pods": "2" }));
    cluster.delete(&format!("{PODS}/one")).await;
    pass(60).await;
    assert_eq!(used().await, json!({ "pods": "1" }));
    assert_eq!(cluster.post(PODS, pod("three", "")).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_budget_allows_evictions_while_enough_pods_are_ready() {
    let (cluster, _running) = cluster(ApiServer::builder());
    let selector = json!({ "matchLabels": { "app": "web" } });
    let budget = json!({
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 1, "selector": selector },
    });
    assert_eq!(cluster.post(BUDGETS, budget).await.0, 201);
    for name in ["one", "two"] {
        assert_eq!(cluster.post(PODS, pod(name, "")).await.0, 201);
    }
    pass(60).await;
    let (_, budget) = cluster.get(&format!("{BUDGETS}/web")).await;
    let status = &budget["status"];
    assert_eq!([&status["currentHealthy"], &status["disruptionsAllowed"]], [2, 1], "{budget:#}");
    let evict = async |name: &str| {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": "default" },
        });
        cluster.post(&format!("{PODS}/{name}/eviction"), eviction).await.0
    };
    assert_eq!(evict("one").await, 201);
    assert_eq!(evict("two").await, 429, "one pod must stay");
    pass(60).await;
    assert_eq!(evict("two").await, 429, "and it is the last one");
}
