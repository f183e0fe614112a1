//! Deployments, `ReplicaSet`s, `StatefulSet`s, `DaemonSet`s. Without a kubelet: tests make Pods ready.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers = Controllers {
    garbage: true,
    namespaces: false,
    definitions: false,
    workloads: true,
    kubelet: false,
};

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
async fn a_deployment_becomes_available() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.check(1, expect![[r"
        0 + deployments.apps ns/web observedGeneration=1 replicas=2 updatedReplicas=2 unavailableReplicas=2; Available=False MinimumReplicasUnavailable, Progressing=True ReplicaSetUpdated
        0 + replicasets.apps ns/web-5596996554 wants 2; replicas=2
        0 + pods ns/web-5596996554-00003
        0 + pods ns/web-5596996554-00005"]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        1 ~ pods ns/web-5596996554-00003 Running; ready
        1 ~ pods ns/web-5596996554-00005 Running; ready
        1 ~ replicasets.apps ns/web-5596996554 wants 2; replicas=2 readyReplicas=2 availableReplicas=2
        1 ~ deployments.apps ns/web observedGeneration=1 replicas=2 updatedReplicas=2 availableReplicas=2; Available=True MinimumReplicasAvailable, Progressing=True NewReplicaSetAvailable"]]).await;
    let sets = cluster.server.list("replicasets.apps");
    let annotations = &sets[0]["metadata"]["annotations"];
    expect![[r#"{"deployment.kubernetes.io/desired-replicas":"2","deployment.kubernetes.io/max-replicas":"3","deployment.kubernetes.io/revision":"1"}"#]].assert_eq(&annotations.to_string());
    assert_eq!(
        cluster.get("deployments.apps", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_proceeds_in_steps() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("deployments.apps", "web", image("nginx:2"));
    cluster.check(1, expect![[r"
        2 ~ deployments.apps ns/web observedGeneration=2 replicas=3 updatedReplicas=1 availableReplicas=2 unavailableReplicas=1; Available=True MinimumReplicasAvailable, Progressing=True ReplicaSetUpdated
        2 + replicasets.apps ns/web-9f85f4574 wants 1; replicas=1
        2 + pods ns/web-9f85f4574-00008"]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        3 ~ pods ns/web-9f85f4574-00008 Running; ready
        3 ~ replicasets.apps ns/web-9f85f4574 wants 2; replicas=2 readyReplicas=1 availableReplicas=1
        3 ~ replicasets.apps ns/web-5596996554 wants 1; replicas=1 readyReplicas=1 availableReplicas=1
        3 ~ deployments.apps ns/web observedGeneration=2 replicas=3 updatedReplicas=2 availableReplicas=2 unavailableReplicas=1; Available=True MinimumReplicasAvailable, Progressing=True ReplicaSetUpdated
        3 - pods ns/web-5596996554-00003
        3 + pods ns/web-9f85f4574-0000a"]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        4 ~ pods ns/web-9f85f4574-0000a Running; ready
        4 ~ replicasets.apps ns/web-9f85f4574 wants 2; replicas=2 readyReplicas=2 availableReplicas=2
        4 ~ replicasets.apps ns/web-5596996554 wants 0; replicas=0
        4 ~ deployments.apps ns/web observedGeneration=2 replicas=2 updatedReplicas=2 availableReplicas=2; Available=True MinimumReplicasAvailable, Progressing=True NewReplicaSetAvailable
        4 - pods ns/web-5596996554-00005"]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_template_gets_a_new_revision() {
    let cluster = TestCluster::new(WORKLOADS);
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
    let mut recorded: Vec<[String; 2]> = sets
        .iter()
        .map(|it| [annotation(it, "revision"), annotation(it, "revision-history")])
        .collect();
    recorded.sort();
    assert_eq!(recorded, [["2", ""], ["3", "1"]]);
}

#[tokio::test(start_paused = true)]
async fn recreation_waits_for_the_removal_of_the_old_pods() {
    let cluster = TestCluster::new(WORKLOADS);
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
    cluster.check(1, expect![[r"
        2 ~ deployments.apps ns/web observedGeneration=2; Progressing=True NewReplicaSetAvailable, Available=False MinimumReplicasUnavailable
        2 ~ replicasets.apps ns/web-5596996554 wants 0; replicas=0
        2 ~ pods ns/web-5596996554-00003 Running; ready; held by x.dev/f; deleting
        2 ~ pods ns/web-5596996554-00005 Running; ready; held by x.dev/f; deleting"]]).await;
    for pod in cluster.names("pods") {
        cluster.merge("pods", &pod, json!({ "metadata": { "finalizers": null } }));
    }
    cluster.check(1, expect![[r"
        3 - pods ns/web-5596996554-00003
        3 - pods ns/web-5596996554-00005
        3 + replicasets.apps ns/web-9f85f4574 wants 2; replicas=2
        3 ~ deployments.apps ns/web observedGeneration=2 replicas=2 updatedReplicas=2 unavailableReplicas=2; Available=False MinimumReplicasUnavailable, Progressing=True ReplicaSetUpdated
        3 + pods ns/web-9f85f4574-00008
        3 + pods ns/web-9f85f4574-0000a"]]).await;
}

#[tokio::test(start_paused = true)]
async fn pause_scale_and_resume() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("deployments.apps", "web", json!({ "spec": { "paused": true } }));
    cluster.check(1, expect!["2 ~ deployments.apps ns/web observedGeneration=2 replicas=2 updatedReplicas=2 availableReplicas=2; Available=True MinimumReplicasAvailable, Progressing=Unknown DeploymentPaused"]).await;
    cluster.merge("deployments.apps", "web", image("nginx:2"));
    cluster.merge("deployments.apps", "web", json!({ "spec": { "replicas": 3 } }));
    cluster.check(1, expect![[r"
        3 ~ deployments.apps ns/web observedGeneration=4 replicas=3 availableReplicas=2 unavailableReplicas=1; Progressing=Unknown DeploymentPaused, Available=False MinimumReplicasUnavailable
        3 ~ replicasets.apps ns/web-5596996554 wants 3; replicas=3 readyReplicas=2 availableReplicas=2
        3 + pods ns/web-5596996554-00007"]]).await;
    cluster.merge("deployments.apps", "web", json!({ "spec": { "paused": false } }));
    cluster.check(1, expect![[r"
        4 ~ deployments.apps ns/web observedGeneration=5 replicas=4 updatedReplicas=1 availableReplicas=2 unavailableReplicas=2; Available=False MinimumReplicasUnavailable, Progressing=True ReplicaSetUpdated
        4 + replicasets.apps ns/web-9f85f4574 wants 1; replicas=1
        4 + pods ns/web-9f85f4574-0000a"]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stuck_rollout_is_reported_after_the_deadline() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(1, "nginx"));
    cluster.wait(599).await;
    cluster.check(3, expect!["601 ~ deployments.apps ns/web observedGeneration=1 replicas=1 updatedReplicas=1 unavailableReplicas=1; Available=False MinimumReplicasUnavailable, Progressing=False ProgressDeadlineExceeded"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_dependents_of_a_deleted_deployment_are_deleted() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("deployments.apps", deployment(2, "nginx"));
    cluster.wait(1).await;
    cluster.delete("deployments.apps", "web");
    cluster
        .check(
            1,
            expect![[r"
        1 - deployments.apps ns/web
        1 - replicasets.apps ns/web-5596996554
        1 - pods ns/web-5596996554-00003
        1 - pods ns/web-5596996554-00005"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_replaces_lost_pods_adopts_loose_ones_and_releases_others() {
    let cluster = TestCluster::new(WORKLOADS);
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
    cluster
        .check(
            1,
            expect![[r"
                0 + pods ns/stray
                0 + replicasets.apps ns/rs wants 2; replicas=2
                0 + pods ns/rs-00003"]],
        )
        .await;
    cluster.merge("pods", "stray", json!({ "metadata": { "labels": { "app": "other" } } }));
    cluster.check(1, expect!["1 + pods ns/rs-00005"]).await;
    assert_eq!(cluster.get("pods", "stray")["metadata"].get("ownerReferences"), None);
    cluster.merge("replicasets.apps", "rs", json!({ "spec": { "replicas": 0 } }));
    cluster
        .check(
            1,
            expect![[r"
                2 ~ replicasets.apps ns/rs wants 0; replicas=0
                2 - pods ns/rs-00005
                2 - pods ns/rs-00003"]],
        )
        .await;
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
async fn a_stateful_set_scales_up_and_down_in_order() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("statefulsets.apps", stateful_set());
    cluster
        .check(
            1,
            expect![[r"
                0 + statefulsets.apps ns/db replicas=1 currentReplicas=1 updatedReplicas=1
                0 + controllerrevisions.apps ns/db-858f69c644
                0 + persistentvolumeclaims ns/data-db-0
                0 + pods ns/db-0"]],
        )
        .await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        1 ~ pods ns/db-0 Running; ready
        1 + persistentvolumeclaims ns/data-db-1
        1 + pods ns/db-1
        1 ~ statefulsets.apps ns/db replicas=2 readyReplicas=1 currentReplicas=2 updatedReplicas=2"]]).await;
    cluster.make_ready();
    cluster.wait(1).await;
    let pod = cluster.get("pods", "db-1");
    expect![[r#"{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-db-1"}}],"containers":[{"name":"c","image":"nginx"}],"hostname":"db-1","subdomain":"db"}"#]].assert_eq(&pod["spec"].to_string());
    cluster.merge(
        "statefulsets.apps",
        "db",
        json!({ "spec": { "template": template("db", "nginx:2") } }),
    );
    cluster
        .check(
            1,
            expect![[r"
                3 ~ statefulsets.apps ns/db replicas=2 readyReplicas=1 currentReplicas=1 updatedReplicas=1
                3 + controllerrevisions.apps ns/db-7bb7d4f87b
                3 ~ pods ns/db-1"]],
        )
        .await;
    cluster.make_ready();
    cluster
        .check(
            1,
            expect![[r"
        4 ~ pods ns/db-1 Running; ready
        4 ~ pods ns/db-0
        4 ~ statefulsets.apps ns/db replicas=2 readyReplicas=1 updatedReplicas=2"]],
        )
        .await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        5 ~ pods ns/db-0 Running; ready
        5 ~ statefulsets.apps ns/db replicas=2 readyReplicas=2 currentReplicas=2 updatedReplicas=2"]]).await;
    cluster.merge("statefulsets.apps", "db", json!({ "spec": { "replicas": 0 } }));
    cluster
        .check(
            1,
            expect![[r"
                6 ~ statefulsets.apps ns/db replicas=0
                6 - pods ns/db-1
                6 - pods ns/db-0"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_runs_on_every_matching_node() {
    let cluster = TestCluster::new(WORKLOADS);
    let taint = json!({ "key": "k", "effect": "NoSchedule" });
    cluster.create("nodes", json!({ "metadata": { "name": "n1" } }));
    cluster.create("nodes", json!({ "metadata": { "name": "n2" }, "spec": { "taints": [taint] } }));
    cluster.create("daemonsets.apps", json!({
        "metadata": meta("ds"),
        "spec": { "selector": { "matchLabels": { "app": "ds" } }, "template": template("ds", "x") },
    }));
    cluster.check(1, expect![[r"
        0 + nodes n1
        0 + nodes n2
        0 + daemonsets.apps ns/ds desiredNumberScheduled=1 numberReady=0 updatedNumberScheduled=1 numberUnavailable=1
        0 + controllerrevisions.apps ns/ds-fd6d7c6f5
        0 + pods ns/ds-00005"]]).await;
    cluster.make_ready();
    cluster.check(1, expect![[r"
        1 ~ pods ns/ds-00005 Running; ready
        1 ~ daemonsets.apps ns/ds desiredNumberScheduled=1 numberReady=1 updatedNumberScheduled=1"]]).await;
    cluster
        .server
        .merge("nodes", "", "n2", json!({ "spec": { "taints": null } }))
        .expect("a change");
    cluster.check(1, expect![[r"
        2 + pods ns/ds-00007
        2 ~ daemonsets.apps ns/ds desiredNumberScheduled=2 numberReady=1 updatedNumberScheduled=2 numberUnavailable=1"]]).await;
    cluster.make_ready();
    cluster.wait(1).await;
    cluster.merge("daemonsets.apps", "ds", json!({ "spec": { "template": template("ds", "y") } }));
    cluster.check(1, expect![[r"
        4 ~ daemonsets.apps ns/ds desiredNumberScheduled=2 numberReady=1 updatedNumberScheduled=1 numberUnavailable=1
        4 + controllerrevisions.apps ns/ds-859f8cd548
        4 - pods ns/ds-00005
        4 + pods ns/ds-0000a"]]).await;
}
