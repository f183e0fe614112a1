//! Services and what is behind them.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers =
    Controllers { garbage: true, namespaces: false, workloads: true, kubelet: false };

fn pod(cluster: &Cluster, name: &str, ip: &str, ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let ports = json!([{ "name": "http", "containerPort": 8080 }]);
    cluster.create("pods", json!({
        "metadata": { "name": name, "namespace": "ns", "labels": { "app": "web" } },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "ports": ports }] },
        "status": { "phase": "Running", "podIP": ip, "conditions": [{ "type": "Ready", "status": ready }] },
    }));
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_the_pods_of_a_service() {
    let cluster = Cluster::new(WORKLOADS);
    let ports = json!([{ "port": 80, "targetPort": "http" }]);
    cluster.create(
        "services",
        json!({
            "metadata": { "name": "web", "namespace": "ns", "labels": { "a": "b" } },
            "spec": { "selector": { "app": "web" }, "ports": ports },
        }),
    );
    cluster.check(1, expect![[""]]).await;
    pod(&cluster, "p2", "10.0.0.2", true);
    pod(&cluster, "p1", "10.0.0.1", false);
    cluster.check(1, expect![[""]]).await;
    let slices = cluster.server.list("endpointslices.discovery.k8s.io");
    assert_eq!(slices.len(), 1);
    expect![[""]].assert_eq(&format!("{:#}", slices[0]));
    cluster.merge("pods", "p1", json!({ "metadata": { "labels": { "app": "other" } } }));
    cluster.check(1, expect![[""]]).await;
    cluster.delete("services", "web");
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_selector_is_left_alone() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create(
        "services",
        json!({ "metadata": meta("web"), "spec": { "ports": [{ "port": 80 }] } }),
    );
    cluster.create("endpoints", json!({ "metadata": meta("web"), "subsets": [] }));
    cluster.wait(1).await;
    assert_eq!(cluster.get("endpoints", "web")["subsets"], json!([]));
    assert!(cluster.names("endpointslices.discovery.k8s.io").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_big_service_has_several_slices() {
    let cluster = Cluster::new(WORKLOADS);
    for number in 0..150 {
        pod(&cluster, &format!("p{number:03}"), &format!("10.0.0.{number}"), true);
    }
    let spec =
        json!({ "clusterIP": "None", "selector": { "app": "web" }, "ports": [{ "port": 80 }] });
    cluster.create("services", json!({ "metadata": meta("web"), "spec": spec }));
    cluster.wait(1).await;
    let sizes = |cluster: &Cluster| -> Vec<usize> {
        let slices = cluster.server.list("endpointslices.discovery.k8s.io");
        slices.iter().map(|it| it["endpoints"].as_array().map_or(0, Vec::len)).collect()
    };
    assert_eq!(sizes(&cluster), [100, 50]);
    for number in 0..60 {
        cluster.delete("pods", &format!("p{number:03}"));
    }
    cluster.wait(40).await;
    assert_eq!(cluster.server.list("pods").len(), 150, "nobody lets them go without a kubelet");
    for pod in cluster.server.list("pods").iter().filter(|it| object::deleting(it)) {
        cluster.server.remove("pods", "ns", object::meta(pod, "name")).expect("a removal");
    }
    cluster.wait(1).await;
    assert_eq!(sizes(&cluster), [90]);
}
