//! The simulated node.

use expect_test::expect;

use super::*;
use crate::controllers::{LogParams, logs};

const KUBELET: Controllers = Controllers {
    garbage: true,
    namespaces: false,
    definitions: false,
    workloads: true,
    kubelet: true,
};

fn pod(policy: &str, annotations: &Value) -> Value {
    json!({
        "metadata": { "name": "p", "namespace": "ns", "annotations": annotations },
        "spec": {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "c", "image": "busybox", "command": ["sleep", "1 h"] }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_scheduled_started_and_ready_and_stops_when_it_is_deleted() {
    let cluster = TestCluster::new(KUBELET);
    cluster.create("pods", pod("Always", &json!({ "dev.kopf/ready-after": "2s" })));
    cluster
        .check(
            5,
            expect![[r"
                0 + pods ns/p kopf-dev; Pending; ContainerCreating
                0 + nodes kopf-dev
                1 ~ pods ns/p kopf-dev; Running
                3 ~ pods ns/p kopf-dev; Running; ready"]],
        )
        .await;
    expected_status().assert_eq(&format!("{:#}", cluster.get("pods", "p")["status"]));
    cluster.delete("pods", "p");
    cluster
        .check(
            5,
            expect![[r"
        5 ~ pods ns/p kopf-dev; Running; ready; deleting
        6 - pods ns/p"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_restarts_ends() {
    let cluster = TestCluster::new(KUBELET);
    cluster.create(
        "pods",
        pod("Never", &json!({ "dev.kopf/exit-code": "3", "dev.kopf/runs-for": "4s" })),
    );
    cluster
        .check(
            10,
            expect![[r"
                0 + pods ns/p kopf-dev; Pending; ContainerCreating
                0 + nodes kopf-dev
                1 ~ pods ns/p kopf-dev; Running; ready
                5 ~ pods ns/p kopf-dev; Failed"]],
        )
        .await;
    let state = &cluster.get("pods", "p")["status"]["containerStatuses"][0]["state"];
    expect![[r#"{"terminated":{"exitCode":3,"reason":"Error","startedAt":"2026-01-01T00:00:01Z","finishedAt":"2026-01-01T00:00:05Z"}}"#]].assert_eq(&state.to_string());
}

#[tokio::test(start_paused = true)]
async fn restarts_of_a_failing_pod_back_off() {
    let cluster = TestCluster::new(KUBELET);
    cluster.create("pods", pod("OnFailure", &json!({ "dev.kopf/exit-code": "1" })));
    cluster
        .check(
            40,
            expect![[r"
                0 + pods ns/p kopf-dev; Pending; ContainerCreating
                0 + nodes kopf-dev
                1 ~ pods ns/p kopf-dev; Running; ready
                2 ~ pods ns/p kopf-dev; Running; CrashLoopBackOff
                12 ~ pods ns/p kopf-dev; Running; ready
                13 ~ pods ns/p kopf-dev; Running; CrashLoopBackOff
                33 ~ pods ns/p kopf-dev; Running; ready
                34 ~ pods ns/p kopf-dev; Running; CrashLoopBackOff"]],
        )
        .await;
    let read = |params: LogParams| {
        logs(&cluster.get("pods", "p"), &params, &cluster.server.now())
            .map(|it| it.lines.join("\n"))
    };
    let previous = LogParams { previous: true, timestamps: true, ..LogParams::default() };
    expect![[r#"
        2026-01-01T00:00:33Z started: image "busybox"; kopf only pretends, nothing is executed
        2026-01-01T00:00:33Z command: "sleep" "1 h"
        2026-01-01T00:00:34Z exited with code 1"#]]
    .assert_eq(&read(previous).expect("logs"));
    let tail = LogParams { tail_lines: Some(1), ..LogParams::default() };
    expect!["exited with code 1"].assert_eq(&read(tail).expect("logs"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_finalizers_stops_but_stays() {
    let cluster = TestCluster::new(KUBELET);
    let mut held = pod("Always", &json!({}));
    held["metadata"]["finalizers"] = json!(["x.dev/f"]);
    cluster.create("pods", held);
    cluster.wait(3).await;
    cluster.delete("pods", "p");
    cluster
        .check(
            5,
            expect![[r"
        3 ~ pods ns/p kopf-dev; Running; ready; held by x.dev/f; deleting
        4 ~ pods ns/p kopf-dev; Running; held by x.dev/f; deleting"]],
        )
        .await;
    assert_eq!(cluster.get("pods", "p")["metadata"]["deletionGracePeriodSeconds"], 0);
    cluster.merge("pods", "p", json!({ "metadata": { "finalizers": null } }));
    cluster.check(1, expect!["8 - pods ns/p"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_node_and_its_volume() {
    let cluster = TestCluster::new(KUBELET);
    let mut wanted = pod("Always", &json!({}));
    wanted["spec"]["volumes"] =
        json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }]);
    wanted["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    cluster.create("pods", wanted);
    cluster.wait(1).await;
    let message = |cluster: &TestCluster| {
        text(&cluster.get("pods", "p"), "/status/conditions/0/message").to_owned()
    };
    assert_eq!(message(&cluster), "0/1 nodes are available: 1 node(s) didn't match node selector.");
    cluster
        .server
        .merge("nodes", "", "kopf-dev", json!({ "metadata": { "labels": { "disk": "ssd" } } }))
        .expect("a change");
    cluster.wait(1).await;
    assert_eq!(message(&cluster), "persistentvolumeclaim \"data\" not found");
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    cluster.create("persistentvolumeclaims", json!({ "metadata": meta("data"), "spec": spec }));
    cluster
        .check(
            3,
            expect![[r"
                2 + persistentvolumeclaims ns/data Bound
                2 + persistentvolumes pvc-00000000-0000-4000-8000-000000000003 Bound
                2 ~ pods ns/p kopf-dev; Pending; ContainerCreating
                3 ~ pods ns/p kopf-dev; Running; ready"]],
        )
        .await;
    cluster.delete("persistentvolumeclaims", "data");
    cluster
        .check(
            1,
            expect![[r"
        5 - persistentvolumeclaims ns/data
        5 - persistentvolumes pvc-00000000-0000-4000-8000-000000000003"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end() {
    let cluster = TestCluster::new(KUBELET);
    let mut template = template("j", "x");
    template["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({ "completions": 2, "parallelism": 1, "template": template });
    cluster.create("jobs.batch", json!({ "metadata": meta("j"), "spec": spec }));
    cluster.wait(10).await;
    let job = cluster.get("jobs.batch", "j");
    assert_eq!(
        (&job["status"]["succeeded"], &job["status"]["conditions"][0]["type"]),
        (&json!(2), &json!("Complete"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_cluster_writes_nothing_and_has_no_timers() {
    let cluster = TestCluster::new(KUBELET);
    cluster.create(
        "deployments.apps",
        json!({
            "metadata": meta("web"),
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": { "app": "web" } },
                "template": template("web", "x"),
            },
        }),
    );
    cluster.wait(10).await;
    assert_eq!(cluster.get("deployments.apps", "web")["status"]["availableReplicas"], 3);
    let revision = cluster.server.revision();
    cluster.wait(1_000_000).await;
    assert_eq!(cluster.server.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn restarted_controllers_change_nothing() {
    let cluster = TestCluster::new(KUBELET);
    cluster.create("pods", pod("Always", &json!({})));
    cluster.wait(10).await;
    let revision = cluster.server.revision();
    let mut tasks = JoinSet::new();
    tasks.spawn(run(cluster.server.clone(), KUBELET));
    cluster.wait(10).await;
    assert_eq!(cluster.server.revision(), revision);
}

#[test]
fn requests_for_logs_get_the_messages_of_the_real_server() {
    let ask = |pod: &Value, container: &str| {
        let params = LogParams { container: Some(container.into()), ..LogParams::default() };
        logs(pod, &params, "2026-01-01T00:00:00Z").map_err(|it| (it.code, it.message))
    };
    let mut pod = pod("Always", &json!({}));
    pod["spec"]["containers"] = json!([{ "name": "c" }, { "name": "d" }]);
    let mut recorded = vec![];
    for container in ["", "x", "c"] {
        recorded.push(format!("{:?}", ask(&pod, container)));
    }
    let params = LogParams { container: Some("c".into()), previous: true, ..LogParams::default() };
    recorded.push(format!("{:?}", logs(&pod, &params, "").map_err(|it| it.message)));
    expect![[r#"
        Err((400, "a container name must be specified for pod p, choose one of: [c d]"))
        Err((400, "container x is not valid for pod p"))
        Err((400, "container \"c\" in pod \"p\" is waiting to start: ContainerCreating"))
        Err("previous terminated container \"c\" in pod \"p\" not found")"#]]
    .assert_eq(&recorded.join("\n"));
}

/// Returns the status of a Pod that became ready after three seconds.
fn expected_status() -> Expect {
    expect![[r#"
        {
          "phase": "Running",
          "conditions": [
            {
              "type": "PodScheduled",
              "status": "True",
              "lastProbeTime": null,
              "lastTransitionTime": "2026-01-01T00:00:00Z"
            },
            {
              "type": "Initialized",
              "status": "True",
              "lastProbeTime": null,
              "lastTransitionTime": "2026-01-01T00:00:00Z"
            },
            {
              "type": "Ready",
              "status": "True",
              "lastProbeTime": null,
              "lastTransitionTime": "2026-01-01T00:00:03Z"
            },
            {
              "type": "ContainersReady",
              "status": "True",
              "lastProbeTime": null,
              "lastTransitionTime": "2026-01-01T00:00:03Z"
            }
          ],
          "hostIP": "192.0.2.1",
          "podIP": "10.240.61.162",
          "podIPs": [
            {
              "ip": "10.240.61.162"
            }
          ],
          "startTime": "2026-01-01T00:00:00Z",
          "containerStatuses": [
            {
              "name": "c",
              "state": {
                "running": {
                  "startedAt": "2026-01-01T00:00:01Z"
                }
              },
              "lastState": {},
              "ready": true,
              "restartCount": 0,
              "image": "busybox",
              "imageID": "",
              "containerID": "kopf://00000000-0000-4000-8000-000000000001/c/0",
              "started": true
            }
          ]
        }"#]]
}
