//! The operator of a benchmark: the binary as a process of its own, and what Linux knows of it.

use std::{env, fs, path::Path};

use serde_json::json;
use tokio::process::{Child, Command};

/// Another binary to measure than the one that was just built, such as the released one.
const BINARY: &str = "KOPF_BINARY";

/// The binary that is measured.
#[expect(clippy::disallowed_methods, reason = "a benchmark is the outermost layer")]
pub(crate) fn binary() -> String {
    env::var(BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_kopf").to_owned())
}

/// Starts it with a script, against the server at this address; its files go into the directory.
pub(crate) fn start(directory: &Path, script: &str, url: &str) -> Child {
    fs::write(directory.join("handlers.lua"), script).expect("the script");
    start_with(directory, &[], url)
}

/// The same with more arguments; the scripts are `handlers.lua` in the directory, or wherever the arguments say.
pub(crate) fn start_with(directory: &Path, arguments: &[&str], url: &str) -> Child {
    let kubeconfig = directory.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{ "name": "bench", "cluster": { "server": url } }],
        "users": [{ "name": "bench", "user": {} }],
        "contexts": [{ "name": "bench", "context": { "cluster": "bench", "user": "bench" } }],
    });
    fs::write(&kubeconfig, config.to_string()).expect("the kubeconfig");
    let mut command = Command::new(binary());
    command.args(["run", "-A", "--standalone", "--quiet"]).args(arguments).current_dir(directory);
    command.env("KUBECONFIG", kubeconfig).kill_on_drop(true).spawn().expect("the operator")
}

/// Seconds of CPU, in all threads.
pub(crate) fn cpu(operator: &Child) -> f64 {
    /// Clock ticks per second in `/proc`, on all usual systems.
    const TICKS: f64 = 100.0;
    let stat = proc(operator, "stat");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// A size in KiB, as the kernel counts it: `VmRSS` is the resident memory, `VmHWM` the most there ever was.
pub(crate) fn memory(operator: &Child, what: &str) -> u64 {
    let status = proc(operator, "status");
    let size = status.lines().find_map(|it| it.strip_prefix(what)?.strip_prefix(':'));
    size.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn proc(operator: &Child, file: &str) -> String {
    let id = operator.id().expect("the operator runs");
    fs::read_to_string(format!("/proc/{id}/{file}")).expect("a file of Linux")
}
