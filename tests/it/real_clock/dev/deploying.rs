//! `kopf deploy` and `kopf undeploy`, on the server of `kopf dev`, which simulates the node.

use std::process::Output;

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Desk, OBJECT, client};

const SCRIPT: &str = "
kopf.on_create('kopfexamples', function(ctx) end)
kopf.on_delete('kopfexamples', function(ctx)
    if ctx.name == 'stuck' then kopf.retry('not yet', 600) end
end)
";
const OPERATOR: &str = "operator/handlers.lua --name hello --namespace ops --image kopf";

/// Starts a server with an operator that handles objects, and writes a script to deploy.
async fn desk(test: &str) -> (Desk, crate::e2e::operator::Operator) {
    let desk = Desk::new(test);
    std::fs::create_dir_all(desk.path("operator")).expect("a directory");
    desk.file("operator/handlers.lua", SCRIPT);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start("operator/handlers.lua --apply object.yaml").await;
    operator.until_says("Creation is processed: 1 succeeded").await;
    (desk, operator)
}

/// Runs a command with the operator's options.
async fn kopf(desk: &Desk, command: &str, more: &str) -> Output {
    let mut kopf = Command::new(env!("CARGO_BIN_EXE_kopf"));
    kopf.env_clear().env("KUBECONFIG", desk.kubeconfig()).current_dir(&desk.0).arg(command);
    let operator = match command {
        "undeploy" => OPERATOR.trim_end_matches(" --image kopf"),
        _ => OPERATOR,
    };
    kopf.args(operator.split_whitespace()).args(more.split_whitespace());
    kopf.output().await.expect("kopf runs")
}

async fn fine(desk: &Desk, command: &str, more: &str) -> Vec<String> {
    let output = kopf(desk, command, more).await;
    assert!(output.status.success(), "{command} {more}: {output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

async fn refused(desk: &Desk, command: &str, more: &str) -> String {
    let output = kopf(desk, command, more).await;
    assert_eq!(output.status.code(), Some(1), "{command} {more}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn an_operator_is_deployed_updated_and_removed() {
    let (desk, _operator) = desk("deploy").await;
    let dry = fine(&desk, "deploy", "--dry-run").await;
    assert!(dry.contains(&"deployment/hello -n ops would be created".to_owned()), "{dry:?}");
    let created = fine(&desk, "deploy", "").await;
    for line in [
        "namespace/ops created",
        "serviceaccount/hello -n ops created",
        "clusterrole/hello.ops created",
        "clusterrolebinding/hello.ops created",
        "configmap/hello -n ops created",
        "deployment/hello -n ops created",
        "poddisruptionbudget/hello -n ops created",
    ] {
        assert!(created.iter().any(|it| it == line), "{line}: {created:?}");
    }
    let ready = "2 pods are ready. The log: kopf logs hello -n ops";
    assert_eq!(created.last().map(String::as_str), Some(ready));
    assert_eq!(fine(&desk, "deploy", "").await, ["No changes.", ready]);
    assert_eq!(fine(&desk, "deploy", "--dry-run").await, ["No changes."]);
    desk.file("operator/handlers.lua", &format!("{SCRIPT}-- edited\n"));
    assert_eq!(fine(&desk, "deploy", "").await, ["configmap/hello -n ops configured", ready]);
    let single = fine(&desk, "deploy", "--replicas 1").await;
    assert!(single.contains(&"deployment/hello -n ops configured".to_owned()), "{single:?}");
    assert!(single.contains(&"poddisruptionbudget/hello -n ops deleted".to_owned()), "{single:?}");
    let gone = fine(&desk, "undeploy", "--dry-run").await;
    assert!(gone.contains(&"kopfexamples/one -n default would be released".to_owned()), "{gone:?}");
    let gone = fine(&desk, "undeploy", "").await;
    for line in [
        "kopfexamples/one -n default released",
        "deployment/hello -n ops deleted",
        "configmap/hello -n ops deleted",
        "clusterrole/hello.ops deleted",
        "serviceaccount/hello -n ops deleted",
        "Kept: namespace/ops. Delete them with kubectl if they are no longer needed.",
    ] {
        assert!(gone.iter().any(|it| it == line), "{line}: {gone:?}");
    }
    let kept = "Kept: namespace/ops. Delete them with kubectl if they are no longer needed.";
    let again = fine(&desk, "undeploy", "").await;
    assert_eq!(again.last().map(String::as_str), Some(kept), "{again:?}");
}

#[tokio::test]
async fn fields_of_others_are_taken_over_only_by_force() {
    let (desk, _operator) = desk("deploy-conflict").await;
    fine(&desk, "deploy", "").await;
    let deployments: Api<Deployment> = Api::namespaced(client(&desk.kubeconfig()).await, "ops");
    let scale = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "hello" }, "spec": { "replicas": 3 },
    });
    let theirs = PatchParams::apply("somebody").force();
    deployments.patch("hello", &theirs, &Patch::Apply(&scale)).await.expect("scaled");
    let problem = refused(&desk, "deploy", "").await;
    assert!(
        problem.contains("deployment/hello -n ops: ") && problem.contains("somebody"),
        "{problem}"
    );
    assert!(problem.contains("hint: --force takes these fields over"), "{problem}");
    let forced = fine(&desk, "deploy", "--force").await;
    assert!(forced.contains(&"deployment/hello -n ops configured".to_owned()), "{forced:?}");
}

/// Applies a role and a binding for an account, as earlier versions did under other names.
async fn apply_role(desk: &Desk, manager: &str, (role, binding, account): (&str, &str, &str)) {
    let group = "rbac.authorization.k8s.io";
    let (above, kind, name) = match role.split_once('/') {
        Some((namespace, name)) => (format!("namespaces/{namespace}/"), "Role", name),
        None => (String::new(), "ClusterRole", role),
    };
    let (account_namespace, account) = account.split_once('/').expect("an account");
    let rule = json!({ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] });
    let account =
        json!({ "kind": "ServiceAccount", "name": account, "namespace": account_namespace });
    let metadata = |name: &str| json!({ "name": name });
    let role_body = json!({ "metadata": metadata(name), "rules": [rule] });
    let role_ref = json!({ "apiGroup": group, "kind": kind, "name": name });
    let binding_body =
        json!({ "metadata": metadata(binding), "roleRef": role_ref, "subjects": [account] });
    let client = client(&desk.kubeconfig()).await;
    for (kind, name, mut body) in
        [(kind.to_owned(), name, role_body), (format!("{kind}Binding"), binding, binding_body)]
    {
        body["apiVersion"] = format!("{group}/v1").into();
        body["kind"] = kind.as_str().into();
        let path = format!(
            "/apis/{group}/v1/{above}{}s/{name}?fieldManager={manager}&force=true",
            kind.to_lowercase()
        );
        let request = Request::patch(path).header("Content-Type", "application/apply-patch+yaml");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        client.request::<Value>(request).await.expect("applied");
    }
}

#[tokio::test]
async fn roles_of_an_earlier_deployment_are_deleted_and_those_of_others_kept() {
    let (desk, _operator) = desk("deploy-renamed").await;
    let ours = "kopf-deploy";
    apply_role(&desk, ours, ("hello", "hello", "ops/hello")).await;
    apply_role(&desk, ours, ("default/hello.ops", "hello.ops", "ops/hello")).await;
    // An operator of the same name elsewhere, a binding that a user has created, and a role that it shares with a binding of the operator.
    apply_role(&desk, ours, ("hello.other", "hello.other", "other/hello")).await;
    apply_role(&desk, "somebody", ("theirs", "theirs", "ops/hello")).await;
    apply_role(&desk, "somebody", ("default/shared", "theirs", "ops/hello")).await;
    apply_role(&desk, ours, ("default/shared", "shared", "ops/hello")).await;
    let former = |would: &str| {
        [
            "clusterrole/hello",
            "role/hello.ops -n default",
            "clusterrolebinding/hello",
            "rolebinding/hello.ops -n default",
            "rolebinding/shared -n default",
        ]
        .map(|it| format!("{it} {would}deleted"))
        .to_vec()
    };
    let deleted = |mut lines: Vec<String>| {
        lines.retain(|it| it.ends_with("deleted"));
        lines
    };
    let dry = fine(&desk, "deploy", "--dry-run").await;
    assert_eq!(deleted(dry), former("would be "));
    assert_eq!(deleted(fine(&desk, "deploy", "").await), former(""));
    assert_eq!(fine(&desk, "deploy", "").await[0], "No changes.");

    apply_role(&desk, ours, ("hello", "hello", "ops/hello")).await;
    let gone = deleted(fine(&desk, "undeploy", "").await);
    for line in ["clusterrole/hello deleted", "clusterrolebinding/hello deleted"] {
        assert!(gone.iter().any(|it| it == line), "{line}: {gone:?}");
    }
    assert!(!gone.iter().any(|it| it.contains("theirs") || it.contains("other")), "{gone:?}");
}

#[tokio::test]
async fn a_deletion_that_waits_for_a_handler_stops_undeploy_unless_it_is_forced() {
    let (desk, operator) = desk("undeploy-pending").await;
    fine(&desk, "deploy", "").await;
    desk.file("object.yaml", &format!("{OBJECT}---\n{}", OBJECT.replace("one", "stuck")));
    operator.until_says_times("Creation is processed: 1 succeeded", 2).await;
    let client = client(&desk.kubeconfig()).await;
    let stuck = "/apis/kopf.dev/v1/namespaces/default/kopfexamples/stuck";
    let deletion = Request::delete(stuck).body(Vec::new()).expect("a request");
    client.request::<Value>(deletion).await.expect("the object exists");
    operator.until_says("not yet").await;
    let problem = refused(&desk, "undeploy", "").await;
    assert!(
        problem.contains("the deletion of kopfexamples/stuck -n default waits for a handler"),
        "{problem}"
    );
    let still = fine(&desk, "deploy", "").await;
    assert_eq!(still.first().map(String::as_str), Some("No changes."));
    let forced = fine(&desk, "undeploy", "--force").await;
    assert!(forced.contains(&"kopfexamples/stuck -n default released".to_owned()), "{forced:?}");
}

#[tokio::test]
async fn pods_that_do_not_become_ready_are_told() {
    let (desk, _operator) = desk("deploy-slow").await;
    let problem = refused(&desk, "deploy", "--timeout 0.001").await;
    assert!(problem.contains("deployment/hello -n ops is not ready after 0 s"), "{problem}");
    let output = kopf(&desk, "deploy", "--timeout soon").await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(problem.contains("--timeout: not a duration: 'soon'"), "{problem}");
}
