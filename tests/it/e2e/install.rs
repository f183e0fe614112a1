//! From `kopf init` to an operator in a cluster that restricts it: what `kopf manifests` prints is applied, and the operator has the
//! token of its service account and nothing else. There is no kubelet: the process runs here, with the arguments of the Deployment.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::account::Account;
use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::until;

const NAME: &str = "hello";

/// Runs the binary in a directory. Returns its output.
fn run(directory: &Path, args: &[&str]) -> Result<String, String> {
    let binary = env!("CARGO_BIN_EXE_kopf");
    let output = Command::new(binary).args(args).env_clear().current_dir(directory).output();
    let output = output.expect("the binary runs");
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }
}

/// Returns the arguments of the container, for scripts in this directory.
fn arguments(manifests: &str, directory: &Path) -> Vec<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("YAML");
    let deployment = documents.iter().find(|it| it["kind"] == "Deployment").expect("a Deployment");
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
    let here = directory.display().to_string();
    // The port may be taken here.
    let usable = arguments.skip(1).filter(|it| !it.starts_with("--health"));
    usable.map(|it| it.replace("/scripts", &here)).collect()
}

#[tokio::test]
async fn a_new_operator_works_with_the_permissions_of_its_manifests_only() {
    let Some(namespace) = Namespace::for_test("install").await else { return };
    let warn = "pod-security.kubernetes.io/warn=restricted";
    namespace.kubectl(&["label", "namespace", &namespace.name, warn]).await;
    let directory = std::env::temp_dir().join(format!("kopf-install-{}", std::process::id()));
    let shown = directory.display().to_string();
    run(Path::new("/"), &["init", &shown]).expect("a new operator");
    let args = ["--namespace", &namespace.name, "--name", NAME, "--image", "example.com/kopf:1"];
    let manifests = run(&directory, &[&["manifests"], &args[..]].concat()).expect("manifests");

    // A pod that breaks the restricted profile causes a warning.
    let apply = ["apply", "--server-side", "--warnings-as-errors", "-f", "-"];
    namespace.try_kubectl(&apply, &manifests).await.expect("applied without warnings");

    let account = Account::of(&namespace, NAME).await;
    let mut command = kopf(&account.kubeconfig, &[]);
    let operator =
        Operator::start(command.args(arguments(&manifests, &directory)).arg("--verbose"));
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Greeting",
        "metadata": { "name": "mine" },
        "spec": { "name": "World", "language": "english" },
    });
    until("the object is created", async || {
        namespace.try_kubectl(&["create", "-f", "-"], &object.to_string()).await
    })
    .await;
    until("it is handled", async || {
        let path = "jsonpath={.status.message}";
        let told = namespace.kubectl(&["get", "greeting.example.com", "mine", "-o", path]).await;
        if told == "Hello, World!" { Ok(()) } else { Err(operator.output()) }
    })
    .await;
    namespace.kubectl(&["delete", "greeting.example.com", "mine"]).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("403", 0);
    ended.assert_count("forbidden", 0);

    // The cluster agrees that nothing is missing, and tells what is after a rule has gone.
    let user = format!("system:serviceaccount:{}:{NAME}", namespace.name);
    let kubeconfig = namespace.kubeconfig().display().to_string();
    let live = ["rbac", "verify", "--cluster", "--kubeconfig", &kubeconfig, "--as", &user];
    let told = run(&directory, &live).expect("no permission is missing");
    assert!(told.ends_with(" 0 missing\n"), "{told}");
    namespace.kubectl(&["delete", "rolebinding", NAME]).await;
    let told = run(&directory, &live).expect_err("the lease needs the role");
    let missing = told.lines().filter(|it| it.starts_with("missing")).collect::<Vec<_>>();
    assert!(missing.iter().all(|it| it.contains("leases")), "{told}");
    drop(std::fs::remove_dir_all(&directory));
}
