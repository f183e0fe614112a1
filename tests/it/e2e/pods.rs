//! `kube.exec`, `kube.copy_to`, `kube.copy_from` and `kube.run` on a real API server. It has no kubelet, so commands reach the server
//! and are refused there, and the test plays the kubelet and the controller of Jobs.

use std::fs;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    namespace::Namespace,
    operator::{Operator, file, kopf},
};

const HOST: &str = "pod p does not have a host assigned";

/// Writes the statuses that the kubelet and the controller write when a program has ended with code 3.
async fn play_kubelet(namespace: &Namespace) {
    namespace
        .create(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "scan-x", "labels": { "batch.kubernetes.io/job-name": "scan" } },
            "spec": { "nodeName": "absent", "containers": [{ "name": "run", "image": "scanner:1" }] },
        }))
        .await;
    let at = "2026-01-01T00:00:00Z";
    let terminated = json!({ "exitCode": 3, "startedAt": at, "finishedAt": at });
    let pod = json!({ "status": { "phase": "Failed", "containerStatuses": [{
        "name": "run", "image": "scanner:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": terminated },
    }] } });
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": at });
    let job = json!({ "status": {
        "startTime": at, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")],
    } });
    for (kind, name, patch) in [("pod", "scan-x", pod), ("job", "scan", job)] {
        let patch = patch.to_string();
        let merge = ["patch", kind, name, "--subresource=status", "--type=merge", "-p", &patch];
        namespace.kubectl(&merge).await;
    }
}

async fn play(test: &str, language: &str) {
    let Some(namespace) = Namespace::for_test(test).await else { return };
    let script = file(&format!("tests/e2e/pods/handlers.{language}"));
    let place = ["--standalone", "--verbose", "-n", &namespace.name];
    let operator = Operator::start(kopf(&namespace.kubeconfig(), &place).arg(&script));
    namespace.apply_object().await;
    operator.until_says("TOLD absent: ").await;
    super::until("the Job is there", async || {
        namespace.try_kubectl(&["get", "job", "scan", "-o", "json"], "").await
    })
    .await;
    let secret = namespace.kubectl(&["get", "secret", "scan", "-o", "json"]).await;
    let secret: Value = serde_json::from_str(&secret).expect("JSON");
    assert_eq!(secret["data"]["file-0"], "Yg==");
    play_kubelet(&namespace).await;
    operator.until_says("LEFT ").await;
    let said = operator.output();
    for what in ["exec", "input", "copy_to", "copy_from"] {
        let line = said.lines().find(|it| it.contains(&format!("TOLD {what}: ")));
        let line = line.unwrap_or_else(|| panic!("{what}: {said}"));
        assert!(line.contains(HOST) && line.contains("400"), "{line}");
    }
    assert!(said.contains("pods \"q\" not found"), "{said}");
    assert!(said.contains("RAN 3 the log cannot be read: "), "{said}");
    assert!(said.contains("LEFT true true"), "{said}");
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Traceback", 0);
}

#[tokio::test]
async fn commands_reach_the_server_and_jobs_are_found_in_lua() {
    play("pods-lua", "lua").await;
}

#[tokio::test]
async fn commands_reach_the_server_and_jobs_are_found_in_rhai() {
    play("pods-rhai", "rhai").await;
}

/// A user who may use pods, but run no commands in them.
#[tokio::test]
async fn a_missing_right_is_named() {
    let Some(namespace) = Namespace::for_test("pods-rights").await else { return };
    let resources = "--resource=kopfexamples.kopf.dev,kopfexamples.kopf.dev/status,pods";
    namespace.kubectl(&["create", "role", "users", "--verb=*", resources]).await;
    namespace.kubectl(&["create", "rolebinding", "bob", "--role=users", "--user=bob"]).await;
    let text = fs::read_to_string(namespace.kubeconfig()).expect("the kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).expect("YAML");
    for user in config["users"].as_array_mut().expect("users") {
        user["user"]["as"] = json!("bob");
    }
    let path = std::env::temp_dir().join(format!("kopf-pods-{}", std::process::id()));
    fs::write(&path, config.to_string()).expect("a kubeconfig");
    let place = ["--standalone", "--verbose", "-n", &namespace.name];
    let script = file("tests/e2e/pods/handlers.lua");
    let operator = Operator::start(kopf(&path, &place).arg(&script));
    namespace.apply_object().await;
    operator.until_says("TOLD absent: ").await;
    let said = operator.output();
    let line = said.lines().find(|it| it.contains("TOLD exec: ")).expect("a line");
    assert!(line.contains("403") && line.contains("resource \"pods/exec\""), "{line}");
    operator.crash().await;
    fs::remove_file(path).expect("the kubeconfig");
}

/// Requests of `http` to the API server itself, with the CA of its kubeconfig.
#[tokio::test]
async fn the_ca_of_the_cluster_is_trusted_by_http_if_it_is_given() {
    let Some(namespace) = Namespace::for_test("pods-http").await else { return };
    let text = fs::read_to_string(namespace.kubeconfig()).expect("the kubeconfig");
    let config: Value = serde_saphyr::from_str(&text).expect("YAML");
    let cluster = &config["clusters"][0]["cluster"];
    let url = cluster["server"].as_str().expect("a server");
    let ca = if let Some(data) = cluster["certificate-authority-data"].as_str() {
        String::from_utf8(STANDARD.decode(data).expect("Base64")).expect("PEM")
    } else {
        let path = cluster["certificate-authority"].as_str().expect("a CA");
        fs::read_to_string(path).expect("the CA")
    };
    let host = url.strip_prefix("https://").expect("HTTPS");
    let (net, insecure) = (format!("--allow-net={host}"), format!("--allow-insecure={host}"));
    let place = ["--standalone", "-n", &namespace.name, "--allow-env=SERVER_*", &net, &insecure];
    for language in ["lua", "rhai"] {
        let script = file(&format!("tests/e2e/pods/http.{language}"));
        let mut kopf = kopf(&namespace.kubeconfig(), &place);
        let operator =
            Operator::start(kopf.arg(&script).env("SERVER_URL", url).env("SERVER_CA", &ca));
        operator.until_says("TOLD unknown: Untrusted").await;
        operator.until_says("TOLD ca: application/json").await;
        operator.until_says("TOLD insecure: application/json").await;
        operator.stop().await.assert_code(0);
    }
}
