//! From `kopf init` to an operator in a cluster that restricts it: the output of `kopf manifests` is applied, and the operator has only the
//! token of its service account. There is no kubelet: the process runs here, with the arguments of the Deployment.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::account::Account;
use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::server::server;
use super::until;

const NAME: &str = "hello";
/// A handler whose failures are posted as events: a first one, and more of the same.
const FAILING: &str = r#"
kopf.on_create("greetings.example.com", { id = "fails", backoff = "1s", retries = 100 }, function()
    error("always")
end)
"#;

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

/// Returns `verb resource.group` of everything that a service account was allowed to do, from the audit log of the server.
fn used(user: &str) -> BTreeSet<String> {
    let log = fs::read_to_string(&server().expect("a server").audit).expect("the audit log");
    let entries = log.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
    let of_user =
        entries.filter(|it| it["user"]["username"] == user && it["objectRef"].is_object());
    let text = |it: &Value, key: &str| it["objectRef"][key].as_str().unwrap_or_default().to_owned();
    let of_entry = |it: Value| {
        let (below, verb) = (text(&it, "subresource"), it["verb"].as_str().unwrap_or_default());
        let slash = if below.is_empty() { "" } else { "/" };
        format!("{verb} {}{slash}{below}.{}", text(&it, "resource"), text(&it, "apiGroup"))
    };
    of_user.map(of_entry).collect()
}

/// Returns `verb resource.group` of everything that the roles of manifests grant, except reading an object: that is necessary only
/// after a conflict, when others write it at the same time.
fn granted(manifests: &str) -> BTreeSet<String> {
    let words = |rule: &Value, key: &str| -> Vec<String> {
        let all = rule[key].as_array().into_iter().flatten();
        all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in roles(manifests).iter().flat_map(|it| it["rules"].as_array().into_iter().flatten())
    {
        let group = words(rule, "apiGroups").join(",");
        for verb in words(rule, "verbs") {
            granted
                .extend(words(rule, "resources").iter().map(|it| format!("{verb} {it}.{group}")));
        }
    }
    granted.remove("get greetings.example.com");
    granted
}

/// Returns the roles of manifests.
fn roles(manifests: &str) -> Vec<Value> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("YAML");
    documents.retain(|it| it["rules"].is_array());
    documents
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

/// Creates an operator with one more handler, which fails. Returns its directory.
fn new_operator(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("kopf-{test}-{}", std::process::id()));
    let shown = directory.display().to_string();
    run(Path::new("/"), &["init", &shown]).expect("a new operator");
    let script = directory.join("handlers.lua");
    let text = fs::read_to_string(&script).expect("a script");
    fs::write(&script, text + FAILING).expect("a longer script");
    directory
}

#[tokio::test]
async fn a_new_operator_works_with_the_permissions_of_its_manifests_only() {
    let Some(namespace) = Namespace::for_test("install").await else { return };
    let warn = "pod-security.kubernetes.io/warn=restricted";
    namespace.kubectl(&["label", "namespace", &namespace.name, warn]).await;
    let directory = new_operator("install");
    let args = ["--namespace", &namespace.name, "--name", NAME, "--image", "example.com/kopf:1"];
    let manifests = run(&directory, &[&["manifests"], &args[..]].concat()).expect("manifests");

    // A pod that violates the restricted profile causes a warning.
    let apply = ["apply", "--server-side", "--warnings-as-errors", "-f", "-"];
    namespace.try_kubectl(&apply, &manifests).await.expect("applied without warnings");

    let user = format!("system:serviceaccount:{}:{NAME}", namespace.name);
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
    until("each permission is used", async || {
        let mut unused = granted(&manifests);
        let used = used(&user);
        unused.retain(|it| !used.contains(it));
        if unused.is_empty() { Ok(()) } else { Err(format!("{unused:?}\n{}", operator.output())) }
    })
    .await;
    namespace.kubectl(&["delete", "greeting.example.com", "mine"]).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("403 Forbidden", 0);
    ended.assert_count("forbidden", 0);

    // The cluster reports no missing permission, and reports the right one after a rule was removed.
    let kubeconfig = namespace.kubeconfig().display().to_string();
    let live = ["rbac", "verify", "--cluster", "--kubeconfig", &kubeconfig, "--as", &user];
    let told = run(&directory, &live).expect("no permission is missing");
    assert!(told.ends_with(" 0 missing\n"), "{told}");
    for role in roles(&manifests) {
        for index in 0..role["rules"].as_array().map_or(0, Vec::len) {
            let mut less = role.clone();
            let removed = less["rules"].as_array_mut().expect("rules").remove(index);
            let apply = ["apply", "--server-side", "-f", "-"];
            namespace.try_kubectl(&apply, &less.to_string()).await.expect("a role without a rule");
            let resource = removed["resources"][0].as_str().expect("a resource");
            until("the missing rule is named", async || match run(&directory, &live) {
                Ok(told) => Err(told),
                Err(told) => {
                    let missing: Vec<_> =
                        told.lines().filter(|it| it.starts_with("missing")).collect();
                    let word = |it: &str| it.split([' ', '.']).any(|it| it == resource);
                    let is_it = !missing.is_empty() && missing.iter().all(|it| word(it));
                    if is_it { Ok(()) } else { Err(told) }
                }
            })
            .await;
            namespace.try_kubectl(&apply, &role.to_string()).await.expect("the role");
        }
    }
    drop(fs::remove_dir_all(&directory));
}

#[tokio::test]
async fn a_deployed_operator_is_updated_and_removed() {
    let Some(namespace) = Namespace::for_test("deploy").await else { return };
    let directory = new_operator("deploy");
    let kubeconfig = namespace.kubeconfig().display().to_string();
    // There is no kubelet to start pods.
    let name = namespace.name.as_str();
    let place =
        ["--namespace", name, "--name", name, "--kubeconfig", &kubeconfig, "--timeout", "0"];
    let kopf = |command: &str, more: &[&str]| {
        let text = run(&directory, &[&[command], &place[..], more].concat()).expect("a success");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let deployment = |what: &str| format!("deployment/{name} -n {name} {what}");
    let created = kopf("deploy", &["--image", "kopf"]);
    assert!(created.contains(&deployment("created")), "{created:?}");
    assert_eq!(kopf("deploy", &["--image", "kopf"]), ["No changes."]);
    let single = kopf("deploy", &["--image", "kopf", "--replicas", "1"]);
    let budget = format!("poddisruptionbudget/{name} -n {name} deleted");
    assert_eq!(single, [deployment("configured"), budget]);
    assert_eq!(
        kopf("deploy", &["--image", "kopf:2", "--dry-run"])[0],
        deployment("would be configured")
    );
    assert!(kopf("undeploy", &["--dry-run"]).contains(&deployment("would be deleted")));
    let removed = kopf("undeploy", &[]);
    assert!(removed.contains(&deployment("deleted")), "{removed:?}");
    let last = removed.last().expect("a line");
    assert!(last.starts_with("Kept: customresourcedefinition/"), "{last}");
    assert!(!kopf("undeploy", &[]).iter().any(|it| it.ends_with("deleted")));
    drop(fs::remove_dir_all(&directory));
}

#[tokio::test]
async fn operators_of_one_name_in_two_namespaces_have_rights_of_their_own() {
    let Some(staying) = Namespace::for_test("deploy-staying").await else { return };
    let Some(leaving) = Namespace::for_test("deploy-leaving").await else { return };
    let directory = new_operator("deploy-twice");
    let kubeconfig = staying.kubeconfig().display().to_string();
    // In the whole cluster; or in one namespace that both serve, which is the namespace of neither of them or of one of them.
    for served in [&[][..], &["--serve", "default"], &["--serve", &leaving.name]] {
        let kopf = |command: &[&str], namespace: &Namespace, more: &[&str]| {
            let place =
                ["--namespace", &namespace.name, "--name", NAME, "--kubeconfig", &kubeconfig];
            run(&directory, &[command, &place[..], served, more].concat())
        };
        let is_allowed = |namespace: &Namespace| {
            let user = format!("system:serviceaccount:{}:{NAME}", namespace.name);
            kopf(&["rbac", "verify"], namespace, &["--cluster", "--as", &user])
        };
        let rollout = ["--timeout", "0"];
        for namespace in [&staying, &leaving] {
            kopf(&["deploy"], namespace, &rollout).expect("a deployed operator");
        }
        for namespace in [&staying, &leaving] {
            until("it has its rights", async || is_allowed(namespace)).await;
        }
        kopf(&["undeploy"], &leaving, &rollout).expect("a removed operator");
        until("its rights are gone", async || match is_allowed(&leaving) {
            Ok(told) => Err(told),
            Err(_) => Ok(()),
        })
        .await;
        let told = is_allowed(&staying).expect("the rights of the other one");
        assert!(told.ends_with(" 0 missing\n"), "{served:?}: {told}");
        kopf(&["undeploy"], &staying, &rollout).expect("a removed operator");
    }
    drop(fs::remove_dir_all(&directory));
}

/// Creates a service account that may deploy operators, and may not list the bindings of the cluster.
async fn create_deployer(namespace: &Namespace) {
    let rule = |group: &str, resources: Value, verbs: Value| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "deploy-limited" },
        "rules": [
            rule("apiextensions.k8s.io", json!(["customresourcedefinitions"]), json!(["get", "create", "patch"])),
            rule("", json!(["namespaces"]), json!(["get", "create", "patch"])),
            rule("rbac.authorization.k8s.io", json!(["clusterroles"]), json!(["get", "create", "patch", "escalate", "bind"])),
            rule("rbac.authorization.k8s.io", json!(["clusterrolebindings"]), json!(["get", "create", "patch"])),
        ],
    });
    namespace.try_kubectl(&["create", "-f", "-"], &role.to_string()).await.expect("a role");
    let deployer = format!("--serviceaccount={}:deployer", namespace.name);
    namespace.kubectl(&["create", "serviceaccount", "deployer"]).await;
    for (kind, role) in [("clusterrolebinding", "deploy-limited"), ("rolebinding", "cluster-admin")]
    {
        let role = format!("--clusterrole={role}");
        namespace.kubectl(&["create", kind, "deploy-limited", &role, &deployer]).await;
    }
}

#[tokio::test]
async fn roles_of_an_earlier_deployment_are_deleted() {
    let Some(namespace) = Namespace::for_test("deploy-renamed").await else { return };
    let directory = new_operator("deploy-renamed");
    let kubeconfig = namespace.kubeconfig().display().to_string();
    let name = namespace.name.as_str();
    let kopf = |kubeconfig: &str, more: &[&str]| {
        let place = ["--namespace", name, "--name", name, "--kubeconfig", kubeconfig];
        let served = ["--timeout", "0", "--serve", name];
        run(&directory, &[&["deploy"], &place[..], &served, more].concat()).expect("a success")
    };
    kopf(&kubeconfig, &["--serve", "default"]);

    // With the names of an earlier version.
    let args = ["manifests", "--namespace", name, "--name", name, "--image", "kopf"];
    let manifests = run(&directory, &args).expect("manifests");
    let old = manifests.replace(&format!("{name}.{name}"), name);
    let documents: Vec<Value> = serde_saphyr::from_multiple(&old).expect("YAML");
    for document in documents {
        if document["kind"].as_str().is_some_and(|it| it.starts_with("ClusterRole")) {
            let apply = ["apply", "--server-side", "--field-manager", "kopf-deploy", "-f", "-"];
            namespace.try_kubectl(&apply, &document.to_string()).await.expect("applied");
        }
    }
    // Neither belongs to the operator: another account, another manager.
    let other = format!("--serviceaccount=default:{name}");
    namespace
        .kubectl(&["create", "clusterrolebinding", "deploy-theirs", "--clusterrole=view", &other])
        .await;
    let same = format!("--serviceaccount={name}:{name}");
    namespace
        .kubectl(&["create", "rolebinding", "deploy-theirs", "--clusterrole=view", &same])
        .await;

    let former = |would: &str| {
        [
            format!("clusterrole/{name}"),
            format!("role/{name}.{name} -n default"),
            format!("clusterrolebinding/{name}"),
            format!("rolebinding/{name}.{name} -n default"),
        ]
        .map(|it| format!("{it} {would}deleted\n"))
        .concat()
    };
    let fewer = format!("deployment/{name} -n {name} would be configured\n");
    assert_eq!(kopf(&kubeconfig, &["--dry-run"]), [fewer, former("would be ")].concat());

    // A user who may not list the bindings of the cluster can deploy, and gets a warning that they are kept.
    create_deployer(&namespace).await;
    let deployer = Account::of(&namespace, "deployer").await;
    until("its rights are in effect", async || {
        let mut limited = Command::new(env!("CARGO_BIN_EXE_kopf"));
        limited.env_clear().current_dir(&directory);
        limited.args(["deploy", "--namespace", name, "--name", name, "--timeout", "0"]);
        limited.args(["--serve", name, "--kubeconfig"]).arg(&deployer.kubeconfig);
        let output = limited.output().expect("the binary runs");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        let warning = "warning: roles of earlier deployments are kept, if there are any: not permitted to list all objects of kind ClusterRoleBinding\n";
        let is_it = output.status.success() && told == "No changes.\n" && warned.ends_with(warning);
        if is_it { Ok(()) } else { Err(format!("{told}{warned}")) }
    })
    .await;

    assert_eq!(kopf(&kubeconfig, &[]), former(""));
    assert_eq!(kopf(&kubeconfig, &[]), "No changes.\n");
    namespace.kubectl(&["get", "clusterrolebinding", "deploy-theirs"]).await;
    namespace.kubectl(&["get", "rolebinding", "deploy-theirs"]).await;
    for kind in ["clusterrole", "clusterrolebinding"] {
        for left in ["deploy-theirs", "deploy-limited"] {
            namespace.kubectl(&["delete", kind, left, "--ignore-not-found"]).await;
        }
    }
    drop(fs::remove_dir_all(&directory));
}
