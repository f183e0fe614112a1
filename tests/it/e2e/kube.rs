//! The cluster client of scripts on a real API server, in both languages: each function, refused requests, and a watch that outlives a
//! restart of the server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command as Run, Stdio},
};

use serde_json::json;

use super::namespace::{Namespace, OBJECT, is_settled};
use super::operator::{Operator, file, kopf, ours};
use super::server::variable;
use crate::vectors::say;

/// The lines that the log must contain about refused requests: the request, and parts of the response.
const REFUSALS: &[(&str, &[&str])] = &[
    ("an existing object", &["409 AlreadyExists", "\"made\" already exists", "kube.apply"]),
    ("an old version", &["409 Conflict", "'made'", "read it again"]),
    ("a field of another", &["409 Conflict", ".data.x belongs to \"one\"", "`force`"]),
    ("a wrong name", &["422 Invalid", "metadata.name: Invalid value: \"WRONG\""]),
    ("a missing object", &["404 NotFound", "\"none\" not found"]),
    ("another uid", &["409 Conflict", "uid"]),
    ("a missing namespace", &["404 NotFound", "namespaces \"no-such-place\" not found"]),
    ("an unknown resource", &["nil UnknownResource", "'unicorns'"]),
];

#[tokio::test]
async fn every_function_does_its_work_from_lua() {
    calls("lua").await;
}

#[tokio::test]
async fn every_function_does_its_work_from_rhai() {
    calls("rhai").await;
}

async fn calls(language: &str) {
    let Some(namespace) = Namespace::for_test(&format!("kube-calls-{language}")).await else {
        return;
    };
    let operator = ours(&namespace, &script("calls", language));
    namespace.apply_object().await;
    let object = namespace.until_object(OBJECT, "it is handled", is_settled).await;
    let ended = operator.stop().await;
    assert_eq!(object["status"]["calls_fn"], json!("all is well"), "{}", ended.output);
    for (what, parts) in REFUSALS {
        let said = format!("{what} gives ");
        let line = ended.output.lines().find(|it| it.contains(&said));
        let line = line.unwrap_or_else(|| panic!("{what}: {}", ended.output));
        for part in *parts {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    ended.assert_code(0);
}

#[tokio::test]
async fn whoever_has_no_rights_is_told_the_rule_that_grants_them() {
    for language in ["lua", "rhai"] {
        let test = format!("kube-forbidden-{language}");
        let Some(namespace) = Namespace::for_test(&test).await else { return };
        let kubeconfig = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
        let text = fs::read_to_string(namespace.kubeconfig()).expect("the kubeconfig");
        let text = text.replace("current-context: envtest", "current-context: envtest-nobody");
        fs::write(&kubeconfig, text).expect("a kubeconfig");
        let mut command = kopf(&kubeconfig, &["--standalone", "--verbose", "-n", &namespace.name]);
        let operator = Operator::start(command.arg(script("forbidden", language)));
        operator.until_says("may list pods: false").await;
        let said = operator.stop().await.output;
        fs::remove_file(kubeconfig).expect("the kubeconfig");
        for part in [
            "refused 403 Forbidden: kube.get: cannot get secrets.v1 'any' in 'default': 403 Forbidden",
            "Role in the namespace 'default': {apiGroups: [\"\"], resources: [\"secrets\"], verbs: [\"get\"]}",
            "refused 403 Forbidden: kube.list: cannot list pods.v1 cluster-wide: 403 Forbidden",
            "{apiGroups: [\"apps\"], resources: [\"deployments/scale\"], verbs: [\"patch\"]}",
            "refused 403 Forbidden: kube.watch: cannot list pods.v1 in 'default': 403 Forbidden",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
    }
}

#[tokio::test]
async fn a_watch_outlives_a_restart_of_the_server() {
    let Some(plane) = Plane::start() else { return };
    let crd = file("examples/crd.yaml");
    plane.kubectl(&["apply", "-f", crd.to_str().expect("a path of text")]);
    let established =
        ["wait", "--for=condition=established", "--timeout=180s", "crd/kopfexamples.kopf.dev"];
    plane.kubectl(&established);
    let object = file("examples/obj.yaml");
    plane.kubectl(&["apply", "-f", object.to_str().expect("a path of text")]);
    let operators = ["lua", "rhai"].map(|language| {
        let args = ["--standalone", "--verbose", "-n", "default"];
        Operator::start(kopf(&plane.kubeconfig, &args).arg(script("watching", language)))
    });
    plane.config_map("before");
    for operator in &operators {
        operator.until_says("saw ADDED before").await;
    }
    plane.restart();
    plane.config_map("after");
    plane.kubectl(&["delete", "configmap", "before"]);
    for operator in operators {
        operator.until_says("saw ADDED after").await;
        operator.until_says("saw DELETED before").await;
        let ended = operator.stop().await;
        ended.assert_count("saw ADDED before", 1);
        ended.assert_count("saw ADDED after", 1);
        ended.assert_code(0);
    }
}

fn script(name: &str, language: &str) -> PathBuf {
    file(&format!("tests/e2e/kube/{name}.{language}"))
}

/// A separate control plane, which can be restarted; it is removed with this value.
struct Plane {
    up: PathBuf,
    directory: PathBuf,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
}

impl Plane {
    /// Starts it; prints a line and returns `None` if there is none that can be restarted.
    fn start() -> Option<Self> {
        let Some(up) = variable("ENVTEST").map(PathBuf::from) else {
            say("e2e kube: a restart of the server is skipped: ENVTEST is not set");
            return None;
        };
        let directory = std::env::temp_dir().join(format!("kopf-e2e-kube-{}", std::process::id()));
        let exports = run(&up, &[&directory]);
        let value = |name: &str| {
            let prefix = format!("export {name}=");
            let line = exports.lines().find_map(|it| it.strip_prefix(&prefix));
            PathBuf::from(line.unwrap_or_else(|| panic!("no {name} in:\n{exports}")))
        };
        let (kubeconfig, kubectl) =
            (value("KUBECONFIG"), value("KUBEBUILDER_ASSETS").join("kubectl"));
        Some(Plane { up, directory, kubeconfig, kubectl })
    }

    fn restart(&self) {
        let down = self.up.with_file_name("down");
        run(&down, &[&self.directory, Path::new("kube-apiserver")]);
        run(&self.up, &[&self.directory]);
    }

    fn kubectl(&self, args: &[&str]) {
        let config = [Path::new("--kubeconfig"), &self.kubeconfig];
        let args: Vec<_> = config.into_iter().chain(args.iter().map(Path::new)).collect();
        run(&self.kubectl, &args);
    }

    fn config_map(&self, name: &str) {
        self.kubectl(&["create", "configmap", name]);
        self.kubectl(&["label", "configmap", name, "watched=yes"]);
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let down = self.up.with_file_name("down");
        let ended = Run::new(down).arg("--rm").arg(&self.directory).stderr(Stdio::null()).status();
        drop(ended);
    }
}

/// Runs a program to its end; returns its output.
fn run(program: &Path, args: &[&Path]) -> String {
    let output = Run::new(program).args(args).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {args:?}:\n{told}", program.display());
    String::from_utf8(output.stdout).expect("text")
}
