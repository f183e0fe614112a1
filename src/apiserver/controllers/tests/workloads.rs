//! Deployments, `ReplicaSet`s, `StatefulSet`s, `DaemonSet`s. No kubelet: Pods become ready by hand.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers =
    Controllers { garbage: true, namespaces: false, workloads: true, kubelet: false };

fn deployment(replicas: u64, image: &str) -> Value {
    json!({
        "metadata": meta("web"),
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 600,
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("web", image),
        },
    })
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": template("web", image) } })
}

#[tokio::test(start_paused = true)]
async fn a_deployment_comes_up() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    let sets = cluster.server.list("replicasets.apps");
    let annotations = &sets[0]["metadata"]["annotations"];
    expect![[""]].assert_eq(&annotations.to_string());
    assert_eq!(
        cluster.get("deployments.apps", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_goes_step_by_step() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("deployments.apps", "web", image("nginx:2"));
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_template_gets_a_new_revision() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(1, "nginx"));
    for wanted in ["nginx:2", "nginx"] {
        cluster.wait(1).await;
        cluster.make_ready();
        cluster.wait(1).await;
        cluster.merge("deployments.apps", "web", image(wanted));
    }
    cluster.wait(1).await;
    let sets = cluster.server.list("replicasets.apps");
    let annotation = |it: &Value, name: &str| {
        super::super::workloads::annotation(it, &format!("deployment.kubernetes.io/{name}"))
            .to_owned()
    };
    let mut told: Vec<[String; 2]> = sets
        .iter()
        .map(|it| [annotation(it, "revision"), annotation(it, "revision-history")])
        .collect();
    told.sort();
    assert_eq!(told, [["2", ""], ["3", "1"]]);
}

#[tokio::test(start_paused = true)]
async fn recreation_waits_until_the_old_pods_are_gone() {
    let cluster = Cluster::new(WORKLOADS);
    let mut wanted = deployment(2, "nginx");
    wanted["spec"]["strategy"] = json!({ "type": "Recreate" });
    cluster.create("deployments.apps", wanted);
    cluster.wait(1).await;
    for pod in cluster.names("pods") {
        cluster.merge("pods", &pod, json!({ "metadata": { "finalizers": ["x.dev/f"] } }));
    }
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("deployments.apps", "web", image("nginx:2"));
    cluster.check(1, expect![[""]]).await;
    for pod in cluster.names("pods") {
        cluster.merge("pods", &pod, json!({ "metadata": { "finalizers": null } }));
    }
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn pause_scale_and_resume() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("deployments.apps", "web", json!({ "spec": { "paused": true } }));
    cluster.check(1, expect![[""]]).await;
    cluster.merge("deployments.apps", "web", image("nginx:2"));
    cluster.merge("deployments.apps", "web", json!({ "spec": { "replicas": 3 } }));
    cluster.check(1, expect![[""]]).await;
    cluster.merge("deployments.apps", "web", json!({ "spec": { "paused": false } }));
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_hangs_is_told_after_the_deadline() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(1, "nginx"));
    cluster.wait(599).await;
    cluster.check(3, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_takes_everything_along() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.delete("deployments.apps", "web");
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_replaces_what_is_lost_adopts_strays_and_drops_strangers() {
    let cluster = Cluster::new(WORKLOADS);
    let stray = json!({ "name": "stray", "namespace": "ns", "labels": { "app": "rs" } });
    cluster.create("pods", json!({ "metadata": stray }));
    cluster.create(
        "replicasets.apps",
        json!({
            "metadata": meta("rs"),
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "rs" } },
                "template": template("rs", "x"),
            },
        }),
    );
    cluster.check(1, expect![[""]]).await;
    cluster.merge("pods", "stray", json!({ "metadata": { "labels": { "app": "other" } } }));
    cluster.check(1, expect![[""]]).await;
    assert_eq!(cluster.get("pods", "stray")["metadata"].get("ownerReferences"), None);
    cluster.merge("replicasets.apps", "rs", json!({ "spec": { "replicas": 0 } }));
    cluster.check(1, expect![[""]]).await;
}

fn stateful_set() -> Value {
    json!({
        "metadata": meta("db"),
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": { "matchLabels": { "app": "db" } },
            "template": template("db", "nginx"),
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": { "accessModes": ["ReadWriteOnce"] },
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_goes_up_and_down_in_order() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("statefulsets.apps", stateful_set());
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.wait(1).await;
    let pod = cluster.get("pods", "db-1");
    expect![[""]].assert_eq(&pod["spec"].to_string());
    cluster.merge(
        "statefulsets.apps",
        "db",
        json!({ "spec": { "template": template("db", "nginx:2") } }),
    );
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    cluster.merge("statefulsets.apps", "db", json!({ "spec": { "replicas": 0 } }));
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_is_on_every_node_that_fits() {
    let cluster = Cluster::new(WORKLOADS);
    let taint = json!({ "key": "k", "effect": "NoSchedule" });
    cluster.create("nodes", json!({ "metadata": { "name": "n1" } }));
    cluster.create("nodes", json!({ "metadata": { "name": "n2" }, "spec": { "taints": [taint] } }));
    cluster.create("daemonsets.apps", json!({
        "metadata": meta("ds"),
        "spec": { "selector": { "matchLabels": { "app": "ds" } }, "template": template("ds", "x") },
    }));
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[""]]).await;
    cluster
        .server
        .merge("nodes", "", "n2", json!({ "spec": { "taints": null } }))
        .expect("a change");
    cluster.check(1, expect![[""]]).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("daemonsets.apps", "ds", json!({ "spec": { "template": template("ds", "y") } }));
    cluster.check(1, expect![[""]]).await;
}
