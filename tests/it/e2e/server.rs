//! One API server for all tests of this run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use serde_json::json;

use crate::vectors::say;

/// A running control plane.
pub(super) struct Server {
    /// The kubeconfig of the administrator; it may contain other contexts.
    pub(super) kubeconfig: PathBuf,
    /// The path of the kubectl of its version.
    pub(super) kubectl: PathBuf,
    /// The log of requests by service accounts: a line of JSON per request.
    pub(super) audit: PathBuf,
    /// Stops the server when this process has ended, in whatever way; see [`stop_with_us`].
    _reaper: Child,
}

/// Returns the server, started at the first call; `None` if there is none to start.
///
/// The only static of the tests: a control plane takes seconds to start, and half a gigabyte.
pub(super) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|it| !it.is_empty())
}

fn start() -> Option<Server> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/envtest/up");
    let up = match (variable("ENVTEST"), variable("KUBEBUILDER_ASSETS")) {
        (Some(script), _) => PathBuf::from(script),
        (None, Some(_)) => PathBuf::from(own),
        (None, None) => {
            say("e2e: no API server: set ENVTEST or KUBEBUILDER_ASSETS, or use scripts/e2e");
            return None;
        }
    };
    let directory = std::env::temp_dir().join(format!("kopf-e2e-{}", std::process::id()));
    let reaper = stop_with_us(&up, &directory);
    let audit = directory.join("audit.log");
    let output = Command::new(&up)
        .arg(&directory)
        .env("APISERVER_FLAGS", audited(&directory, &audit))
        .output()
        .expect("ENVTEST is a program");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the API server does not start:\n{told}");
    let exports = String::from_utf8(output.stdout).expect("exports");
    let server = Server {
        kubeconfig: exported(&exports, "KUBECONFIG"),
        kubectl: exported(&exports, "KUBEBUILDER_ASSETS").join("kubectl"),
        audit,
        _reaper: reaper,
    };
    server.create_resources();
    Some(server)
}

/// Returns the flags of a server that logs the requests of service accounts, besides those of the environment.
fn audited(directory: &Path, log: &Path) -> String {
    let policy = directory.join("audit-policy.json");
    let level = |level: &str, groups: &[&str]| json!({ "level": level, "userGroups": groups, "omitStages": ["RequestReceived"] });
    let rules = [level("Metadata", &["system:serviceaccounts"]), level("None", &[])];
    let object = json!({ "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules });
    fs::create_dir_all(directory).expect("a directory");
    fs::write(&policy, object.to_string()).expect("a policy");
    let more = variable("APISERVER_FLAGS").unwrap_or_default();
    let (policy, log) = (policy.display(), log.display());
    format!("--audit-policy-file={policy} --audit-log-path={log} {more}")
}

/// Starts a child that reads until this process's end of the pipe is closed, which happens whenever and however this process ends, and then
/// stops the server. Test binaries have no other hook for their end.
fn stop_with_us(up: &Path, directory: &Path) -> Child {
    let down = up.with_file_name("down");
    Command::new("sh")
        .args(["-c", "trap '' INT TERM HUP; cat >/dev/null; exec \"$0\" --rm \"$1\""])
        .arg(down)
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// Returns the value of a line `export NAME=VALUE`; the directories of tests need no unquoting.
fn exported(exports: &str, name: &str) -> PathBuf {
    let prefix = format!("export {name}=");
    let value = exports.lines().find_map(|it| it.strip_prefix(&prefix));
    value.unwrap_or_else(|| panic!("no {name} in:\n{exports}")).into()
}

impl Server {
    fn create_resources(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in ["examples/crd.yaml", "tests/e2e/wide-crd.yaml"] {
            let file = root.join(file);
            let file = file.to_str().expect("a path of text");
            self.kubectl(&["apply", "-f", file]);
        }
        let both = ["crd/kopfexamples.kopf.dev", "crd/kopfwides.kopf.dev"];
        self.kubectl(
            &[&["wait", "--for=condition=established", "--timeout=180s"], &both[..]].concat(),
        );
    }

    fn kubectl(&self, args: &[&str]) {
        let output = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(args)
            .output()
            .expect("kubectl runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
