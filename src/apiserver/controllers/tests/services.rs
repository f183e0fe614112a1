//! Services, Endpoints and slices.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers = Controllers {
    garbage: true,
    namespaces: false,
    definitions: false,
    workloads: true,
    kubelet: false,
};

fn pod(cluster: &TestCluster, name: &str, ip: &str, ready: bool) {
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
    let cluster = TestCluster::new(WORKLOADS);
    let ports = json!([{ "port": 80, "targetPort": "http" }]);
    cluster.create(
        "services",
        json!({
            "metadata": { "name": "web", "namespace": "ns", "labels": { "a": "b" } },
            "spec": { "selector": { "app": "web" }, "ports": ports },
        }),
    );
    cluster
        .check(
            1,
            expect![[r"
        0 + services ns/web
        0 + endpoints ns/web
        0 + endpointslices.discovery.k8s.io ns/web-00003"]],
        )
        .await;
    pod(&cluster, "p2", "10.0.0.2", true);
    pod(&cluster, "p1", "10.0.0.1", false);
    cluster.check(1, expect![[r#"
        1 + pods ns/p2 n; Running; ready
        1 + pods ns/p1 n; Running
        1 ~ endpoints ns/web [{"addresses":[{"ip":"10.0.0.2","nodeName":"n","targetRef":{"kind":"Pod","namespace":"ns","name":"p2","uid":"00000000-0000-4000-8000-000000000005"}}],"notReadyAddresses":[{"ip":"10.0.0.1","nodeName":"n","targetRef":{"kind":"Pod","namespace":"ns","name":"p1","uid":"00000000-0000-4000-8000-000000000006"}}],"ports":[{"port":8080,"protocol":"TCP"}]}]"#]]).await;
    let slices = cluster.server.list("endpointslices.discovery.k8s.io");
    assert_eq!(slices.len(), 1);
    expected_slice().assert_eq(&format!("{:#}", slices[0]));
    cluster.merge("pods", "p1", json!({ "metadata": { "labels": { "app": "other" } } }));
    cluster.check(1, expect![[r#"2 ~ endpoints ns/web [{"addresses":[{"ip":"10.0.0.2","nodeName":"n","targetRef":{"kind":"Pod","namespace":"ns","name":"p2","uid":"00000000-0000-4000-8000-000000000005"}}],"ports":[{"port":8080,"protocol":"TCP"}]}]"#]]).await;
    cluster.delete("services", "web");
    cluster
        .check(
            1,
            expect![[r"
        3 - services ns/web
        3 - endpoints ns/web
        3 - endpointslices.discovery.k8s.io ns/web-00003"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_selector_is_left_alone() {
    let cluster = TestCluster::new(WORKLOADS);
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
async fn a_large_service_has_several_slices() {
    let cluster = TestCluster::new(WORKLOADS);
    for number in 0..150 {
        pod(&cluster, &format!("p{number:03}"), &format!("10.0.0.{number}"), true);
    }
    let spec =
        json!({ "clusterIP": "None", "selector": { "app": "web" }, "ports": [{ "port": 80 }] });
    cluster.create("services", json!({ "metadata": meta("web"), "spec": spec }));
    cluster.wait(1).await;
    let sizes = |cluster: &TestCluster| -> Vec<usize> {
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

/// Returns the slice of two Pods, one of them ready.
#[expect(clippy::too_many_lines, reason = "one object, as it is stored")]
fn expected_slice() -> Expect {
    expect![[r#"
        {
          "apiVersion": "discovery.k8s.io/v1",
          "kind": "EndpointSlice",
          "metadata": {
            "generateName": "web-",
            "namespace": "ns",
            "labels": {
              "a": "b",
              "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
              "kubernetes.io/service-name": "web"
            },
            "ownerReferences": [
              {
                "apiVersion": "v1",
                "kind": "Service",
                "name": "web",
                "uid": "00000000-0000-4000-8000-000000000001",
                "controller": true,
                "blockOwnerDeletion": true
              }
            ],
            "name": "web-00003",
            "uid": "00000000-0000-4000-8000-000000000004",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 2
          },
          "addressType": "IPv4",
          "endpoints": [
            {
              "addresses": [
                "10.0.0.1"
              ],
              "conditions": {
                "ready": false,
                "serving": false,
                "terminating": false
              },
              "nodeName": "n",
              "targetRef": {
                "kind": "Pod",
                "namespace": "ns",
                "name": "p1",
                "uid": "00000000-0000-4000-8000-000000000006"
              }
            },
            {
              "addresses": [
                "10.0.0.2"
              ],
              "conditions": {
                "ready": true,
                "serving": true,
                "terminating": false
              },
              "nodeName": "n",
              "targetRef": {
                "kind": "Pod",
                "namespace": "ns",
                "name": "p2",
                "uid": "00000000-0000-4000-8000-000000000005"
              }
            }
          ],
          "ports": [
            {
              "port": 8080,
              "protocol": "TCP"
            }
          ]
        }"#]]
}

/// Uses the rules of the native kinds, which store an empty list as null.
#[tokio::test(start_paused = true)]
async fn a_port_that_no_pod_has_is_left_out_once() {
    let server = ApiServer::builder().build();
    let mut tasks = JoinSet::new();
    tasks.spawn(run(server.clone(), WORKLOADS));
    let spec = json!({ "nodeName": "n", "containers": [{ "name": "c" }] });
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let status = json!({ "phase": "Running", "podIP": "10.0.0.1", "conditions": ready });
    let metadata = json!({ "name": "p", "namespace": "ns", "labels": { "app": "web" } });
    let pod = json!({ "metadata": metadata, "spec": spec, "status": status });
    server.create("pods", pod).expect("a new object");
    let ports = json!([{ "port": 80, "targetPort": "unknown" }]);
    let spec = json!({ "selector": { "app": "web" }, "ports": ports });
    let service = json!({ "metadata": meta("web"), "spec": spec });
    server.create("services", service).expect("a new object");
    // Without a pause: a controller that writes repeatedly would keep the clock from advancing.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let slices = server.list("endpointslices.discovery.k8s.io");
    assert_eq!(slices.len(), 1);
    assert!(server.revision() < 10, "{:#} after {}", slices[0], server.revision());
}
