//! The operator of a benchmark: the binary in a separate process, with an embedded API server, and its data in `/proc`.

use std::{
    env, fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use kopf_apiserver::{
    ApiServer,
    serve::{Listener, ServeOptions},
};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Environment variable: the binary to measure, such as the released one; default: the one that was just built.
const BINARY: &str = "KOPF_BINARY";

/// Returns the path of the measured binary.
#[expect(clippy::disallowed_methods, reason = "a benchmark is the outermost layer")]
pub(crate) fn binary() -> String {
    env::var(BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_kopf").to_owned())
}

/// A server and the directory of its operator, which is deleted on drop.
pub(crate) struct Site {
    pub(crate) server: ApiServer,
    pub(crate) directory: PathBuf,
}

impl Site {
    /// Creates the directory of the benchmark with this name.
    pub(crate) fn new(name: &str, server: ApiServer) -> Self {
        let directory = env::temp_dir().join(format!("kopf-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Site { server, directory }
    }

    /// Saves the script as an editor does: renames a new file over the old one.
    pub(crate) fn save(&self, script: &str) {
        let new = self.directory.join("handlers.lua.new");
        fs::write(&new, script).expect("the script");
        fs::rename(new, self.directory.join("handlers.lua")).expect("the script");
    }

    /// Runs the operator until the acts have finished. Its script is `handlers.lua`, unless the arguments name others.
    pub(crate) async fn run<T>(
        &self,
        arguments: &[&str],
        acts: impl AsyncFnOnce(&Child) -> T,
    ) -> T {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let listener = Listener::bind(ServeOptions { address, beyond_loopback: false }).await;
        let listener = listener.expect("a port");
        let mut operator = start(&self.directory, arguments, &listener.url());
        let stop = CancellationToken::new();
        let acts = async {
            let result = acts(&operator).await;
            stop.cancel();
            result
        };
        let ((), result) = tokio::join!(listener.serve(self.server.clone(), stop.clone()), acts);
        operator.kill().await.expect("the operator ends");
        result
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A leftover in the directory for temporary files does no harm.
        drop(fs::remove_dir_all(&self.directory));
    }
}

fn start(directory: &Path, arguments: &[&str], url: &str) -> Child {
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

/// Returns the CPU time of all threads, in seconds.
pub(crate) fn cpu(operator: &Child) -> f64 {
    /// Clock ticks per second in `/proc`, on all common systems.
    const TICKS: f64 = 100.0;
    let stat = proc(operator, "stat");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Returns a size in KiB, as the kernel counts it: `VmRSS` is the resident memory, `VmHWM` its peak.
pub(crate) fn memory(operator: &Child, what: &str) -> u64 {
    let status = proc(operator, "status");
    let size = status.lines().find_map(|it| it.strip_prefix(what)?.strip_prefix(':'));
    size.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn proc(operator: &Child, file: &str) -> String {
    let id = operator.id().expect("the operator runs");
    fs::read_to_string(format!("/proc/{id}/{file}")).expect("a file of Linux")
}
